"""A session: sealing and opening, subflows, and the acknowledgments of this side (docs/protocol.md, 3, 4, 7 and 9).

pump() reads what comes, answers challenges and acknowledges, unless it is told not to. Everything that came stays in
`came`, so that a check can look at it. Nothing is sent again by itself: what a check sends, it sends once.
"""

import os
import select
import socket as sockets
import struct
import time

from cryptography.exceptions import InvalidTag

from . import frames as f
from .handshake import PATIENCE, arrives

PADDED = 1200 - 26  # bytes of frames in a datagram of 1200 bytes
MARKS = {2: 0, 1: 1, 3: 2}  # codepoint: which of the counts of an ACK
OWN_PARAMS = ((1, 1500), (2, 1024), (3, 4096), (4, 7), (5, 1000), (6, 65536), (31 * 3 + f.NOISE, 5))


class Datagram:
    """One that has opened."""

    def __init__(self, route, subflow, number, epoch, generation, content, raw, codepoint):
        self.route, self.subflow, self.number, self.epoch, self.generation = route, subflow, number, epoch, generation
        self.frames = f.read(content)
        self.raw, self.codepoint, self.at = raw, codepoint, time.monotonic()

    def of(self, *types):
        return [frame for frame in self.frames if frame.type in types]


class Subflow:
    def __init__(self, socket, remote):
        self.socket, self.remote = socket, remote
        self.next = 0  # number of the next datagram
        self.largest = -1  # that has come
        self.got = set()
        self.acked = set()
        self.ecn = [0, 0, 0]  # datagrams that came as ECT(0), ECT(1), CE


class Session:
    """`side`: 0 for an initiator, 1 for a responder. `changes` of its behaviour: answers (challenges), acks."""

    def __init__(self, generation, name, socket, remote, side=0, **changes):
        self.generations = {0: generation}
        self.generation = self.epoch = 0  # with which it seals
        self.id, self.side = name, side
        self.answers = self.acks = True
        self.subflows = {0: Subflow(socket, remote)}
        self.came = []
        self.tokens = {}  # of this side's challenges: subflow
        self.answered = set()  # tokens
        self.lost = lambda datagram: False  # whether a datagram that came is taken for lost on the way
        self.__dict__.update(changes)

    # ---- sending

    def seal(self, content, subflow=0, number=None, epoch=None, generation=None, version=0, name=None):
        """(number, datagram) with these frames."""
        flow = self.subflows[subflow]
        number = flow.next if number is None else number
        flow.next = max(flow.next, number + 1)
        epoch = self.epoch if epoch is None else epoch
        generation = self.generation if generation is None else generation
        head = struct.pack("!BIBI", 64 | version << 4 | (epoch & 3) << 2 | generation & 3,
                           self.id if name is None else name, subflow, number & 0xffffffff)
        sealer = self.generations[generation].sealer(self.side, epoch)
        return number, head + sealer.seal(subflow, number, head, content)

    def send_raw(self, datagram, subflow=0):
        self.subflows[subflow].socket.sendto(datagram, self.subflows[subflow].remote)

    def send(self, content, subflow=0, **changes):
        """Sends a datagram of these frames; returns its number."""
        number, datagram = self.seal(content, subflow, **changes)
        self.send_raw(datagram, subflow)
        return number

    def challenge(self, subflow=0, before=b""):
        """Sends a PATH_CHALLENGE in a datagram of 1200 bytes; returns its token."""
        token = os.urandom(8)
        self.tokens[token] = subflow
        self.send((before + f.challenge(token)).ljust(PADDED, b"\0"), subflow)
        return token

    def acknowledge(self, subflow=0, over=None):
        flow = self.subflows[subflow]
        if flow.got:
            self.send(f.ack(subflow, flow.got, 0, flow.ecn), subflow if over is None else over)

    # ---- receiving

    def open(self, raw, route, codepoint=0):
        """A Datagram, or None for what does not open."""
        if len(raw) < 27 or raw[0] >> 6 != 1:
            return None
        epoch4, generation4, (name, number, low) = raw[0] >> 2 & 3, raw[0] & 3, struct.unpack("!IBI", raw[1:10])
        if self.side and name == self.id and number not in self.subflows:  # the initiator has begun one
            self.subflows[number] = Subflow(*route[:2])
        flow = self.subflows.get(number)
        if name != self.id or not flow or raw[0] & 0x30:
            return None
        expected = flow.largest + 1
        full = (expected & ~0xffffffff) + low
        full += (1 << 32) if full < expected - (1 << 31) else -(1 << 32) if full > expected + (1 << 31) else 0
        for generation, keys in self.generations.items():
            for epoch in range(self.epoch + 3):
                if generation & 3 != generation4 or epoch & 3 != epoch4:
                    continue
                try:
                    content = keys.sealer(1 - self.side, epoch).open(number, full, raw[:10], raw[10:])
                except InvalidTag:
                    continue
                flow.largest = max(flow.largest, full)
                return Datagram(route, number, full, epoch, generation, content, raw, codepoint)
        return None

    def _receive(self, timeout):
        """Reads one datagram of each socket that has some."""
        ready, _, _ = select.select({flow.socket for flow in self.subflows.values()}, [], [], timeout)
        for socket in ready:
            self.take(socket, *arrives(socket, 0))

    def take(self, socket, raw, address, mark):
        datagram = self.open(raw, (socket, address), mark)
        if not datagram or self.lost(datagram):
            return
        flow = self.subflows[datagram.subflow]
        flow.got.add(datagram.number)
        if mark:
            flow.ecn[MARKS[mark]] += 1
        self.came.append(datagram)
        for frame in datagram.frames:
            if frame.type in f.ACKS and frame.subflow in self.subflows:
                for low, high in frame.ranges:
                    self.subflows[frame.subflow].acked.update(range(low, high + 1))
            elif frame.type == f.PATH_RESPONSE and frame.token in self.tokens:
                self.answered.add(frame.token)
            elif frame.type == f.PATH_CHALLENGE and self.answers:
                _, answer = self.seal(f.response(frame.token), datagram.subflow)
                socket.sendto(answer, address)
        if self.acks and any(frame.eliciting() for frame in datagram.frames):
            self.acknowledge(datagram.subflow)

    def pump(self, condition=lambda: False, timeout=PATIENCE):
        """Reads until the condition is true, or the time is over. The condition's last value."""
        deadline = time.monotonic() + timeout
        while not (value := condition()) and (left := deadline - time.monotonic()) > 0:
            self._receive(min(left, 0.02))
        return value

    def frames(self, *types):
        """All frames of these types that have come, in order."""
        return [frame for datagram in self.came for frame in datagram.of(*types)]

    def wait_for(self, *types, where=lambda frame: True, timeout=PATIENCE):
        """The first such frame that has come or comes, or None."""
        found = []

        def there():
            found[:] = [frame for frame in self.frames(*types) if where(frame)]
            return bool(found)

        return found[0] if self.pump(there, timeout) else None

    def forget(self):
        """Looks away from what has come so far."""
        self.came.clear()

    # ---- what checks ask

    def acknowledged(self, number, subflow=0, timeout=PATIENCE):
        return self.pump(lambda: number in self.subflows[subflow].acked, timeout)

    def alive(self, subflow=0, timeout=PATIENCE):
        """Whether a PING is acknowledged."""
        return self.acknowledged(self.send(bytes([f.PING]), subflow), subflow, timeout)

    def prove(self, subflow=0, before=b""):
        """Proves the route of a subflow, both ways. Whether that worked."""
        token = self.challenge(subflow, before)
        return self.pump(lambda: token in self.answered and any(
            datagram.subflow == subflow and datagram.of(f.PATH_CHALLENGE) for datagram in self.came))

    def start(self, params=OWN_PARAMS, before=b""):
        """Proves the first subflow and exchanges PARAMS. Raises AssertionError when the daemon does not do its part."""
        assert self.prove(before=before), "the first subflow was not proven"
        assert self.wait_for(f.PARAMS), "no PARAMS came"
        if params is not None:
            assert self.acknowledged(self.send(f.params(*params))), "PARAMS were not acknowledged"
        return self

    def add_subflow(self, socket, remote, number=1, before=b""):
        self.subflows[number] = Subflow(socket, remote)
        assert self.prove(number, before), f"subflow {number} was not proven"
        return self


def codepoint(socket, value):
    """Sets the ECN codepoint of what a socket sends: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE."""
    socket.setsockopt(sockets.IPPROTO_IP, sockets.IP_TOS, value)
