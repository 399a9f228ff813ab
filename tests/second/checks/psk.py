"""Pre-shared keys and the key notice (docs/protocol.md, section 2)."""

import base64
import contextlib
import os
import time

from .. import frames as f
from ..envelope import KEY_NOTICE, notice
from ..handshake import SILENCE, arrives
from . import check, expect
from .datagrams import PING
from .flows import TIMELY, carries, packet, received
from .initiators import alive, edge, up
from .keys import made_ready, turn

REASON = "pre-shared key differs or is set on one side only"
FORGED = 0.5  # seconds for which what does not open may be forged


def key_file(place, key):
    """The name of a file with this pre-shared key."""
    path = place.lab.directory / "second.psk"
    path.touch(mode=0o600)
    path.write_bytes(base64.b64encode(key))
    return path.name


@contextlib.contextmanager
def shared(place, key):
    """The daemon has this pre-shared key for its edge meanwhile."""
    with place.changed(place.daemon.config["peers"][0], psk=key_file(place, key)):
        yield


def notices(socket, timeout):
    """The key notices that come to a socket in that time."""
    end, came = time.monotonic() + timeout, []
    while got := arrives(socket, end - time.monotonic()):
        came.append(got[0])
    expect(all(each[0] == KEY_NOTICE for each in came), f"something else came: {came}")
    return came


def refused(place, own):
    """Expects that nothing of a session with this pre-shared key opens, that it is told so, and its operator, too."""
    session, end = place.keyed(psk=own), place.bound()
    socket = session.subflows[0].socket
    content = f.data(TIMELY, 0, packet(end, b"refused"))
    with place.counts("decrypt_failed", 2):
        session.challenge()
        session.send(content)
        expect(not notices(socket, FORGED - 0.1), "a notice came at once")
        time.sleep(0.2)
    with place.counts("decrypt_failed", 12):
        for _ in range(12):
            session.send(content)
        came = notices(socket, SILENCE)
    true = notice(session.id, session.generations[0].notice_token, KEY_NOTICE)
    expect(came and set(came) == {true}, f"{came} instead of {true}")
    expect(len(came) <= 8, f"{len(came)} notices")
    expect(received(end, timeout=SILENCE) == [], "the packet was delivered")
    expect(not place.peer()["up"] and place.peer()["refusal"] == REASON, f"{place.peer()}")


@check
def psk_equal(place, _):
    key = os.urandom(32)
    with shared(place, key):
        session = place.session(psk=key)
        carries(place, session)
        expect(place.peer()["refusal"] == "", "it is refused")


@check
def psk_renewed(place, _):
    key = os.urandom(32)
    with shared(place, key):
        session = place.session(psk=key)
        session.pump(timeout=0.05)
        made_ready(place, session, key)
        turn(session)
        carries(place, session)


@check
def psk_missing(place, _):
    with shared(place, os.urandom(32)):
        refused(place, None)


@check
def psk_extra(place, _):
    refused(place, os.urandom(32))


@check
def psk_other(place, _):
    with shared(place, os.urandom(32)):
        refused(place, os.urandom(32))


@check
def psk_forged(place, _):
    session = place.keyed()
    socket = session.subflows[0].socket
    _, datagram = session.seal(PING)
    forged = datagram[:-1] + bytes([datagram[-1] ^ 1])
    session.send_raw(forged)
    session.start()
    time.sleep(FORGED)
    session.pump(timeout=0.05)
    with place.counts("decrypt_failed"):
        session.send_raw(forged)
    while got := arrives(socket, SILENCE):
        expect(got[0][0] != KEY_NOTICE, "a notice came in a session that works")
    expect(session.alive(), "the session has ended")


@check
def psk_changed(place, _):
    session = place.session()
    with shared(place, os.urandom(32)):
        with place.counts("unknown_session"):
            expect(not session.alive(timeout=SILENCE), "the session lives")


@check
def psk_responder(place, _):
    session = place.session()
    with place.counts("key_notice", 4):
        token = session.generations[0].notice_token
        for content in (notice(session.id, token, KEY_NOTICE), notice(session.id, bytes(16), KEY_NOTICE),
                        notice(session.id ^ 1, token, KEY_NOTICE), notice(session.id, token, KEY_NOTICE)[:-1]):
            session.send_raw(content)
    expect(session.alive(), "the session has ended")


def told(place):
    """Whether the daemon at the edge says that its session was refused."""
    return place.ask("status", daemon=place.edge_gateway)["peers"][0]["refusal"] == REASON


@check
def psk_initiator(place, _):
    peer = {**place.edge_gateway.config["peers"][0], "psk": key_file(place, os.urandom(32))}
    with edge(place, {"peers": [peer]}) as responder:
        session = responder.accept()
        responder.serve(timeout=SILENCE)
        expect(not session.came, "what the edge seals opens")
        token, remote = session.generations[0].notice_token, responder.came[-1][0]
        with place.counts("key_notice", 3, daemon=place.edge_gateway):
            for wrong in (notice(session.id, bytes(16), KEY_NOTICE), notice(session.id ^ 1, token, KEY_NOTICE),
                          notice(session.id, token, KEY_NOTICE) + b"\0"):
                responder.socket.sendto(wrong, remote)
        expect(not told(place), "a wrong notice took effect")
        responder.socket.sendto(notice(session.id, token, KEY_NOTICE), remote)
        expect(responder.serve(lambda: told(place), 1), "it does not say that the keys differ")
        before = len(responder.done())
        expect(responder.serve(lambda: len(responder.done()) > before, 5), "no handshake begins")


@check
def psk_notice(place, _):
    with edge(place) as responder:
        session = up(responder)
        true = notice(session.id, session.generations[0].notice_token, KEY_NOTICE)
        with place.counts("key_notice", daemon=place.edge_gateway):
            session.send_raw(true)
        expect(alive(responder, session) and not told(place), "a notice ended a session that works")
