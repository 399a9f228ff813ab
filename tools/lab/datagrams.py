"""Steady flows of small datagrams between two namespaces, with one-way delays: python3 -m lab.datagrams F.

One process has both ends, so that both times are from one clock: a datagram carries its sending time, and the kernel
records its arrival. So neither time is late when the process is late. The clock is the monotonic one, because the
real-time clock may be set during a run. F is a file with a JSON object: near, far (names of namespaces), address (of
far), seconds, flows (a list of {name, port, rate (per second and direction), size (bytes of payload), to (the
destination of a flow in one direction; without it the flow has two directions on one 5-tuple)}), and dns (a name that a
server at the address knows, asked for once per second; None: no questions). The output is one JSON object: {flow: {"up"
| "down" | "answer": {sent, late, lost, delays}}}. Delays are in milliseconds; for an answer, since its question.
"""

import dataclasses
import json
import math
import select
import socket
import struct
import sys
import time

from .measure import percentile
from .netns import Namespace

_HEADER = struct.Struct("!Qd")  # number, when it was sent
_TIMESTAMP = getattr(socket, "SO_TIMESTAMPNS", 35)  # asm-generic/socket.h
_TIME = struct.Struct("@qq")
DRAIN = 2  # seconds allowed for the last datagrams to arrive
UP, DOWN = "up", "down"


@dataclasses.dataclass
class Way:
    """One direction of a flow: the number of datagrams sent, and the delay in milliseconds of each that arrived, by its
    number."""

    sent: int = 0
    late: int = 0  # datagrams sent more than one interval after their time
    delays: dict = dataclasses.field(default_factory=dict)

    def arrived(self, number, milliseconds):
        # a duplicate does not count as a second arrival
        self.delays.setdefault(number, milliseconds)

    def result(self):
        return {"sent": self.sent, "late": self.late, "lost": self.sent - len(self.delays),
                "delays": [round(each, 3) for each in self.delays.values()]}


def p99(way):
    """Milliseconds; a datagram that never arrived counts with the whole time that it had."""
    return percentile(way["delays"] + [DRAIN * 1e3] * way["lost"], 0.99)


def _received(handle):
    """(datagram, arrival at the kernel by the monotonic clock) of all datagrams that wait."""
    apart = time.time() - time.monotonic()  # the kernel's stamps are of the other clock
    while True:
        try:
            data, more, _, _ = handle.recvmsg(2048, 64)
        except BlockingIOError:
            return
        seconds, nanoseconds = _TIME.unpack_from(more[0][2])
        yield data, seconds - apart + nanoseconds * 1e-9


class _Resolver:
    """Asks a DNS server once per second. A question's number is its identifier."""

    def __init__(self, near, address, name, seconds, answers):
        self._handle = near.inside(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
        self._handle.connect((address, 53))
        self._handle.setsockopt(socket.SOL_SOCKET, _TIMESTAMP, 1)
        self._handle.setblocking(False)
        self._question = question(name)
        self._answers, self._times = answers, []
        self._next = time.monotonic() + 0.75
        self._count = round(seconds)

    def fileno(self):
        return self._handle.fileno()

    def send(self, now):
        if self._answers.sent >= self._count:
            return None
        if now >= self._next:
            self._answers.late += now > self._next + 1
            self._next += 1
            self._times.append(time.monotonic())
            self._handle.send(struct.pack("!H", self._answers.sent) + self._question)
            self._answers.sent += 1
        return self._next

    def receive(self):
        for data, came in _received(self._handle):
            number = int.from_bytes(data[:2], "big")
            self._answers.arrived(number, (came - self._times[number]) * 1e3)


def question(name):
    """A question for the IPv4 address of a name (RFC 1035), without its identifier."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!HHHHH", 0x100, 1, 0, 0, 0) + labels + struct.pack("!BHH", 0, 1, 1)


class _End:
    """One end of a flow, in its namespace. `outgoing` or `incoming` is None when the flow has only one direction."""

    def __init__(self, handle, interval, offset, seconds, outgoing, incoming, size):
        self._handle, self._interval, self._size = handle, interval, size
        self._outgoing, self._incoming = outgoing, incoming
        self._next = time.monotonic() + offset
        self._count = round(seconds / interval)
        handle.setsockopt(socket.SOL_SOCKET, _TIMESTAMP, 1)
        handle.setblocking(False)

    def fileno(self):
        return self._handle.fileno()

    def send(self, now):
        """Sends what is due. Returns when the next datagram is due; None when there is none."""
        if not self._outgoing or self._outgoing.sent >= self._count:
            return None
        if now >= self._next:
            self._outgoing.late += now > self._next + self._interval
            self._next += self._interval
            header = _HEADER.pack(self._outgoing.sent, time.monotonic())
            self._outgoing.sent += 1
            self._handle.send(header + bytes(self._size - _HEADER.size))
        return self._next

    def receive(self):
        for data, came in _received(self._handle):
            if len(data) < _HEADER.size:
                continue  # the client's first words
            number, sent = _HEADER.unpack_from(data)
            self._incoming.arrived(number, (came - sent) * 1e3)


def _open(near, far, address, seconds, flow):
    """({direction: Way}, both ends)"""
    ways = {UP: Way(), DOWN: Way()}
    server = far.inside(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
    client = near.inside(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, flow["port"]))
    server.settimeout(DRAIN)
    client.connect((address, flow["port"]))
    for _ in range(5):  # tells the server the client's address
        client.send(b"hello")
        try:
            server.connect(server.recvfrom(64)[1])
            break
        except TimeoutError:
            continue
    else:
        raise TimeoutError(f"nothing comes to {address}")
    interval = 1 / flow["rate"]
    # The two directions are half an interval apart, so that their datagrams do not meet.
    return ways, [_End(client, interval, 0.5, seconds, ways[UP], ways[DOWN], flow["size"]),
                  _End(server, interval, 0.5 + interval / 2, seconds, ways[DOWN], ways[UP], flow["size"])]


def _open_one_way(near, far, address, seconds, flow):
    """The ways and ends of a flow in one direction, to the side that has the address flow["to"]. The receiver sends
    nothing."""
    way = UP if flow["to"] == address else DOWN
    source, target = (near, far) if way == UP else (far, near)
    receiver = target.inside(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
    sender = source.inside(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind((flow["to"], flow["port"]))
    sender.connect((flow["to"], flow["port"]))
    ways, interval = {way: Way()}, 1 / flow["rate"]
    return ways, [_End(sender, interval, 0.5, seconds, ways[way], None, flow["size"]),
                  _End(receiver, interval, 0.5, seconds, None, ways[way], flow["size"])]


def _loop(ends):
    """Sends what is due and receives, until nothing is due any more and the last datagrams have had time to arrive."""
    poll = select.poll()
    by_handle = {end.fileno(): end for end in ends}
    for handle in by_handle:
        poll.register(handle, select.POLLIN)
    finish = None
    while finish is None or time.monotonic() < finish:
        now = time.monotonic()
        due = [at for at in (end.send(now) for end in ends) if at is not None]
        if not due and finish is None:
            finish = now + DRAIN
        until = min(due, default=finish)
        for handle, _ in poll.poll(max(0, math.ceil((until - time.monotonic()) * 1e3))):
            by_handle[handle].receive()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        wanted = json.load(file)
    near, far = (Namespace.existing(wanted[key]) for key in ("near", "far"))
    results, ends = {}, []
    for flow in wanted["flows"]:
        opened = _open_one_way if "to" in flow else _open
        results[flow["name"]], both = opened(near, far, wanted["address"], wanted["seconds"], flow)
        ends += both
    if wanted["dns"]:
        results["dns"] = {"answer": Way()}
        ends.append(_Resolver(near, wanted["address"], wanted["dns"], wanted["seconds"], results["dns"]["answer"]))
    _loop(ends)
    json.dump({name: {way: each.result() for way, each in ways.items()} for name, ways in results.items()}, sys.stdout)


if __name__ == "__main__":
    main()
