"""The appendix of docs/protocol.md: this implementation gives the same bytes."""

import pathlib
import re

from .. import coding, crypto, joining
from .. import frames as f
from ..envelope import COOKIE_REQUEST, INITIATOR, KEY_NOTICE, RESPONDER, Envelope, notice
from . import check, expect

DOCUMENT = pathlib.Path(__file__).parents[3] / "docs" / "protocol.md"


def values(vector):
    """{name: bytes} of a vector of the appendix."""
    text = DOCUMENT.read_text(encoding="utf-8").partition(f"\n**{vector}** ")[2].partition("\n**V")[0]
    out, name = {}, None
    for line in re.findall(r"^    (\S.*|  +\S+)$", text, re.MULTILINE):
        start, equal, value = line.partition(" = ")
        name = start.strip() if equal else name
        out[name] = out.get(name, b"") + bytes.fromhex(value if equal else line)
    return out


@check
def vector(_, row):
    v = values(row["vector"])
    made = MAKERS[row["vector"]](v)
    expect(made and set(made) <= set(v), f"{sorted(set(made) - set(v))} are not in the document")
    for name, value in made.items():
        expect(value == v[name], f"{name}: {value.hex()} instead of {v[name].hex()}")


def v1(v):
    envelope = Envelope(v["pin"])
    made = {name: envelope.seal(kind, v["id"], body, v["cookie"], v["nonce"]) for name, kind, body in (
        ("initiator", INITIATOR, v["body"]), ("responder", RESPONDER, v["body"]),
        ("cookie_request", COOKIE_REQUEST, v["cookie"]))}
    expect(envelope.open(v["responder"]).body == v["body"], "it does not open")
    return {**made, "key_initiator": envelope.keys["i"], "key_responder": envelope.keys["r"]}


def v2(v):
    out = {"session": crypto.session_id(v["exporter"]).to_bytes(4, "big")}
    secrets = crypto.Generation.of(crypto.AES128, v["exporter"]).secrets
    for side, secret in zip("ir", secrets):
        following = crypto.expand_label(secret, "braid ku", 32)
        for name, of in ((f"{side}_", secret), (f"{side}_next_", following)):
            out |= {f"{name}secret": of, f"{name}key16": crypto.expand_label(of, "braid key", 16),
                    f"{name}iv": crypto.expand_label(of, "braid iv", 12)}
        out[f"{side}_key32"] = crypto.expand_label(secret, "braid key", 32)
    return out


def v3(v):
    keys = values("V2")
    made = {}
    for name, suite, side, epoch in (("i_aes128", crypto.AES128, 0, 0), ("i_chacha20", crypto.CHACHA, 0, 0),
                                     ("r_next_aes128", crypto.AES128, 1, 1)):
        sealer = crypto.Generation.of(suite, keys["exporter"]).sealer(side, epoch)
        head = bytes([64 | epoch << 2]) + keys["session"] + v["subflow"] + v["number"][4:]
        made[name] = head + sealer.seal(v["subflow"][0], int.from_bytes(v["number"], "big"), head, v["frames"])
    return made


def v4(_):
    return {"ack": f.ack(2, [*range(990, 1001), *range(980, 986)], 2500, (70, 0, 1))}


def v5(v):
    symbols, names = [v[f"symbol_{n}"] for n in range(3)], [(0, 10), (0, 12), (3, 5)]
    made = {f"parity_{n}": coding.parity(n, symbols) for n in (0, 1, 2, 15)}
    # The document puts the packets 10 and 12 into one group of two runs.
    named = bytes.fromhex("02000000000a0200000003000000050100")
    groups, coding.groups = coding.groups, lambda names: named
    try:
        made |= {"frame": coding.frame(7, 1, 2, names, made["parity_1"]),
                 "head": coding.frame(7, 1, 2, names, made["parity_1"], part=8)}
    finally:
        coding.groups = groups
    expect(f.read(v["frame"])[0].symbols == names, "the frame names other symbols")
    return {**made, "tail": coding.tail(7, 1, 8, made["parity_1"][8:])}


def v6(v):
    entries = f.read(v["params"])[0].entries
    expect({name: value for name, value in entries.items() if name < 7} == {1: 1500, 2: 1024, 3: 4096, 4: 1},
           f"{entries}")
    return {"params": f.counted(f.PARAMS, b"".join(
        f.varint(name) + f.varint(len(value)) + value
        for name, value in ((n, f.varint(e) if isinstance(e, int) else e) for n, e in entries.items())))}


def v7(_):
    return {"call": notice(0xa0b1c2d3, bytes(range(1, 17)))}


def v8(_):
    first = ("10.0.0.1", 50000), ("192.0.2.7", 443), 262144
    six = f.opening(("2001:db8::1", 50000), ("2001:db8:1::7", 8443), 16000)
    return {"opening_v4": f.stream(6, 0, b"GET", f.opening(*first)), "opening_v6": f.stream(7, 0, b"", six, fin=True),
            "asking": f.stream(8, 0, b"", f.opening(*first, asking=True)),
            "range": f.stream(1000000, 0x123456789a, bytes.fromhex("deadbeef")),
            "last": f.stream(70, 65536, fin=True), "credit": f.stream_credit(6, 1 << 20),
            "reset": f.stream_reset(70, 1)}


def v9(v):
    asked = [("192.168.7.0", 24), ("fd00:0:0:7::", 64)]
    invitation = joining.Invitation(v["secret"])
    request = invitation.request(v["exporter"][64:96], v["edge_pin"], v["own_pin"], asked)
    answer = joining.read_answer(v["answer"])
    expect((answer["code"], answer["name"], answer["own"]) == (0, "van", [("10.99.0.2", 24)]), f"{answer}")
    return {"public_key": invitation.public, "invitation": invitation.name, "networks": joining.networks(asked),
            "request": request, "signature": request[9:73],
            "request_aes128": joining.seal(crypto.AES128, v["exporter"][:32], joining.REQUEST, request),
            "request_chacha20": joining.seal(crypto.CHACHA, v["exporter"][:32], joining.REQUEST, request),
            "answer_aes128": joining.seal(crypto.AES128, v["exporter"][32:64], joining.ANSWER, v["answer"])}


def v10(_):
    return {"name": f.counted(f.SUBFLOW_NAME, b"wifi"),
            "longer": f.counted(f.SUBFLOW_NAME, b"LTE-2_home.example")}


def v11(_):
    return {"v4": f.counted(f.OBSERVED_ADDRESS, f.end("192.0.2.7", 40000)),
            "v6": f.counted(f.OBSERVED_ADDRESS, f.end("2001:db8::7", 443))}


def v12(v):
    exported = values("V2")["exporter"]
    keys = crypto.Generation.of(crypto.AES128, exported, v["psk"])
    out = {"notice": notice(crypto.session_id(exported), keys.notice_token, KEY_NOTICE)}
    for side, secret in zip("ir", keys.secrets):
        out |= {f"{side}_secret": secret, f"{side}_key16": crypto.expand_label(secret, "braid key", 16),
                f"{side}_iv": crypto.expand_label(secret, "braid iv", 12)}
    return out


def v13(_):
    return {"ack": f.timed(f.ack(2, [*range(990, 1001), *range(980, 986)], 2500, (70, 0, 1)), 123456789, True)}


MAKERS = {name.upper(): globals()[name] for name in (f"v{number}" for number in range(1, 14))}
