"""Flows and inner packets (docs/protocol.md, section 6)."""

import time

from .. import frames as f
from .. import inner
from ..place import ELSEWHERE, HOST, HOST6, SERVER
from . import check, expect

SERVER6 = "fd00:0:0:100::2"
GATEWAY = "10.255.0.1"  # of the daemon, in the tunnel
ORDERED, DATAGRAMS, TIMELY = 1, 0x4001, 0x8001  # flow numbers, one of each kind
PROHIBITED = (3, 13)  # type and code of ICMP


def packet(end, content, source=(HOST, 5000), **broken):
    """A UDP packet to the address of a socket of the server."""
    return inner.udp(source, end.getsockname()[:2], content, **broken)


def received(end, count=1, timeout=2):
    """What comes to a socket of the server."""
    out, deadline = [], time.monotonic() + timeout
    while len(out) < count and (left := deadline - time.monotonic()) > 0:
        end.settimeout(left)
        try:
            out.append(end.recvfrom(2000)[0])
        except TimeoutError:
            break
    return out


def carries(place, session, subflow=0, flow=TIMELY, dsn=0):
    """Expects that a packet reaches the server over the session."""
    end = place.bound()
    session.send(f.data(flow, dsn, packet(end, b"carried")), subflow)
    expect(received(end) == [b"carried"], "the packet was not delivered")


def burst(place, session, count, end=None, size=100):
    """Lets the server send so many packets to this peer's host, without waiting for them."""
    end = end or place.bound()
    for number in range(count):
        end.sendto(number.to_bytes(2, "big").ljust(size, b"."), (HOST, 5000))
    return end


def arrived(session, size=100):
    """The numbers of the packets of burst() of that size that have come, in order. The daemon may still have packets of
    an earlier session of this peer."""
    contents = [inner.payload(frame.packet) for frame in session.frames(f.DATA)]
    return [int.from_bytes(content[:2], "big") for content in contents if content and len(content) == size]


def echoed(error, code):
    """Whether an inner packet is an ICMP error of that type and code."""
    return error[0] >> 4 == 4 and error[9] == 1 and (error[20], error[21]) == code


@check
def flow_echo(place, _):
    session, end = place.session(), place.bound()
    session.send(f.data(TIMELY, 0, packet(end, b"question")))
    content, source = end.recvfrom(100)
    expect((content, source) == (b"question", (HOST, 5000)), f"{content} from {source}")
    end.sendto(b"answer", source)
    frame = session.wait_for(f.DATA)
    expect(frame and inner.payload(frame.packet) == b"answer" and frame.dsn == 0, f"{frame}")


@check
def flow_six(place, _):
    session, end = place.session(), place.bound(address=SERVER6)
    session.send(f.data(TIMELY, 0, packet(end, b"six", source=(HOST6, 5000))))
    expect(received(end) == [b"six"], "it did not arrive")


@check
def flow_numbers(place, _):
    session = place.session()
    burst(place, session, 20)
    session.pump(lambda: len({frame.dsn for frame in session.frames(f.DATA)}) >= 20)
    came = session.frames(f.DATA)  # some of them twice, when the daemon protects them by copies
    expect({frame.dsn for frame in came} == set(range(20)), f"{[frame.dsn for frame in came]}")
    expect(len({frame.flow for frame in came}) == 1, "several flow numbers")


def sent_in(place, flow, dsns, **changes):
    """(session, socket of the server) behind packets of these DSNs; each carries its DSN."""
    session, end = place.session(**changes), place.bound()
    for dsn in dsns:
        session.send(f.data(flow, dsn, packet(end, str(dsn).encode())))
    return session, end


def texts(*numbers):
    return [str(number).encode() for number in numbers]


@check
def flow_order(place, _):
    _, end = sent_in(place, ORDERED, (0, 2, 3, 1))
    expect((got := received(end, 5, 1)) == texts(0, 1, 2, 3), f"{got}")


@check
def flow_hold(place, _):
    session, end = sent_in(place, ORDERED, (0,))
    expect(received(end) == texts(0), "the first one did not come")
    began = time.monotonic()
    session.send(f.data(ORDERED, 2, packet(end, b"2")))
    expect(received(end) == texts(2), "what is behind the hole did not come")
    expect(0.4 < time.monotonic() - began < 1, f"after {time.monotonic() - began:.3f} s")
    session.send(f.data(ORDERED, 1, packet(end, b"1")))
    session.send(f.data(ORDERED, 1, packet(end, b"1")))
    expect((got := received(end, 2, 0.3)) == texts(1), f"late: {got}")


@check
def flow_patience(place, _):
    session, end = sent_in(place, DATAGRAMS, (0,))
    expect(received(end) == texts(0), "the first one did not come")
    began = time.monotonic()
    session.send(f.data(DATAGRAMS, 2, packet(end, b"2")))
    expect(received(end) == texts(2), "what is behind the hole did not come")
    expect(0.005 < time.monotonic() - began < 0.3, f"after {time.monotonic() - began:.3f} s")


@check
def flow_skip(place, _):
    session, end = sent_in(place, ORDERED, (0, 3))
    expect(received(end) == texts(0), "the first one did not come")
    session.send(f.skip(ORDERED, 1, 2))
    expect((got := received(end, 1, 0.25)) == texts(3), f"{got}")


@check
def flow_duplicate(place, _):
    for flow in (ORDERED, TIMELY):
        with place.counts("duplicate"):
            _, end = sent_in(place, flow, (0, 1, 1))
            expect((got := received(end, 3, 0.3)) == texts(0, 1), f"{got}")


@check
def flow_timely(place, _):
    _, end = sent_in(place, TIMELY, (2, 0, 1))
    expect((got := received(end, 3)) == texts(2, 0, 1), f"{got}")


@check
def flow_old(place, _):
    session, end = sent_in(place, TIMELY, (2000,))
    with place.counts("duplicate"):
        for dsn in (2001 - 1025, 2001 - 1024):
            session.send(f.data(TIMELY, dsn, packet(end, str(dsn).encode())))
        expect((got := received(end, 3, 0.3)) == texts(2000, 2001 - 1024), f"{got}")


@check
def flow_many(place, _):
    session, end = place.session(), place.bound()
    session.send(b"".join(f.data(TIMELY, dsn, packet(end, str(dsn).encode())) for dsn in range(6)))
    expect((got := received(end, 6)) == texts(*range(6)), f"{got}")


# ---- inner packets that may not pass

def dropped(place, cause, packets):
    """Expects that all packets are dropped for this cause, and that the session lives. Returns the session."""
    session = place.session()
    with place.counts(cause, len(packets)):
        for dsn, content in enumerate(packets):
            expect(session.acknowledged(session.send(f.data(TIMELY, dsn, content))), "not acknowledged")
    carries(place, session, dsn=len(packets))
    return session


@check
def inner_source(place, _):
    end = place.bound()
    sources = (SERVER, ELSEWHERE, "169.254.1.1", "0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255")
    packets = [packet(end, b"forged", source=(source, 5000)) for source in sources]
    six = place.bound(address=SERVER6)
    packets += [packet(six, b"forged", source=(source, 5000))
                for source in (SERVER6, "fe80::1", "::1", "ff02::1", "::")]
    dropped(place, "foreign_source", packets)
    expect(not received(end, 1, 0.1) and not received(six, 1, 0.1), "it arrived")


@check
def inner_error(place, _):
    session, end = place.session(), place.bound()
    session.send(f.data(TIMELY, 0, packet(end, b"forged", source=("198.18.0.1", 5000))))
    expect(session.wait_for(f.DATA, where=lambda frame: echoed(frame.packet, PROHIBITED)), "no ICMP error came")


@check
def inner_own(place, _):
    end = place.bound()
    dropped(place, "foreign_source", [packet(end, b"own", source=(GATEWAY, 5000))])


@check
def inner_special(place, _):
    four = ("127.0.0.1", "0.0.0.0", "0.1.2.3", "169.254.1.1", "169.254.169.254", "224.0.0.1", "239.1.1.1",
            "255.255.255.255")
    six = ("::1", "::", "fe80::1", "ff02::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
           "2002:7f00:1::1", "fd00:ec2::254")
    dropped(place, "special_destination",
            [inner.udp((HOST, 5000), (each, 5000), b"special") for each in four]
            + [inner.udp((HOST6, 5000), (each, 5000), b"special") for each in six])


@check
def inner_between(place, _):
    session = dropped(place, "between_peers", [inner.udp((HOST, 5000), (ELSEWHERE, 5000), b"to the other one")])
    expect(session.wait_for(f.DATA, where=lambda frame: echoed(frame.packet, PROHIBITED)), "no ICMP error came")


@check
def inner_version(place, _):
    end = place.bound()
    dropped(place, "bad_inner_packet", [packet(end, b"broken", version=version) for version in (0, 5, 15)])


@check
def inner_length(place, _):
    end, six = place.bound(), place.bound(address=SERVER6)
    good, good6 = packet(end, b"broken"), packet(six, b"broken", source=(HOST6, 5000))
    dropped(place, "bad_inner_packet", [
        packet(end, b"broken", extra=1), packet(end, b"broken", extra=-1), packet(end, b"broken", words=4),
        packet(end, b"broken", words=15), good[:19], good[:1], good[:-1], good + b"\0",
        packet(six, b"broken", source=(HOST6, 5000), extra=1), good6[:39], good6[:-1], good6 + b"\0"])
    expect(not received(end, 1, 0.1) and not received(six, 1, 0.1), "it arrived")


@check
def inner_headers(place, _):
    options = bytes([60, 0, 0, 0, 0, 0, 0, 0])  # destination options, of 8 bytes, before others of these
    nine = inner.ip(HOST6, SERVER6, 60, options * 8 + bytes([59]) + options[1:])
    dropped(place, "bad_inner_packet", [nine, inner.ip(HOST6, SERVER6, 60, options[:4]),
                                        inner.ip(HOST6, SERVER6, 60, bytes([59, 4, 0, 0, 0, 0, 0, 0]))])
