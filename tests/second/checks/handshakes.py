"""Envelopes, cookies, and the handshake in its right and wrong orders (docs/protocol.md, section 2)."""

import os
import time

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from .. import crypto, dtls, joining
from ..envelope import COOKIE_REQUEST, INITIATOR, RESPONDER
from ..handshake import SILENCE, arrives
from ..session import Session
from . import check, expect
from .flows import carries

SERVERS_FLIGHT = (dtls.SERVER_HELLO, dtls.CERTIFICATE, dtls.SERVER_KEY, dtls.REQUEST, dtls.DONE)


def silent(socket, timeout=SILENCE):
    got = arrives(socket, timeout)
    expect(got is None, f"it was answered: {got and got[0].hex()}")


def cookied(place, **changes):
    """A handshake that has its cookie."""
    handshake = place.handshake(**changes)
    handshake.send(handshake.client.hello())
    opened = handshake.receive()
    expect(opened and opened.kind == COOKIE_REQUEST, "no cookie request came")
    return handshake


def refused(place, alert=None, **changes):
    """Expects that the responder does not go beyond the ClientHello, with this alert."""
    handshake = place.handshake(**changes)
    expect(not handshake.hello(), "the responder went on")
    expect(handshake.client.alerts == [alert], f"alerts: {handshake.client.alerts}")


def unfinished(place, steps=dtls.FLIGHT, alert=False, **changes):
    """Expects that the responder does not finish, and that no session comes of it."""
    handshake = place.handshake(**changes)
    expect(handshake.hello(), "no flight of the server came")
    expect(not handshake.finish(steps, 2 if alert else 2 * SILENCE), "the responder finished")
    expect(bool(handshake.client.alerts) or not alert, "no alert came")
    generation, name = handshake.keys()
    session = Session(generation, name, handshake.socket, handshake.remote)
    expect(not session.alive(timeout=SILENCE), "a session came of it")


def works(place, **client):
    """Expects a session of such a handshake that carries a packet."""
    session = place.session(client=client)
    carries(place, session)
    return session


@check
def envelope_stranger(place, _):
    handshake = place.handshake(pin=os.urandom(32))
    with place.counts("handshake_decrypt_failed"):
        handshake.send(handshake.client.hello())
        silent(handshake.socket)


@check
def envelope_tampered(place, _):
    handshake = place.handshake()
    datagram = handshake.envelope.seal(INITIATOR, handshake.id, handshake.client.hello())
    with place.counts("handshake_decrypt_failed", len(datagram) - 1):
        for at in range(1, len(datagram)):
            handshake.socket.sendto(datagram[:at] + bytes([datagram[at] ^ 1 << at % 8]) + datagram[at + 1:],
                                    handshake.remote)
        silent(handshake.socket)


@check
def envelope_replay(place, _):
    handshake = place.handshake()
    datagram = handshake.send_body(handshake.client.hello())
    expect(handshake.receive(), "the first one was not answered")
    other = place.socket(1)
    with place.counts("handshake_replay", 2):
        for socket in (handshake.socket, other):
            socket.sendto(datagram, handshake.remote)
        silent(handshake.socket)
        silent(other)


@check
def envelope_kinds(place, _):
    handshake = place.handshake()
    with place.counts("handshake_unexpected", 2):
        for kind in (RESPONDER, COOKIE_REQUEST):
            handshake.socket.sendto(handshake.envelope.seal(kind, handshake.id, bytes(16)), handshake.remote)
        silent(handshake.socket)


@check
def envelope_size(place, _):
    handshake = place.handshake()
    with place.counts("handshake_decrypt_failed"):
        handshake.send_body(handshake.client.hello().ljust(1201 - 53, b"\0"))
        silent(handshake.socket)
    with place.counts("handshake_decrypt_failed"):
        handshake.send_body(b"")
        silent(handshake.socket)
    handshake.send_body(handshake.client.hello().ljust(1200 - 53, b"\0"))
    expect(handshake.receive(), "1200 bytes were not answered")


@check
def envelope_short(place, _):
    handshake = place.handshake()
    datagram = handshake.envelope.seal(INITIATOR, handshake.id, handshake.client.hello())
    with place.counts("handshake_decrypt_failed", len(datagram) - 1):
        for size in range(1, len(datagram)):
            handshake.socket.sendto(datagram[:size], handshake.remote)
        silent(handshake.socket)


@check
def envelope_answers(place, _):
    handshake = place.handshake().run()
    nonces = {opened.nonce for opened in handshake.came}
    expect(len(handshake.came) >= 3 and len(nonces) == len(handshake.came), "nonces come twice")
    expect(not handshake.strange, "something came that is not of the handshake")
    expect(all(len(opened.body) <= 1200 - 37 for opened in handshake.came), "a datagram is too long")


@check
def cookie_request(place, _):
    before = place.ask("status")["handshakes"]
    handshake = place.handshake()
    sent = handshake.send_body(handshake.client.hello())
    opened = handshake.receive()
    expect(opened and opened.kind == COOKIE_REQUEST and len(opened.body) == 16, f"{opened}")
    expect(21 + 16 + 16 < len(sent), "the answer is not shorter")
    expect(place.ask("status")["handshakes"] <= before, "a handshake is kept")


@check
def cookie_wrong(place, _):
    handshake = place.handshake()
    handshake.cookie = os.urandom(16)
    handshake.send(handshake.client.hello())
    opened = handshake.receive()
    expect(opened and opened.kind == COOKIE_REQUEST, f"{opened}")


@check
def cookie_port(place, _):
    given = cookied(place).cookie
    other = place.handshake()
    other.cookie = given
    other.send(other.client.hello())
    opened = other.receive()
    expect(opened and opened.kind == COOKIE_REQUEST and opened.body != given, f"{opened}")


@check
def cookie_again(place, _):
    first = cookied(place)
    second = place.handshake(socket=first.socket)
    second.cookie = first.cookie
    second.run()
    expect(all(opened.kind == RESPONDER for opened in second.came), "a cookie was asked for")


@check
def cookie_body(place, _):
    handshake = cookied(place)
    bodies = [b"\x16", os.urandom(100), handshake.client.record(dtls.APPLICATION, b"data"),
              handshake.client.record(dtls.ALERT, b"\2\0"), handshake.client.record(dtls.CCS, b"\1")]
    with place.counts("handshake_unexpected", len(bodies)):
        for body in bodies:
            handshake.send_body(body)
        silent(handshake.socket)


@check
def suite(place, row):
    works(place, suites=[getattr(crypto, row["suite"]).number])


@check
def hello_order(place, _):
    handshake = place.handshake(suites=[crypto.CHACHA.number, crypto.AES128.number, crypto.AES256.number]).run()
    expect(handshake.client.suite is crypto.CHACHA, f"{handshake.client.suite.number:#x}")


@check
def hello_p256(place, _):
    works(place, groups=[dtls.P256])


@check
def hello_group(place, _):
    refused(place, dtls.HANDSHAKE_FAILURE, groups=[24])


@check
def hello_suite(place, _):
    # RSA and ECDHE-RSA with AES-GCM, ECDHE-ECDSA with CBC, no encryption, PSK
    refused(place, dtls.HANDSHAKE_FAILURE, suites=[0x009c, 0xc02f, 0xc009, 0xc023, 0xc006, 0x00a8])


@check
def hello_ems(place, _):
    refused(place, dtls.HANDSHAKE_FAILURE, ems=False)


@check
def hello_dtls10(place, _):
    refused(place, dtls.PROTOCOL_VERSION, version=0xfeff)


@check
def hello_version(place, _):
    handshake = place.handshake(protocols=(b"\x5a\x5a?", b"braid/7", b"braid/2", b"h2")).run()
    expect(handshake.client.protocol() == b"braid/2", f"{handshake.client.protocol()}")


@check
def hello_versions(place, _):
    refused(place, dtls.NO_APPLICATION_PROTOCOL, protocols=(b"braid/1", b"braid/3", b"h2"))


@check
def hello_unversioned(place, _):
    refused(place, dtls.NO_APPLICATION_PROTOCOL, protocols=None)


@check
def hello_answer(place, _):
    handshake = place.handshake()
    expect(handshake.hello(), "no flight of the server came")
    client = handshake.client
    expect(set(client.server) == set(SERVERS_FLIGHT), f"messages: {set(client.server)}")
    expect(crypto.pin_of(client.server_certificate()) == place.pin, "another pin")
    client.check_server_key()
    expect(client.compression == 0 and 23 in client.extensions, "compression, or no extended master secret")
    expect(35 not in client.extensions, "a ticket is announced")


@check
def certificate_stranger(place, _):
    unfinished(place, alert=True, identity=dtls.Identity())


@check
def certificate_p384(place, _):
    unfinished(place, alert=True, identity=dtls.Identity(ec.generate_private_key(ec.SECP384R1())))


def with_certificate_of(place, key):
    """Shows a certificate of a key that is no elliptic curve's, with the proof of an accepted key behind it."""
    unfinished(place, alert=True, identity=place.identity, chain=[dtls.Identity(key).der])


@check
def certificate_rsa(place, _):
    with_certificate_of(place, rsa.generate_private_key(65537, 2048))


@check
def certificate_ed25519(place, _):
    with_certificate_of(place, ed25519.Ed25519PrivateKey.generate())


@check
def certificate_none(place, _):
    unfinished(place, ("certificate", "key_exchange", "ccs", "finished"), alert=True, chain=[])


@check
def certificate_dates(place, _):
    place.handshake(identity=dtls.Identity(place.identity.key)).run()


@check
def certificate_chain(place, _):
    stranger = dtls.Identity()
    unfinished(place, alert=True, chain=[stranger.der, place.identity.der], signer=stranger.key)


@check
def disordered(place, row):
    unfinished(place, row["steps"])


@check
def verify_other(place, _):
    unfinished(place, alert=True, signer=dtls.Identity().key)


@check
def order_twice(place, _):
    handshake = place.handshake()
    expect(handshake.hello(), "no flight of the server came")
    expect(handshake.finish(("certificate", "key_exchange", "verify", "ccs", "ccs", "finished")), "it did not end")
    generation, name = handshake.keys()
    carries(place, Session(generation, name, handshake.socket, handshake.remote).start())


@check
def finished_wrong(place, _):
    unfinished(place, verify_data=bytes(12))


def in_pieces(place, size, overlap, again):
    """A handshake whose second flight is in pieces, sent backwards, `again` times."""
    handshake = place.handshake()
    expect(handshake.hello(), "no flight of the server came")
    client, pieces = handshake.client, []
    start = len(client.transcript)
    client.flight(("certificate", "key_exchange", "verify"))
    for message in client.transcript[start:]:
        pieces += client.fragments(message, size, overlap)
    for _ in range(again):
        for piece in reversed(pieces):
            handshake.send_body(piece[:3] + client.record(0, b"")[3:11] + piece[11:])  # a number of its own
    expect(handshake.finish(("ccs", "finished")), f"the responder did not finish: alerts {client.alerts}")


@check
def fragments_reversed(place, _):
    in_pieces(place, 40, 0, 1)


@check
def fragments_overlap(place, _):
    in_pieces(place, 100, 60, 2)


@check
def message_size(place, _):
    handshake = place.handshake()
    expect(handshake.hello(), "no flight of the server came")
    client = handshake.client
    body = bytes(2049)
    handshake.send(*client.fragments(client.message(dtls.CERTIFICATE, body), 1000))
    expect(not handshake.finish(dtls.FLIGHT, 2 * SILENCE), "the responder finished")


@check
def message_early(place, _):
    handshake = place.handshake()
    expect(handshake.hello(), "no flight of the server came")
    early = handshake.client.record(dtls.HANDSHAKE, os.urandom(487), epoch=1)
    handshake.send_body(early + early)
    expect(handshake.finish(), f"the responder did not finish: alerts {handshake.client.alerts}")


@check
def handshake_flight(place, _):
    handshake = place.handshake().run()
    handshake.client.record_types.clear()
    verify = [handshake.client.record(dtls.HANDSHAKE, message) for message in handshake.client.transcript[-4:-1]]
    said = handshake.client.transcript[-1]
    handshake.send(*verify, handshake.client.ccs(), handshake.client.record(dtls.HANDSHAKE, said, epoch=1))
    expect(handshake.receive_until(lambda: dtls.CCS in handshake.client.record_types), "its flight did not come again")


def under_keys(place, *records):
    """Sends records behind a handshake. What came of it; the session must live."""
    handshake = place.handshake().run()
    generation, name = handshake.keys()
    before = len(handshake.came)
    handshake.send(*(make(handshake.client) for make in records))
    handshake.receive(SILENCE)
    Session(generation, name, handshake.socket, handshake.remote).start()
    return handshake, handshake.came[before:]


@check
def handshake_renegotiation(place, _):
    def again(client):
        return client.record(dtls.HANDSHAKE, client.message(dtls.HELLO, client.transcript[0][12:]), epoch=1)

    handshake, _ = under_keys(place, again)
    expect(handshake.client.read_messages <= len(SERVERS_FLIGHT) + 1, "the responder began again")


@check
def handshake_data(place, _):
    handshake, _ = under_keys(place, lambda client: client.application())
    expect(not handshake.client.alerts and dtls.APPLICATION not in handshake.client.record_types, "it was answered")


@check
def handshake_silence(place, _):
    handshake = place.handshake().run()
    before = len(handshake.came)
    handshake.receive(1.5)
    expect(len(handshake.came) == before, "something more came")


@check
def handshake_datagrams(place, _):
    handshake = place.handshake()
    expect(handshake.hello(), "no flight of the server came")
    with place.counts("handshake_limit", 1, 70):
        for _ in range(70):
            handshake.send(handshake.client.hello())


@check
def handshake_routes(place, _):
    both = [place.handshake(), place.handshake(socket=place.socket(1))]
    for handshake in both:
        expect(handshake.hello(), "no flight of the server came")
    for handshake in both:
        expect(handshake.finish(), "the responder did not finish")
    generation, name = both[0].keys()
    carries(place, Session(generation, name, both[0].socket, both[0].remote).start())


@check
def handshake_replaces(place, _):
    first = place.session()
    second = place.keyed()
    expect(first.alive(), "the first has ended too early")
    second.start()
    with place.counts("unknown_session"):
        expect(not first.alive(timeout=SILENCE), "the first lives on")


@check
def handshake_joining(place, _):
    refused(place, dtls.NO_APPLICATION_PROTOCOL, protocols=(joining.PROTOCOL,), identity=dtls.Identity())


@check
def handshake_late(place, _):
    handshake = place.handshake()
    expect(handshake.hello(), "no flight of the server came")
    time.sleep(11)
    expect(not handshake.finish(timeout=2 * SILENCE), "the responder finished")
