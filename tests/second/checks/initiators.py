"""The daemon as initiator: this peer is the responder that it is configured for (docs/protocol.md, 2, 4, 9 and 10)."""

import contextlib
import os
import struct

from .. import crypto, dtls, inner
from .. import frames as f
from ..envelope import RESPONDER, notice
from ..handshake import SILENCE, Handshake
from ..responder import Responder, no_cookie
from . import check, expect
from .flows import TIMELY

SERVER_HOST = "192.168.100.2"  # behind this peer, here


@contextlib.contextmanager
def edge(place, changes=None, **responder):
    """A Responder for the daemon at the edge, which begins anew inside the block."""
    with place.edge_daemon(changes or {}) as socket:
        yield Responder(socket, place.second, **responder)


def up(responder, **changes):
    """A session of the edge with both subflows proven."""
    session = responder.accept(**changes)
    expect(responder.serve(lambda: len(session.subflows) >= 2), f"subflows: {set(session.subflows)}")
    for number in sorted(session.subflows):
        token = session.challenge(number)
        expect(responder.serve(lambda token=token: token in session.answered), f"subflow {number} was not proven")
    expect(responder.serve(lambda: session.frames(f.PARAMS)), "no PARAMS came")
    return session


def first_datagram(responder):
    """(address, datagram) with which the edge begins; those that came with it are forgotten."""
    expect(responder.serve(lambda: responder.came), "nothing came")
    first = responder.came[0]
    responder.came.clear()
    return first


def alive(responder, session, subflow=0):
    number = session.send(bytes([f.PING]), subflow)
    return responder.serve(lambda: number in session.subflows[subflow].acked, 2)


@check
def initiator_hello(place, _):
    with edge(place) as responder:
        responder.accept()
        hello = responder.done()[-1].hello
    expect(hello.version == b"\xfe\xfd" and hello.compressions == b"\0", "version, or compression")
    expect(hello.suites - {0xff} == set(crypto.SUITES), f"{hello.suites}")
    expect(hello.groups() == {dtls.X25519, dtls.P256} and 23 in hello.extensions, f"groups: {hello.groups()}")
    names = hello.protocols()
    expect(len(names) == 2 and b"braid/2" in names, f"{names}")
    expect(35 not in hello.extensions, "it asks for tickets")


@check
def initiator_repeats(place, _):
    with edge(place, answers=False) as responder:
        responder.serve(timeout=2.5)
    came = [opened for _, opened in responder.came]
    expect(len(came) >= 4 and len({opened.nonce for opened in came}) == len(came), "nonces come twice")
    routes, runs = {address for address, _ in responder.came}, {(at, opened.id) for at, opened in responder.came}
    expect(len(runs) == len(routes), f"{len(runs)} handshakes on {len(routes)} routes")
    expect(all(map(no_cookie, came)), "a cookie that nobody gave")


@check
def initiator_cookie(place, _):
    with edge(place) as responder:
        expect(responder.serve(lambda: responder.came), "nothing came")
        address, first = responder.came[0]
        responder.serve(lambda: responder.done(), 3)
        mine = [opened for at, opened in responder.came if opened.id == first.id]
        expect(no_cookie(first) and len(mine) >= 3, f"{len(mine)} datagrams")
        expect(all(opened.cookie == responder.cookie(address) for opened in mine[1:]), "without the cookie")
        expect(mine[1].body[25:] == first.body[25:], "another ClientHello")


@check
def initiator_listen(place, _):
    with edge(place, answers=False) as responder:
        address, _ = first_datagram(responder)
        handshake = Handshake(responder.socket, address, place.identity.pin, dtls.Client(place.second, (b"braid/2",)))
        with place.counts("handshake_unexpected", 3, daemon=place.edge_gateway):
            for _ in range(3):
                handshake.send(handshake.client.hello())
            expect(not handshake.receive(timeout=SILENCE), "an answer")


@check
def initiator_again(place, _):
    with edge(place, answers=False) as responder:
        address, first = first_datagram(responder)
        for _ in range(5):  # one cookie, five times: one answer
            responder.reply(34, first.id, bytes(range(16)), address)
        responder.serve(timeout=0.1)
        answers = [opened for at, opened in responder.came if opened.id == first.id]
        expect(len(answers) == 1 and answers[0].cookie == bytes(range(16)), f"{len(answers)} answers")


@check
def initiator_strange(place, _):
    with edge(place, answers=False) as responder:
        address, first = first_datagram(responder)
        responder.reply(34, bytes(8), bytes(16), address)
        responder.reply(RESPONDER, bytes(8), os.urandom(50), address)
        responder.socket.sendto(os.urandom(100), address)
        responder.serve(timeout=0.1)
        expect(not [opened for _, opened in responder.came if not no_cookie(opened)], "it took what is not its own")
        responder.answers = True
        responder.accept()


@check
def initiator_pin(place, _):
    with edge(place, shown=dtls.Identity()) as responder:
        responder.serve(lambda: any(each.ended for each in responder.associations.values()), 3)
        expect(responder.associations and not responder.done(), "it has finished")
        expect(any(each.ended for each in responder.associations.values()), "no alert came")


@check
def initiator_version(place, _):
    with edge(place, protocol=b"braid/9") as responder:
        expect(not responder.serve(responder.done, 1.5), "it took a version that it has not offered")
        expect(responder.associations, "nothing came")


@check
def initiator_session(place, _):
    with edge(place) as responder:
        session = up(responder)
        first = {number: next(each for each in session.came if each.subflow == number) for number in (0, 1)}
        for number, datagram in first.items():
            expect(datagram.of(f.PATH_CHALLENGE) and len(datagram.raw) == 1200, f"{number}: {datagram.frames}")
            expect(datagram.of(*range(0x62, 0x80)), "no OPTIONAL in it")
        expect(alive(responder, session) and alive(responder, session, 1), "not acknowledged")


def padded(session):
    return [each for each in session.came if len(each.raw) == 1200 and each.of(f.PATH_CHALLENGE)]


@check
def initiator_names(place, _):
    with edge(place) as responder:
        session = up(responder)
        told = sorted({frame.content for each in padded(session) for frame in each.of(f.SUBFLOW_NAME)})
        expect(told == [b"lte", b"wifi"], f"{told}")
        for each in padded(session):
            kinds = [frame.type for frame in each.frames]
            expect(kinds.index(f.SUBFLOW_NAME) < kinds.index(f.PATH_CHALLENGE), f"{kinds}")


@check
def initiator_preference(place, _):
    uplinks = [{"name": "wifi", "interface": "wifi0"}, {"name": "lte", "interface": "lte0", "use": "backup"}]
    with edge(place, {"uplinks": uplinks}) as responder:
        session = up(responder)
        said = {frame.subflow: frame.use for each in padded(session) for frame in each.of(f.SUBFLOW_PREFERENCE)}
        names = {each.subflow: each.of(f.SUBFLOW_NAME)[0].content for each in padded(session)}
        backup = next(number for number, name in names.items() if name == b"lte")
        expect(said.get(backup) == 2 and said.get(1 - backup, 0) == 0, f"{said}")


@check
def initiator_data(place, _):
    with edge(place) as responder:
        session = up(responder)
        host = place.host()
        host.sendto(b"question", (SERVER_HOST, 7000))
        responder.serve(lambda: session.frames(f.DATA))
        frames = session.frames(f.DATA)
        expect(frames and inner.payload(frames[0].packet) == b"question" and frames[0].dsn == 0, f"{frames}")
        session.send(f.data(TIMELY, 0, inner.udp((SERVER_HOST, 7000), host.getsockname(), b"answer")))
        expect(host.recvfrom(100) == (b"answer", (SERVER_HOST, 7000)), "another answer")


@check
def initiator_subflow(place, _):
    with edge(place) as responder:
        session = up(responder)
        session.subflows[77] = session.subflows[0]
        with place.counts("unknown_subflow", daemon=place.edge_gateway):
            session.send(bytes([f.PING]), 77)


@check
def initiator_ignores(place, _):
    with edge(place) as responder:
        session = up(responder)
        number = session.send(f.preference(0, 99, use=2) + f.counted(f.SUBFLOW_NAME, b"mine") + f.renew_keys(1))
        expect(responder.serve(lambda: number in session.subflows[0].acked), "not acknowledged")
        responder.serve(timeout=SILENCE)
        expect(not session.frames(f.KEYS_READY), "it answered RENEW_KEYS")
        expect("mine" not in str(place.ask("status", daemon=place.edge_gateway)["peers"]), "it shows the name")


@check
def initiator_notice(place, _):
    with edge(place) as responder:
        session = up(responder)
        token = session.generations[0].return_token()
        responder.came.clear()
        with place.counts("restart_notice", 3, daemon=place.edge_gateway):
            for wrong in (notice(session.id, bytes(16)), notice(session.id ^ 1, token), notice(session.id, token)[:-1]):
                session.send_raw(wrong)
            expect(alive(responder, session), "a wrong notice has ended the session")
        expect(not responder.came, "a handshake begins without cause")
        session.send_raw(notice(session.id, token))
        expect(responder.serve(lambda: responder.came, 0.5), "no handshake begins")
        again = responder.accept()
        remote = next(address for address, _ in responder.came)
        responder.serve(lambda: again.frames(f.PARAMS))
        with place.counts("restart_notice", daemon=place.edge_gateway):
            responder.socket.sendto(notice(session.id, token), remote)
        expect(again.subflows and alive(responder, again, min(again.subflows)), "the notice took effect twice")


@check
def initiator_silence(place, _):
    with edge(place) as responder:
        up(responder)
        responder.came.clear()
        responder.session = None
        place.host().sendto(b"is somebody there", (SERVER_HOST, 7000))
        expect(responder.serve(lambda: responder.came, 6), "no handshake begins")


@check
def initiator_close(place, _):
    with edge(place) as responder:
        session = up(responder)
        session.send(struct.pack("!BB", f.CLOSE, 0))
        again = responder.accept()
        expect(again.id != session.id, "the same session")


@check
def initiator_forged(place, _):
    with edge(place) as responder:
        session = up(responder)
        with place.counts("forged_ack", daemon=place.edge_gateway):
            session.send(f.ack(0, {session.subflows[0].largest + 1000}))
            expect(responder.serve(lambda: session.frames(f.CLOSE)), "no CLOSE came")
        expect(session.frames(f.CLOSE)[0].reason == 1, f"{session.frames(f.CLOSE)}")


@check
def initiator_renews(place, _):
    with edge(place, {"tunnel": {"rekey-after": "10s"}}) as responder:
        session = up(responder)
        expect(responder.serve(lambda: session.frames(f.RENEW_KEYS), 15), "no RENEW_KEYS came")
        name = session.frames(f.RENEW_KEYS)[0].handshake
        fresh = next((keys for keys, of in (each.keys() for each in responder.done()) if of == name), None)
        expect(fresh, "it names a handshake that is not done")
        session.send(f.keys_ready(name ^ 1, 1))  # of another name: ignored
        responder.serve(timeout=SILENCE)
        expect(all(each.generation == 0 for each in session.came), "it seals in generation 1 too early")
        session.generations[1] = session.generations[0].next(fresh)
        session.send(f.keys_ready(name, 1))
        expect(responder.serve(lambda: any(each.generation == 1 for each in session.came)), "it stays in generation 0")
        first = next(each for each in session.came if each.generation == 1)
        expect(any(frame.handshake == name for frame in first.of(f.RENEW_KEYS)), f"{first.frames}")
        session.generation = 1
        expect(alive(responder, session), "generation 1 does not carry")
