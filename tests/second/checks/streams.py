"""Streams (docs/protocol.md, section 13)."""

import contextlib
import socket as sockets
import struct
import time

from .. import frames as f
from ..handshake import SILENCE
from ..place import ELSEWHERE, HOST, SERVER
from ..session import OWN_PARAMS
from . import check, expect
from .datagrams import quiet_session
from .flows import GATEWAY

REFUSED, LIMIT, LOST, FORBIDDEN = 1, 4, 5, 6  # codes of STREAM_RESET
WINDOW = 65536  # what a stream of this peer may send before a STREAM_CREDIT: `receive-window` and the parameter
PORT = 8080
CLIENT = (HOST, 40000)


def listener(place, port=PORT):
    return place.bound(sockets.SOCK_STREAM, port)


def opened(number=0, content=b"", server=(SERVER, PORT), client=CLIENT, credit=100000, asking=False, fin=False):
    """The first frame of a stream."""
    return f.stream(number, 0, content, f.opening(client, server, credit, asking), fin)


def accept(place, listening, timeout=2):
    """A connection that has come, or None."""
    listening.settimeout(timeout)
    try:
        connection = place.keep(listening.accept()[0])
    except TimeoutError:
        return None
    connection.settimeout(2)
    return connection


def connected(place, session, content=b"", **more):
    """(connection at the server, listening socket) of stream 0 of a session."""
    listening = listener(place)
    session.send(opened(0, content, **more))
    connection = accept(place, listening)
    expect(connection, "the daemon did not connect")
    return connection, listening


def read(connection, size):
    out = b""
    while len(out) < size and (part := connection.recv(size - len(out))):
        out += part
    return out


def bytes_of(session, number=0):
    """The bytes of a stream that have come, in order; those behind a hole are left out."""
    out = b""
    for frame in sorted((each for each in session.frames(*range(f.STREAM, f.STREAM + 4)) if each.stream == number),
                        key=lambda each: each.offset):
        if frame.offset <= len(out):
            out += frame.data[len(out) - frame.offset:]
    return out


def reset_of(session, number=0, timeout=2):
    """The code of the STREAM_RESET that comes, or None."""
    frame = session.wait_for(f.STREAM_RESET, where=lambda each: each.stream == number, timeout=timeout)
    return frame and frame.code


def is_reset(connection):
    """Whether a connection ends by a reset."""
    with contextlib.suppress(TimeoutError):
        try:
            connection.recv(1)
        except ConnectionResetError:
            return True
    return False


@check
def stream_open(place, _):
    session = quiet_session(place)
    connection, _ = connected(place, session, b"question")
    expect(connection.getpeername() == CLIENT, f"from {connection.getpeername()}")
    expect(read(connection, 8) == b"question", "other bytes")
    connection.sendall(b"answer")
    expect(session.pump(lambda: bytes_of(session) == b"answer"), f"{bytes_of(session)}")


@check
def stream_asks(place, _):
    session = quiet_session(place)
    listener(place)
    session.send(opened(asking=True))
    credit = session.wait_for(f.STREAM_CREDIT, where=lambda frame: frame.stream == 0)
    expect(credit and credit.limit >= WINDOW, f"{credit}")


@check
def stream_refused(place, _):
    session = quiet_session(place)
    session.send(opened(server=(SERVER, 81)))
    expect((code := reset_of(session)) == REFUSED, f"{code}")


def all_forbidden(place, openings):
    session, listening = quiet_session(place), listener(place)
    for turn, more in enumerate(openings):
        session.send(opened(2 * turn, b"forbidden", **more))
        expect((code := reset_of(session, 2 * turn)) == FORBIDDEN, f"{more}: code {code}")
    expect(not accept(place, listening, SILENCE), "a connection was made")


@check
def stream_source(place, _):
    all_forbidden(place, [{"client": (address, 40000)} for address in
                          (SERVER, ELSEWHERE, GATEWAY, "127.0.0.1", "198.18.0.1", "0.0.0.0", "224.0.0.1")])


@check
def stream_destination(place, _):
    all_forbidden(place, [{"server": (address, PORT)} for address in
                          ("127.0.0.1", "0.0.0.0", "169.254.169.254", "224.0.0.1", "255.255.255.255", GATEWAY,
                           "203.0.113.1", "192.168.100.1", ELSEWHERE, HOST)])


@check
def stream_order(place, _):
    session = quiet_session(place)
    connection, _ = connected(place, session, b"0123")
    for offset, content in ((12, b"cdef"), (6, b"6789ab"), (12, b"cdef"), (2, b"234567"), (0, b"01234567")):
        session.send(f.stream(0, offset, content))
    expect((got := read(connection, 16)) == b"0123456789abcdef", f"{got}")
    connection.settimeout(0.1)
    with contextlib.suppress(TimeoutError):
        expect(not connection.recv(1), "bytes came twice")
        raise AssertionError("the connection has ended")


@check
def stream_half(place, _):
    session = quiet_session(place)
    connection, _ = connected(place, session, b"all")
    session.send(f.stream(0, 3, fin=True))
    expect(read(connection, 100) == b"all", "its end did not come")
    connection.sendall(b"later")
    connection.close()
    expect(session.wait_for(*range(f.STREAM, f.STREAM + 4), where=lambda frame: frame.fin), "no end came")
    expect(bytes_of(session) == b"later", f"{bytes_of(session)}")


@check
def stream_reset(place, _):
    session = quiet_session(place)
    connection, _ = connected(place, session)
    expect(session.acknowledged(session.send(f.stream_reset(0, 0))), "not acknowledged")
    expect(is_reset(connection), "it was not reset")


@check
def stream_code(place, _):
    session = quiet_session(place)
    connection, _ = connected(place, session)
    session.send(f.stream_reset(0, 1000))
    expect(is_reset(connection), "it was not reset")


@check
def stream_overtakes(place, _):
    session, listening = quiet_session(place), listener(place)
    session.send(f.stream_reset(0, 0))
    session.send(opened(0, b"late"))
    expect(not accept(place, listening, SILENCE), "a connection was made")


@check
def stream_gone(place, _):
    session = quiet_session(place)
    connection, listening = connected(place, session)
    session.send(f.stream_reset(0, 0))
    expect(is_reset(connection), "it was not reset")
    for content in (f.stream(0, 0, b"gone"), f.stream(0, 4, fin=True), f.stream_credit(0, 1 << 20), opened(0, b"again"),
                    f.stream_reset(0, 3)):
        expect(session.acknowledged(session.send(content)), "not acknowledged")
    expect(not accept(place, listening, SILENCE), "a connection was made")


@check
def stream_repeated(place, _):
    session = quiet_session(place)
    other = listener(place, PORT + 1)
    connection, listening = connected(place, session, b"once")
    for content in (opened(0, b"once"), opened(0, b"once"), opened(0, b"once", server=(SERVER, PORT + 1))):
        session.send(content)
    expect(not accept(place, listening, SILENCE) and not accept(place, other, 0.01), "another connection was made")
    expect(read(connection, 4) == b"once", "other bytes")


@check
def stream_number(place, _):
    session, listening = quiet_session(place), listener(place)
    for number in (1, 3, 101):
        session.send(opened(number, b"odd"))
    expect(not accept(place, listening, SILENCE), "a connection was made")
    expect(session.alive(), "the session has ended")


@check
def stream_rationed(place, _):
    session = quiet_session(place)
    connection, _ = connected(place, session, credit=1000)
    connection.sendall(bytes(5000))
    for raised, most in ((None, 1000), (3000, 3000), (2000, 3000), (5000, 5000)):
        if raised:
            session.send(f.stream_credit(0, raised))
        session.pump(lambda most=most: len(bytes_of(session)) >= most, 1)
        session.pump(timeout=0.1)
        expect((came := len(bytes_of(session))) == most, f"{came} bytes with a credit of {most}")


def bad(place, session, *contents):
    with place.counts("bad_frame", len(contents)):
        numbers = [session.send(content) for content in contents]
        expect(session.alive(), "the session has ended")
    expect(not session.subflows[0].acked & set(numbers), "it is acknowledged")


@check
def stream_limit(place, _):
    session = quiet_session(place)
    connected(place, session)
    bad(place, session, f.stream(0, WINDOW, b"x"), f.stream(0, 1 << 40, b"x"), f.stream(0, WINDOW - 1, b"xx"))


@check
def stream_final(place, _):
    session = quiet_session(place)
    connected(place, session, b"0123456789")
    expect(session.acknowledged(session.send(f.stream(0, 20, fin=True))), "not acknowledged")
    bad(place, session, f.stream(0, 21, fin=True), f.stream(0, 15, fin=True), f.stream(0, 18, b"abc"),
        f.stream(0, 30, b"x"))


@check
def stream_slow(place, _):
    session, chunk = quiet_session(place), 1000
    connection, _ = connected(place, session)
    sent, deadline = 0, time.monotonic() + 10

    def limit():
        return max([WINDOW, *(frame.limit for frame in session.frames(f.STREAM_CREDIT))])

    def fill():
        nonlocal sent
        while sent + chunk <= limit() and time.monotonic() < deadline:
            session.acknowledged(session.send(f.stream(0, sent, bytes(chunk))))
            sent += chunk

    fill()
    while session.pump(lambda: sent + chunk <= limit(), 0.3):
        fill()
    expect(time.monotonic() < deadline, f"{sent} bytes are taken, and the credit does not end")
    session.acks = True
    expect(len(read(connection, sent)) == sent, "bytes are lost")
    expect(session.pump(lambda: sent + chunk <= limit(), 1), "the credit was not raised")


@check
def stream_held(place, _):
    session = quiet_session(place)
    connection, _ = connected(place, session)
    session.acks = False
    connection.sendall(b"answer")

    def twice():
        carriers = [each for each in session.came if each.of(*range(f.STREAM, f.STREAM + 4))]
        return len({each.number for each in carriers}) > 1

    expect(session.pump(twice, 3), "they came once")


@check
def stream_many(place, _):
    session, listening = quiet_session(place), listener(place)
    for turn in range(200):
        session.send(opened(2 * turn, b"many"))
    codes = set()
    session.pump(lambda: any(frame.code == LIMIT for frame in session.frames(f.STREAM_RESET)), 2)
    codes = {frame.code for frame in session.frames(f.STREAM_RESET)}
    expect(codes == {LIMIT}, f"codes: {codes}")
    expect(accept(place, listening), "none was connected")


@check
def stream_stale(place, _):
    session = quiet_session(place)
    session.send(opened(2 * 16390, server=(SERVER, 81)))
    expect((code := reset_of(session, 2 * 16390)) == REFUSED, f"{code}")
    session.send(opened(0, server=(SERVER, 81)))
    expect((code := reset_of(session)) == LOST, f"{code}")


def from_host(place, address=(HOST, 8081)):
    """A connection that a host behind the daemon has begun, to a host behind this peer."""
    def begin():
        socket = sockets.socket()
        socket.setblocking(False)
        socket.connect_ex(address)
        return socket

    connection = place.keep(place.lab.server.inside(begin))
    connection.settimeout(2)
    return connection


def opening_of(session):
    frame = session.wait_for(f.STREAM | f.OPEN, f.STREAM | f.OPEN | f.FIN)
    expect(frame, "the daemon opened no stream")
    return frame


@check
def stream_theirs(place, _):
    session = quiet_session(place)
    connection = from_host(place)
    first = opening_of(session)
    expect(first.stream % 2 == 1 and first.server == (HOST, 8081) and first.client == connection.getsockname(),
           f"{first}")
    session.send(f.stream_credit(first.stream, first.credit))
    time.sleep(0.05)
    connection.sendall(b"from behind")
    expect(session.pump(lambda: bytes_of(session, first.stream) == b"from behind"), "other bytes")
    session.send(f.stream(first.stream, 0, b"to there"))
    expect(read(connection, 8) == b"to there", "other bytes")


@check
def stream_refusal(place, _):
    session = quiet_session(place)
    connection = from_host(place)
    session.send(f.stream_reset(opening_of(session).stream, REFUSED))
    expect(is_reset(connection), "it was not reset")


@check
def stream_session(place, _):
    session = quiet_session(place)
    connection, _ = connected(place, session)
    session.send(bytes([f.CLOSE, 0]))
    expect(is_reset(connection), "it was not reset")


@check
def params_lanes(place, _):
    session = place.keyed().start(tuple(entry for entry in OWN_PARAMS if entry[0] < 4))
    session.forget()
    from_host(place)

    def syn(frame):
        return frame.packet[9] == 6 and struct.unpack("!H", frame.packet[22:24])[0] == 8081

    expect(session.wait_for(f.DATA, where=syn), "no SYN came")
    expect(not session.frames(*range(f.STREAM, f.STREAM + 4)), "a stream was opened")
