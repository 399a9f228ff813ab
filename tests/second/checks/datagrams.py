"""Session datagrams: heads, seals, packet numbers (docs/protocol.md, section 3)."""

import time

from .. import frames as f
from ..handshake import SILENCE, arrives
from ..place import DAEMON
from ..session import Subflow
from . import check, expect
from .flows import TIMELY, carries, packet, received

PING = bytes([f.PING])


def in_vain(session, timeout=SILENCE):
    """Reads for a moment; nothing may come."""
    before = len(session.came)
    session.pump(timeout=timeout)
    expect(len(session.came) == before, f"it was answered: {[each.frames for each in session.came[before:]]}")


def quiet_session(place, **changes):
    """A session of which nothing more comes by itself: its MTU is known."""
    session = place.session(**changes)
    session.pump(timeout=0.05)
    return session


@check
def datagram_runt(place, _):
    session = quiet_session(place)
    with place.counts("runt_datagram", 26):
        for size in range(1, 26):
            session.send_raw(session.seal(PING)[1][:size])
        session.send_raw(session.seal(b"")[1])
        in_vain(session)


@check
def datagram_type(place, _):
    session = quiet_session(place)
    firsts = (0, 1, 20, 22, 31, 37, 63, 128, 192, 255)
    with place.counts("unknown_type", len(firsts)):
        for first in firsts:
            session.send_raw(bytes([first]) + session.seal(PING)[1][1:])
        in_vain(session)


@check
def datagram_version(place, _):
    session = quiet_session(place)
    with place.counts("unknown_version", 3):
        for version in (1, 2, 3):
            session.send(PING, version=version)
        in_vain(session)


@check
def datagram_session(place, _):
    session = quiet_session(place)
    with place.counts("unknown_session", 3):
        for name in (session.id ^ 1, 0, 0xffffffff):
            session.send(PING, name=name)
        in_vain(session)


@check
def datagram_tampered(place, _):
    session = quiet_session(place)
    number, datagram = session.seal(PING)
    before = sum(place.drops().values())
    for at in range(len(datagram)):
        session.send_raw(datagram[:at] + bytes([datagram[at] ^ 1 << at % 8]) + datagram[at + 1:])
    in_vain(session)
    grown = sum(place.drops().values()) - before
    expect(grown >= len(datagram), f"{grown} of {len(datagram)} are counted as dropped")
    session.send_raw(datagram)
    expect(session.acknowledged(number), "the true one was not taken")


@check
def datagram_replay(place, _):
    session, end = quiet_session(place), place.bound()
    _, datagram = session.seal(f.data(TIMELY, 0, packet(end, b"once")))
    with place.counts("replay", 2):
        for _ in range(3):
            session.send_raw(datagram)
        expect((got := received(end, 3, 0.3)) == [b"once"], f"{got}")


@check
def datagram_elsewhere(place, _):
    session, other = quiet_session(place), place.socket(1)
    _, datagram = session.seal(PING)
    session.send_raw(datagram)
    with place.counts("replay"):
        other.sendto(datagram, DAEMON)
        expect(not arrives(other, SILENCE), "something came to the other address")
    expect(session.alive(), "the session has moved")


@check
def datagram_window(place, _):
    session = quiet_session(place)
    top = session.send(PING, number=10000)
    expect(session.acknowledged(top), "the largest was not taken")
    expect(session.acknowledged(session.send(PING, number=top - 4095)), "4095 below was not taken")
    with place.counts("replay"):
        session.send(PING, number=top - 4096)
        expect(not session.acknowledged(top - 4096, timeout=SILENCE), "4096 below was taken")


@check
def datagram_wrap(place, _):
    session = quiet_session(place)
    for number in ((1 << 31) - 10, (1 << 32) - 20, (1 << 32) - 1, 1 << 32, (1 << 32) + 5, 3 << 31, (1 << 33) - 9,
                   (1 << 33) + 7):
        expect(session.acknowledged(session.send(PING, number=number)), f"{number} was not acknowledged")


@check
def datagram_used(place, _):
    session = quiet_session(place)
    with place.counts("bad_frame"):
        number = session.send(b"\x0f")
        expect(session.alive(), "the session has ended")
    with place.counts("replay"):
        session.send(PING, number=number)
        expect(not session.acknowledged(number, timeout=SILENCE), "the number was taken twice")


@check
def datagram_reflected(place, _):
    session = quiet_session(place)
    theirs = next(each for each in session.came if each.number == 0)
    with place.counts("replay"):  # its number has come
        session.send_raw(theirs.raw)
    session.forget()
    session.lost = lambda datagram: True
    session.send(PING)
    session.pump(timeout=0.05)
    later = theirs.raw[:6] + (session.subflows[0].next + 5).to_bytes(4, "big") + theirs.raw[10:]
    with place.counts("decrypt_failed"):
        session.send_raw(later)
    session.lost = lambda datagram: False
    expect(session.alive(), "the session has ended")


@check
def datagram_nonce(place, _):
    session = quiet_session(place)
    _, datagram = session.seal(PING)
    with place.counts("decrypt_failed", 2):
        session.send_raw(datagram[:5] + b"\x07" + datagram[6:])
        session.send_raw(datagram[:6] + (session.subflows[0].next + 9).to_bytes(4, "big") + datagram[10:])
        in_vain(session)


@check
def datagram_empty(place, _):
    session = quiet_session(place)
    with place.counts("runt_datagram"):
        session.send(b"")
        in_vain(session)


@check
def datagram_socket(place, _):
    session = place.keyed()
    session.subflows[0].socket = place.socket(1)
    carries(place, session.start())


@check
def datagram_many(place, _):
    session = place.session()
    for number in range(1, 32):
        session.subflows[number] = Subflow(session.subflows[0].socket, DAEMON)
        expect(session.alive(number), f"subflow {number} was not taken")
    session.subflows[200] = Subflow(session.subflows[0].socket, DAEMON)
    with place.counts("unknown_subflow", 2):
        number, datagram = session.seal(PING, 200)
        for _ in range(2):  # the number of a dropped one is not used up: no `replay`
            session.send_raw(datagram)
        expect(not session.acknowledged(number, 200, SILENCE), "it was acknowledged")


MOST_APART = 8192  # packet numbers between two that the daemon leaves out; an implementation's choice


def left_out(session):
    """Lets the daemon send until it has left out a packet number; the numbers left out so far. An answer to a challenge
    is a datagram of its own."""
    flow, deadline = session.subflows[0], time.monotonic() + 20
    while time.monotonic() < deadline and flow.largest < 2 * MOST_APART:
        before = flow.largest
        session.send(f.challenge(bytes(8)))
        session.pump(lambda before=before: flow.largest > before, 0.1)
        if before >= 0 and flow.largest > before + 1:
            session.pump(timeout=0.02)
            if missing := sorted(set(range(flow.largest)) - flow.got):
                return missing
    raise AssertionError(f"no number was left out among {flow.largest}")


@check
def datagram_numbers(place, _):
    session = quiet_session(place)
    missing = left_out(session)
    numbers = [each.number for each in session.came]
    expect(numbers[0] == 0 and numbers == sorted(set(numbers)), "they do not increase")
    expect(len(missing) == 1, f"left out: {missing}")
