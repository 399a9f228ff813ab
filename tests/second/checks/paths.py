"""Routes, subflows, what the peer says of them, and the end of a session (docs/protocol.md, sections 9 and 10)."""

import contextlib
import os
import time

from .. import frames as f
from ..envelope import NOTICE, notice
from ..handshake import SILENCE, arrives
from ..place import DAEMON
from . import check, expect
from .datagrams import PING, quiet_session
from .flows import TIMELY, arrived, burst, carries, packet, received


def heard(session, socket, timeout=SILENCE):
    """Datagrams of the session that come to a socket which none of its subflows uses."""
    out, deadline = [], time.monotonic() + timeout
    while got := arrives(socket, deadline - time.monotonic()):
        if datagram := session.open(got[0], (socket, got[1])):
            out.append(datagram)
    return out


def ping_from(session, socket, content=PING, **changes):
    """Sends a datagram of the session from another socket; returns its number."""
    number, datagram = session.seal(content, **changes)
    socket.sendto(datagram, DAEMON)
    return number


@check
def path_token(place, _):
    session = place.keyed()
    for _ in range(3):
        token = session.challenge()
        expect(session.pump(lambda token=token: token in session.answered), "no answer came")
        carrier = next(each for each in session.came if any(x.token == token for x in each.of(f.PATH_RESPONSE)))
        expect(len(carrier.raw) == 35, f"{len(carrier.raw)} bytes")
    other = place.socket(1)
    token = os.urandom(8)
    ping_from(session, other, f.challenge(token).ljust(1174, b"\0"))
    answers = [frame.token for each in heard(session, other) for frame in each.of(f.PATH_RESPONSE)]
    expect(answers == [token], f"{answers}")


@check
def path_tokens(place, _):
    tokens = [frame.token for _ in range(20) for frame in place.session().frames(f.PATH_CHALLENGE)]
    expect(len(tokens) >= 20 and len(set(tokens)) == len(tokens), "tokens come twice")


@check
def path_unproven(place, _):
    session = place.keyed(answers=False)
    session.send(PING)
    session.send(f.challenge(bytes(8)))
    sent = 27 + 35
    burst(place, session, 20)
    session.pump(timeout=1)
    expect(session.frames(f.PATH_CHALLENGE), "no challenge came")
    expect(not session.frames(f.DATA), "data came")
    expect((came := sum(len(each.raw) for each in session.came)) <= 3 * sent, f"{came} bytes for {sent}")


@check
def path_challenges(place, _):
    session = place.keyed(answers=False, acks=False)
    session.challenge()
    session.pump(timeout=12)
    carriers = [each for each in session.came if each.of(f.PATH_CHALLENGE)]
    pauses = [after.at - before.at for before, after in zip(carriers, carriers[1:])]
    expect(2 <= len(carriers) <= 8, f"{len(carriers)} challenges")
    expect(all(0.9 * before < after for before, after in zip(pauses, pauses[1:])), f"pauses: {pauses}")
    expect(sum(len(each.raw) >= 1200 for each in carriers) <= 2, "more than two are padded")
    expect(sum(len(each.raw) for each in session.came) <= 3 * 1200, "more than three times what came")


@check
def path_stray(place, _):
    session, other = place.keyed(answers=False), place.socket(1)
    session.challenge()
    frame = session.wait_for(f.PATH_CHALLENGE)
    expect(frame, "no challenge came")
    with place.counts("stray_path_response"):
        ping_from(session, other, f.response(frame.token), number=0 if session.subflows[0].next == 0 else None)
    burst(place, session, 5)
    session.pump(timeout=0.3)
    expect(not session.frames(f.DATA) and not [each for each in heard(session, other) if each.of(f.DATA)],
           "data came to a route that is not proven")


@check
def path_moves(place, _):
    session, other = quiet_session(place), place.socket(1)
    ping_from(session, other)
    challenges = [frame for each in heard(session, other) for frame in each.of(f.PATH_CHALLENGE)]
    expect(challenges, "no challenge came to the new route")
    burst(place, session, 5, size=150)
    session.pump(lambda: len(set(arrived(session, 150))) == 5)
    expect(len(set(arrived(session, 150))) == 5, f"by the old route only {arrived(session, 150)} came")
    expect(not [each for each in heard(session, other, 0.01) if each.of(f.DATA)], "data comes by the new route, too")
    session.subflows[0].socket = other
    session.send(f.response(challenges[-1].token))
    burst(place, session, 5, size=160)
    session.pump(lambda: len(set(arrived(session, 160))) == 5)
    expect(len(set(arrived(session, 160))) == 5, f"by the new route only {arrived(session, 160)} came")


@check
def path_victim(place, _):
    session, victim = quiet_session(place), place.socket(1)
    sent = 0
    for _ in range(10):
        ping_from(session, victim)
        sent += 27
        burst(place, session, 20)
        session.pump(timeout=0.02)
    came, deadline = 0, time.monotonic() + 1.5
    while got := arrives(victim, deadline - time.monotonic()):
        came += len(got[0])
    expect(0 < came <= 3 * sent, f"{came} bytes for {sent}")


@check
def path_older(place, _):
    session, other = quiet_session(place), place.socket(1)
    older, datagram = session.seal(PING)
    expect(session.alive(), "the session has ended")
    other.sendto(datagram, DAEMON)
    expect(not arrives(other, SILENCE), "something came there")
    expect(session.acknowledged(older), "it was not acknowledged at the old route")


def two(place):
    """A session with a subflow by each uplink."""
    session = quiet_session(place).add_subflow(place.socket(1), DAEMON)
    session.pump(timeout=SILENCE)
    return session


def users(place, session, count=40):
    """The subflows on which the packets of a burst come."""
    session.forget()
    end = place.bound()
    for turn in range(count // 10):
        burst(place, session, 10, end)
        session.pump(timeout=0.02)
    session.pump(timeout=0.1)
    return {each.subflow for each in session.came if each.of(f.DATA)}


@check
def path_second(place, _):
    session = two(place)
    expect(session.alive(1), "not acknowledged")
    acks = [each.subflow for each in session.came if any(frame.subflow == 1 for frame in each.of(*f.ACKS))]
    expect(set(acks) == {1}, f"its ACKs come on {set(acks)}")
    carries(place, session, subflow=1)


@check
def path_first(place, _):
    session, end = place.keyed(), place.bound()
    session.send(f.data(TIMELY, 0, packet(end, b"first")))
    expect(received(end) == [b"first"], "it was not delivered")


@check
def status_refuses(place, _):
    session = two(place)
    for gone in (0, 1):
        expect(session.pump(lambda: place.shown(0)["state"] == place.shown(1)["state"] == "active"), "not in use")
        session.send(f.status(gone, 10 + 2 * gone, 0), 1 - gone)
        expect(session.alive(1 - gone), "not acknowledged")
        expect((used := users(place, session)) == {1 - gone}, f"without {gone} data comes on {used}")
        session.forget()
        session.send(f.status(gone, 11 + 2 * gone, 1), 1 - gone)

        def probed(gone=gone):
            return any(frame.eliciting() for each in session.came if each.subflow == gone for frame in each.frames)

        expect(session.pump(probed, 1), "it is not probed")


@check
def status_sequence(place, _):
    session = two(place)
    session.send(f.status(0, 10, 0), 1)
    session.send(f.status(0, 9, 1), 1)
    session.send(f.status(0, 10, 1), 1)
    expect(session.alive(1), "not acknowledged")
    expect((used := users(place, session)) == {1}, f"data comes on {used}")


@check
def preference_backup(place, _):
    session = two(place)
    for backup in (0, 1):
        session.send(f.preference(backup, 10 + backup, use=2))
        session.send(f.preference(1 - backup, 10 + backup, use=0))
        expect(session.alive(), "not acknowledged")
        expect((used := users(place, session)) == {1 - backup}, f"data comes on {used}")


@check
def preference_sequence(place, _):
    session = two(place)
    session.send(f.preference(0, 10, use=2))
    session.send(f.preference(0, 9, use=0))
    session.send(f.preference(0, 10, use=0))
    expect(session.alive(), "not acknowledged")
    expect((used := users(place, session)) == {1}, f"data comes on {used}")


@check
def preference_ceiling(place, _):
    session, end, ceiling = quiet_session(place), place.bound(), 50000
    expect(session.acknowledged(session.send(f.preference(0, 1, uplink=1, ceiling=ceiling))), "not acknowledged")
    session.pump(timeout=0.5)
    session.forget()
    began = time.monotonic()
    while time.monotonic() - began < 4:
        burst(place, session, 10, end, size=1000)
        session.pump(timeout=0.05)
    took = time.monotonic() - began
    came = sum(len(each.raw) + 28 for each in session.came)
    expect(0.5 * ceiling * took < came <= ceiling * took + 11 * 1500, f"{came} bytes in {took:.1f} s")


@check
def path_keepalive(place, _):
    before = place.daemon.config["peers"][0]
    with place.changed(before, keepalive="500ms"):
        session = quiet_session(place)
        session.forget()
        session.pump(timeout=1.7)
        pings = [each for each in session.came if each.of(f.PING)]
        expect(2 <= len(pings) <= 5, f"{len(pings)} in 1.7 s")


@check
def path_probe(place, _):
    session = place.session()
    session.pump(timeout=0.3)
    probes = [each for each in session.came if len(each.raw) > 1200]
    expect(probes and all([frame.type for frame in each.frames] == [f.PING] for each in probes), "no probe, or another")
    expect(len(probes[0].raw) == 1500 - 28, f"the first has {len(probes[0].raw)} bytes")


# ---- the end

@check
def end_close(place, _):
    session = quiet_session(place)
    session.send(bytes([f.CLOSE, 0]))
    with place.counts("unknown_session"):
        expect(not session.alive(timeout=SILENCE), "the session lives")
    expect(not place.peer()["up"], "the peer is up")


@check
def end_notice(place, _):
    session = quiet_session(place)
    token = session.generations[0].return_token()
    with place.counts("restart_notice", 5):
        for content in (notice(session.id, token), notice(session.id, bytes(16)), notice(session.id ^ 1, token),
                        notice(session.id, token)[:-1], notice(session.id, token) + b"\0"):
            session.send_raw(content)
        expect(not arrives(session.subflows[0].socket, SILENCE), "it was answered")
    expect(session.alive(), "the session has ended")


@contextlib.contextmanager
def away(place, number):
    """Ends the daemon with a signal, and starts it again behind the block."""
    place.daemon.stop(number)
    try:
        yield
    finally:
        if not place.daemon.process:
            place.daemon.start()


@check
def end_stops(place, _):
    session = quiet_session(place)
    with away(place, 15):
        close = session.wait_for(f.CLOSE)
        expect(close and close.reason == 0, f"{close}")


@check
def end_killed(place, _):
    session = quiet_session(place)
    token, socket = session.generations[0].return_token(), session.subflows[0].socket
    time.sleep(0.5)  # until the routes are on the disk
    with away(place, 9):
        while arrives(socket, 0):
            pass
        place.daemon.start()
        came, deadline = [], time.monotonic() + 1.2
        session.send(PING)
        while got := arrives(socket, deadline - time.monotonic()):
            came.append((time.monotonic(), got[0]))
        expect(len(came) >= 3 and all(content == notice(session.id, token) for _, content in came),
               f"{[content.hex() for _, content in came]}")
        expect(came[0][1][0] == NOTICE and len(came[0][1]) == 21, "not 21 bytes")
        pauses = [after[0] - before[0] for before, after in zip(came, came[1:])]
        expect(all(before < after for before, after in zip(pauses, pauses[1:])), f"pauses: {pauses}")
    place.handshake(socket=socket).run()
    session.pump(timeout=0.05)
    expect(not arrives(socket, 2), "they come behind a handshake, too")
