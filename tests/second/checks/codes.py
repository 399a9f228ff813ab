"""Parities, copies and what was restored (docs/protocol.md, section 8)."""

from .. import coding
from .. import frames as f
from ..handshake import SILENCE
from ..place import DAEMON
from . import check, expect
from .acks import arrived_number
from .datagrams import PING, quiet_session
from .flows import TIMELY, burst, packet, received


class Block:
    """Datagrams of one packet each, of which some are left out, and their parities."""

    def __init__(self, place, count, missing=(), m=1, subflows=(0,), session=None):
        self.session, self.end, self.m = session or quiet_session(place), place.bound(), m
        self.missing = set(missing)
        self.names, self.symbols, self.texts, self.kept = [], [], [], {}
        for turn in range(count):
            text = bytes([turn]) * (20 + 7 * turn)
            self.texts.append(text)
            subflow = subflows[turn % len(subflows)]
            self.symbols.append(f.data(TIMELY, turn, packet(self.end, text)))
            number, datagram = self.session.seal(self.symbols[-1], subflow)
            self.names.append((subflow, number))
            if turn in self.missing:
                self.kept[turn] = datagram
            else:
                self.session.send_raw(datagram, subflow)

    def parity(self, index, **changes):
        """The frame of a parity of block 1."""
        return coding.frame(1, index, self.m, self.names, coding.parity(index, self.symbols), **changes)

    def send(self, *indices):
        for index in indices:
            expect(self.session.acknowledged(self.session.send(self.parity(index))), "a parity was not acknowledged")

    def whole(self):
        """Expects that all packets are delivered, each once."""
        got = sorted(received(self.end, len(self.texts) + 1, 0.5))
        expect(got == sorted(self.texts), f"{len(got)} packets of {len(self.texts)}")

    def recovered(self):
        """The datagrams that RECOVERED names."""
        self.session.pump(timeout=SILENCE)
        return {(frame.subflow, number) for frame in self.session.frames(f.RECOVERED)
                for number in range(frame.first, frame.first + frame.count)}


@check
def code_one(place, _):
    block = Block(place, 3, missing=[1])
    block.send(0)
    block.whole()
    expect(block.recovered() == {block.names[1]}, f"RECOVERED names {block.recovered()}, not {block.names[1]}")
    expect(block.names[1][1] not in block.session.subflows[0].acked, "it is acknowledged, too")


@check
def code_two(place, _):
    block = Block(place, 4, missing=[0, 3], m=2)
    block.send(0, 1)
    block.whole()


@check
def code_last(place, _):
    block = Block(place, 6, missing=[2, 4], m=16)
    block.send(7, 15)
    block.whole()


@check
def code_tail(place, _):
    block = Block(place, 3, missing=[2])
    value = coding.parity(0, block.symbols)
    for frame in (block.parity(0, part=10), coding.tail(1, 0, 10, value[10:])):
        expect(block.session.acknowledged(block.session.send(frame)), "not acknowledged")
    block.whole()


@check
def code_subflows(place, _):
    session = quiet_session(place).add_subflow(place.socket(1), DAEMON)
    block = Block(place, 4, missing=[3], subflows=(0, 1), session=session)
    block.send(0)
    block.whole()


@check
def code_copy(place, _):
    block = Block(place, 2)
    with place.counts("duplicate"):
        expect(block.session.acknowledged(block.session.send(PING + block.symbols[0])), "not acknowledged")
    block.whole()


@check
def code_late(place, _):
    block = Block(place, 3, missing=[1])
    block.send(0)
    block.whole()
    with place.counts("duplicate"):
        block.session.send_raw(block.kept[1])
        expect(block.session.acknowledged(block.names[1][1]), "not acknowledged")


@check
def code_whole(place, _):
    block = Block(place, 3)
    before = place.drops()["bad_parity"]
    block.send(0)
    block.whole()
    expect(not block.recovered() and place.drops()["bad_parity"] == before, "it was used, or counted")


@check
def code_lie(place, _):
    block = Block(place, 2, missing=[1])
    block.symbols[1] = PING + block.symbols[1]
    with place.counts("bad_parity"):
        block.send(0)
        got = received(block.end, 2, 0.3)
        expect(got == block.texts[:1], f"{len(got)} packets")
    expect(block.session.alive(), "the session has ended")


# ---- parities that are refused

def refused(place, block, *contents, acknowledged=True):
    """Expects that the last of these frames is counted, and that nothing is restored."""
    for content in contents[:-1]:
        expect(block.session.acknowledged(block.session.send(content)), "not acknowledged")
    with place.counts("bad_parity"):
        number = block.session.send(contents[-1])
        expect(block.session.acknowledged(number) == acknowledged, "acknowledged" if not acknowledged else "not taken")
    expect(block.session.alive(), "the session has ended")


@check
def parity_twice(place, _):
    block = Block(place, 3, missing=[1])
    block.names[2] = block.names[1]
    refused(place, block, block.parity(0))


@check
def parity_same(place, _):
    block = Block(place, 4, missing=[1, 2], m=2)
    first = block.parity(0)
    block.m = 3
    refused(place, block, first, block.parity(1))


@check
def parity_capacity(place, _):
    block = Block(place, 3, missing=[1])
    refused(place, block, block.parity(0, size=65535))


@check
def parity_many(place, _):
    block = Block(place, 2, missing=[0])
    frame = coding.frame(2, 0, 1, [(0, 9000)], b"\0")  # restores to PADDING
    refused(place, block, frame * 17)


@check
def tail_place(place, _):
    block = Block(place, 3, missing=[2])
    value = coding.parity(0, block.symbols)
    refused(place, block, block.parity(0, part=10), coding.tail(1, 0, 11, value[11:]))


@check
def recovered_told(place, _):
    session, victims = quiet_session(place), []

    def lost(datagram):
        if not victims and any(arrived_number(frame) == 5 for frame in datagram.of(f.DATA)):
            victims.append(datagram)
            session.send(f.recovered(datagram.subflow, datagram.number, 1))
        return datagram in victims

    session.lost = lost
    with place.changed(place.daemon.config.setdefault("recovery", {}), policy="none"):  # no copies of its own choice
        burst(place, session, 40)
        session.pump(timeout=1)
    came = {arrived_number(frame) for frame in session.frames(f.DATA)}
    hidden = {arrived_number(frame) for frame in victims[0].of(f.DATA)}
    expect(came == set(range(40)) - hidden, f"{sorted(came & hidden)} came again")


def restored(frame, symbols):
    """The one symbol that a PARITY restores from those that came, as ((subflow, number), bytes), or None."""
    missing = [name for name in frame.symbols if name not in symbols]
    if len(missing) != 1 or len(frame.part) != frame.size:
        return None
    out = bytearray(frame.part)
    for j, name in enumerate(frame.symbols):
        if name in symbols:
            for place, byte in enumerate(symbols[name]):
                out[place] ^= coding.multiply(coding.coefficient(frame.index, j), byte)
    c = coding.coefficient(frame.index, frame.symbols.index(missing[0]))
    return missing[0], bytes(coding.divide(byte, c) for byte in out)


@check
def code_theirs(place, _):
    with place.changed(place.daemon.config.setdefault("recovery", {}), policy="cofuso"):
        session, dropped = quiet_session(place).add_subflow(place.socket(1), DAEMON), {}
        session.pump(timeout=SILENCE)

        def lost(datagram):
            if datagram.of(f.DATA) and datagram.number % 4 == 0:
                dropped[datagram.subflow, datagram.number] = coding.symbol(datagram.frames)
            return (datagram.subflow, datagram.number) in dropped

        session.lost = lost
        end = place.bound()
        for _ in range(60):
            burst(place, session, 10, end)
            session.pump(timeout=0.02)
            session.pump(timeout=0.03)
        symbols = {(each.subflow, each.number): coding.symbol(each.frames) for each in session.came}
        found = [out for frame in session.frames(f.PARITY) if (out := restored(frame, symbols))]
        right = sum(value.rstrip(b"\0") == dropped.get(name, b"?").rstrip(b"\0") for name, value in found)
    expect(found, f"no parity restores anything; {len(session.frames(f.PARITY))} came, {len(dropped)} were dropped")
    expect(right == len(found), f"{right} of {len(found)} are what was dropped")
