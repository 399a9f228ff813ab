"""What each attack of tests/attacks.yaml sends, without end: pairs of a socket and a datagram. A function is named
after the id of its row. All is sealed before it is sent (attacker.py), so no attack waits for an answer."""

import ipaddress
import itertools
import os

from . import dtls, inner
from . import frames as f
from .envelope import INITIATOR
from .session import PADDED, Subflow

ATTACKS = {}
SUBFLOWS = 32  # of a session, as many as a gateway takes by default
ORDERED, TIMELY = 0, 0x8000  # first flow numbers
COSTLY = 16  # SKIPs in a datagram
LATE = 20  # hellos between that of a handshake and its second flight
CLOSED, WEB = 81, 80  # TCP ports of the server
MISSING_HOSTS = 100  # addresses of the server's network at which nobody answers, from 100 above the server's on
REQUEST = 4000  # bytes of a request that never ends


def attack(function):
    ATTACKS[function.__name__] = function
    return function


def full(frames, room=PADDED, most=1 << 16):
    """Contents of datagrams that hold as many of these frames as fit, at most so many."""
    content, count = b"", 0
    for frame in frames:
        if len(content) + len(frame) > room or count == most:
            yield content
            content, count = b"", 0
        content, count = content + frame, count + 1


def of_session(session, contents):
    """Sealed datagrams of the first subflow."""
    socket = session.subflows[0].socket
    for content in contents:
        yield socket, session.seal(content)[1]


# ---- streams

def _opening(attacker, number, server, **more):
    """The opening of a stream from the attacker's host to (address, port)."""
    return f.opening((attacker.host, 1024 + number // 2 % 60000), server, 1000, **more)


def _openings(attacker, port):
    for number in itertools.count(0, 2):
        yield number, f.stream(number, 0, opened=_opening(attacker, number, (attacker.server, port)))


@attack
def openings(attacker):
    return of_session(attacker.session(), full(frame for _, frame in _openings(attacker, CLOSED)))


@attack
def holes(attacker):
    def frames():
        for number, frame in _openings(attacker, WEB):
            yield frame
            yield from (f.stream(number, offset, b"x") for offset in range(8, 32768, 9))
            yield f.stream_reset(number, 0)

    return of_session(attacker.session(), full(frames()))


@attack
def readers(attacker):
    """Each opening asks the server for a large file. None of what comes is read, and credit grows by single bytes."""
    session, question = attacker.session(), f"GET {attacker.file} HTTP/1.0\r\n\r\n".encode()

    def frames():
        for number in range(0, 256, 2):
            ends = (attacker.host, 20000 + number), (attacker.server, WEB)
            yield f.stream(number, 0, question, f.opening(*ends, 1000))
        for limit in itertools.count(1001):
            yield from (f.stream_credit(number, limit) for number in range(0, 256, 2))

    return of_session(session, full(frames()))


@attack
def resets(attacker):
    return of_session(attacker.session(), full(frame + f.stream_reset(number, 0)
                                               for number, frame in _openings(attacker, WEB)))


@attack
def half_open(attacker):
    first, data = ipaddress.ip_address(attacker.server) + 100, b"x" * 1000

    def frames():
        for number in itertools.count(0, 2):
            server = str(first + number // 2 % MISSING_HOSTS), WEB
            yield f.stream(number, 0, data, _opening(attacker, number, server))

    return of_session(attacker.session(), full(frames()))


@attack
def ends(attacker):
    return of_session(attacker.session(), full(
        f.stream(number, 0, opened=_opening(attacker, number, (attacker.server, WEB), asking=True), fin=True)
        for number in itertools.count(0, 2)))


@attack
def drips(attacker):
    request = b"GET / HTTP/1.0\r\nx: " + b"x" * REQUEST

    def frames():
        for number, frame in _openings(attacker, WEB):
            yield frame
            yield from (f.stream(number, offset, request[offset:offset + 1]) for offset in range(REQUEST))
            yield f.stream_reset(number, 0)

    return of_session(attacker.session(), full(frames()))


@attack
def repeats(attacker):
    _, opening = next(_openings(attacker, WEB))
    return of_session(attacker.session(), full(itertools.chain([opening], itertools.repeat(f.stream(0, 0, b"G")))))


@attack
def strays(attacker):
    return of_session(attacker.session(), full(
        f.stream_reset(number, 0) + f.stream_credit(number, 1000) + f.stream(number, 0, b"x")
        for number in itertools.count(0, 2)))


# ---- acknowledgments and routes

def _turns(session):
    """Subflow numbers in turn, all known to the session."""
    first = session.subflows[0]
    session.subflows.update({number: Subflow(first.socket, first.remote) for number in range(1, SUBFLOWS)})
    return itertools.cycle(range(SUBFLOWS))


@attack
def gaps(attacker):
    session = attacker.session()
    for subflow in _turns(session):
        number = session.subflows[subflow].next + 1
        yield session.subflows[0].socket, session.seal(bytes([f.PING]), subflow, number)[1]


@attack
def routes(attacker):
    session = attacker.session()
    for socket in itertools.cycle(attacker.sockets(128)):
        yield socket, session.seal(f.challenge(os.urandom(8)))[1]


# ---- inner packets

def _packets(attacker, make, flow, step=1, turn=0x8000):
    """DATA of packets, each of the next flow number."""
    for count in itertools.count():
        yield f.data(flow + count % turn, step * (count // turn) + step - 1, make(count))


@attack
def flows(attacker):
    def packet(count):
        return inner.udp((attacker.host, 1024 + count % 60000), (attacker.server, 9 + count // 60000), b"")

    return of_session(attacker.session(), full(_packets(attacker, packet, TIMELY)))


@attack
def held(attacker):
    one = inner.udp((attacker.host, 9), (attacker.server, 9), b"")
    return of_session(attacker.session(), full(_packets(attacker, lambda _: one, ORDERED, 2, 1000)))


@attack
def skips(attacker):
    return of_session(attacker.session(), full(
        (f.skip(count % 0x8000, 4096 * (count // 0x8000), 4096) for count in itertools.count()), most=COSTLY))


# ---- handshakes

def _handshake(attacker, stranger, flight):
    """The datagrams of a handshake with a cookie: its hello, and its second flight with a signature of nothing."""
    client, name = dtls.Client(attacker.identity), os.urandom(8)
    bodies = [client.hello()]
    if flight:
        share = client.message(dtls.CLIENT_KEY, dtls.vector(os.urandom(32), 1), number=2)
        signature = client.message(dtls.VERIFY, dtls.ECDSA_SHA256.to_bytes(2, "big")
                                   + dtls.vector(attacker.signature, 2), number=3)
        client.next_message = 1
        bodies.append(client.certificate() + client.record(dtls.HANDSHAKE, share)
                      + client.record(dtls.HANDSHAKE, signature))
    return [(stranger.socket, attacker.envelope.seal(INITIATOR, name, body, stranger.cookie)) for body in bodies]


@attack
def hellos(attacker):
    for stranger in itertools.cycle(attacker.strangers()):
        yield from _handshake(attacker, stranger, False)


@attack
def flights(attacker):
    late = []
    for stranger in itertools.cycle(attacker.strangers()):
        first, second = _handshake(attacker, stranger, True)
        late.append(second)
        yield first
        if len(late) > LATE:
            yield late.pop(0)
