"""Acknowledgment and loss (docs/protocol.md, section 7)."""

import socket as sockets
import struct
import time

from .. import frames as f
from ..handshake import SILENCE
from ..session import OWN_PARAMS, codepoint
from . import check, expect
from .datagrams import PING, left_out, quiet_session
from .flows import arrived, burst

LIE = 1  # reason of CLOSE


def acks_of(session, subflow=0):
    return [frame for frame in session.frames(*f.ACKS) if frame.subflow == subflow]


@check
def ack_soon(place, _):
    session = quiet_session(place)
    took = []
    for _ in range(5):
        began = time.monotonic()
        expect(session.alive(), "not acknowledged")
        took.append(time.monotonic() - began)
    expect(min(took) < 0.02, f"{took}")


@check
def ack_eighth(place, _):
    session = quiet_session(place)
    session.forget()
    numbers = [session.send(PING) for _ in range(64)]
    expect(session.pump(lambda: set(numbers) <= session.subflows[0].acked), "not all are acknowledged")
    expect(len(acks_of(session)) <= 20, f"{len(acks_of(session))} ACKs")


@check
def ack_gap(place, _):
    session = quiet_session(place)
    first = session.send(PING)
    expect(session.acknowledged(first), "not acknowledged")
    session.forget()
    last = session.send(PING, number=first + 4)
    began = time.monotonic()
    expect(session.acknowledged(last), "not acknowledged")
    expect(time.monotonic() - began < 0.02, "not told at once")
    expect(not {first + 1, first + 2, first + 3} & session.subflows[0].acked, "what did not come is acknowledged")


@check
def ack_ranges(place, _):
    session = quiet_session(place)
    base = session.subflows[0].next
    for turn in range(100):
        session.send(PING, number=base + 2 * turn)
    top = base + 198
    expect(session.acknowledged(top), "not acknowledged")
    last = [frame for frame in acks_of(session) if frame.largest == top][-1]
    expect(len(last.ranges) == 32 and last.ranges[0] == (top, top), f"{last.ranges}")
    expect(not {base + 2 * turn + 1 for turn in range(100)} & session.subflows[0].acked, "numbers that did not come")


@check
def ack_quiet(place, _):
    session = quiet_session(place)
    session.forget()
    quiet = [b"\0" * 9, f.challenge(bytes(8)), f.response(bytes(8)), f.recovered(0, 0, 1),
             f.counted(f.SUBFLOW_NAME, b"name"), f.counted(f.OBSERVED_ADDRESS, bytes(6)), f.counted(0x70, b"x"),
             f.ack(0, session.subflows[0].got)]
    for content in quiet:
        session.send(content)
    session.pump(timeout=2 * SILENCE)
    expect(not acks_of(session), f"{acks_of(session)}")


@check
def ack_ecn(place, _):
    session = quiet_session(place)
    socket = session.subflows[0].socket
    for value in (2, 2, 2, 1, 1):
        codepoint(socket, value)
        expect(session.alive(), "not acknowledged")
    codepoint(socket, 3)
    began = time.monotonic()
    expect(session.alive(), "not acknowledged")
    expect(time.monotonic() - began < 0.02, "CE is not told at once")
    counts = acks_of(session)[-1].ecn
    expect(counts == [3, 2, 1], f"ECT(0), ECT(1), CE: {counts}")


def liar(place, session, content):
    """Expects that this ends the session as a lie."""
    with place.counts("forged_ack"):
        session.send(content)
        close = session.wait_for(f.CLOSE)
        expect(close and close.reason == LIE, f"{close}")
    with place.counts("unknown_session"):
        session.send(PING)


@check
def ack_forged(place, _):
    session = quiet_session(place)
    liar(place, session, f.ack(0, {session.subflows[0].largest + 100}))


@check
def ack_subflow(place, _):
    liar(place, quiet_session(place), f.ack(99, {0}))


@check
def ack_skipped(place, _):
    session = quiet_session(place)
    liar(place, session, f.ack(0, left_out(session)))


@check
def ack_delay(place, _):
    session = quiet_session(place)
    expect(session.acknowledged(session.send(PING + f.ack(0, session.subflows[0].got, (1 << 62) - 1))), "not taken")
    expect(session.alive(), "the session has ended")


TIMES = 7  # RECEIVE_TIMES


@check
def ack_times(place, _):
    session = place.keyed().start(params=(*OWN_PARAMS[:-1], (TIMES, 1), OWN_PARAMS[-1]))
    expect(session.alive(), "not acknowledged")
    session.forget()
    began, sent = time.monotonic(), []
    for _ in range(5):
        sent.append(time.monotonic() - began)
        expect(session.alive(), "not acknowledged")
        session.pump(timeout=0.05)
    timed = session.frames(f.ACK_TIMED)
    expect(len(timed) >= 5 and not session.frames(f.ACK), f"{acks_of(session)}")
    told = [(timed[n].micros - timed[0].micros) % (1 << 31) / 1e6 for n in range(5)]
    late = max(abs(heard - own) for heard, own in zip(told, sent))
    expect(late < 0.02, f"sent at {sent}, received at {told}")


@check
def ack_untimed(place, _):
    session = quiet_session(place)
    session.forget()
    expect(session.alive() and acks_of(session), "not acknowledged")
    expect(not session.frames(f.ACK_TIMED), "a receive time that nobody asked for")


@check
def ack_time(place, _):
    session = quiet_session(place)
    for micros in (0, 1 << 30, (1 << 31) - 1, 5):
        number = session.send(PING + f.timed(f.ack(0, session.subflows[0].got), micros, micros & 1))
        expect(session.acknowledged(number), f"{micros} was not taken")
    expect(session.alive(), "the session has ended")


@check
def loss_again(place, _):
    session = quiet_session(place)
    victims = []

    def lost(datagram):
        if not victims and any(arrived_number(frame) == 5 for frame in datagram.of(f.DATA)):
            victims.append(datagram)
        return datagram in victims

    session.lost = lost
    burst(place, session, 20)
    expect(session.pump(lambda: set(range(20)) <= set(arrived(session))), f"{arrived(session)}")
    expect(victims and all(each.number > victims[0].number for each in session.came
                           if any(arrived_number(frame) == 5 for frame in each.of(f.DATA))), "under an old number")


def arrived_number(frame):
    """The number of a packet of burst()."""
    return int.from_bytes(frame.packet[28:30], "big")


@check
def loss_all(place, _):
    session = quiet_session(place, acks=True)
    session.acks = False
    session.forget()
    # Of a flow of ordered data: an echo request is a timely datagram, TCP is not.
    segment = struct.pack("!HHIIBBHHH", 7777, 5000, 1, 0, 5 << 4, 2, 1000, 0, 0)
    raw = place.keep(place.lab.server.inside(sockets.socket, sockets.AF_INET, sockets.SOCK_RAW, sockets.IPPROTO_TCP))
    raw.sendto(segment, ("192.168.10.2", 0))
    expect(session.pump(lambda: len(session.frames(f.DATA)) >= 2, 3), "it did not come again")
    first = session.frames(f.DATA)
    expect(len({(frame.flow, frame.dsn) for frame in first}) == 1, "another packet")


@check
def loss_ect(place, _):
    session = quiet_session(place)
    session.forget()
    burst(place, session, 20)
    for _ in range(20):
        expect(session.alive(), "not acknowledged")
    marks = {True: set(), False: set()}
    for each in session.came:
        marks[any(frame.eliciting() for frame in each.frames)].add(each.codepoint)
    expect(marks == {True: {2}, False: {0}}, f"ack-eliciting: {marks[True]}, others: {marks[False]}")
