"""Frames (docs/protocol.md, section 5): how each is written, and what a datagram holds."""

import ipaddress
import struct

PADDING, PING, ACK, PATH_CHALLENGE, PATH_RESPONSE, DATA, SKIP, SUBFLOW_STATUS, CLOSE = range(9)
PARITY, PARITY_TAIL, RECOVERED, SUBFLOW_PREFERENCE, RENEW_KEYS, KEYS_READY = range(9, 15)
ACK_TIMED = 0x0f
PARAMS, STREAM_CREDIT, STREAM_RESET, STREAM = 0x10, 0x11, 0x12, 0x14
OPTIONAL_ASKING, SUBFLOW_NAME, OBSERVED_ADDRESS = 0x40, 0x60, 0x61
FIN, OPEN = 1, 2
ACKS = (ACK, ACK_TIMED)
# Not ack-eliciting, as all from 0x60 on.
QUIET = {PADDING, *ACKS, PATH_CHALLENGE, PATH_RESPONSE, CLOSE, RECOVERED}
NOISE = 27  # of an entry of PARAMS, modulo 31


def varint(value):
    for size, most in ((1, 6), (2, 14), (4, 30), (8, 62)):
        if value < 1 << most:
            return (value | {1: 0, 2: 1, 4: 2, 8: 3}[size] << (8 * size - 2)).to_bytes(size, "big")
    raise ValueError(value)


class Malformed(Exception):
    """What this implementation refuses: a fault of the daemon when it is the sender."""


class Reader:
    def __init__(self, content):
        self.content, self.place = content, 0

    def left(self):
        return len(self.content) - self.place

    def take(self, size):
        if size > self.left():
            raise Malformed(f"cut off: {self.content.hex()}")
        self.place += size
        return self.content[self.place - size:self.place]

    def number(self, size):
        return int.from_bytes(self.take(size), "big")

    def varint(self):
        first = self.number(1)
        size = 1 << (first >> 6)
        return int.from_bytes(bytes([first & 0x3f]) + self.take(size - 1), "big")


class Frame:
    """A frame that has been read. Its fields are attributes, by the names of the document; `raw`: its bytes."""

    def __init__(self, kind, fields, raw):
        self.type, self.raw = kind, raw
        self.__dict__.update(fields)

    def __repr__(self):
        return f"{self.__dict__}"

    def eliciting(self):
        return self.type not in QUIET and self.type < 0x60


# ---- writing

def ack(subflow, numbers, delay=0, ecn=(0, 0, 0)):
    """An ACK of a set of packet numbers, of the 32 highest ranges."""
    ranges = []
    for number in sorted(numbers, reverse=True):
        if ranges and ranges[-1][0] == number + 1:
            ranges[-1][0] = number
        else:
            ranges.append([number, number])
    ranges = ranges[:32]
    out = bytes([ACK, subflow]) + varint(ranges[0][1]) + varint(delay) + varint(len(ranges))
    out += varint(ranges[0][1] - ranges[0][0])
    for before, (low, high) in zip(ranges, ranges[1:]):
        out += varint(before[0] - high - 2) + varint(high - low)
    return out + b"".join(map(varint, ecn))


def timed(frame, micros, of_run=False):
    """The ACK_TIMED that an ACK becomes with a receive time."""
    return bytes([ACK_TIMED]) + frame[1:] + (micros % (1 << 31) << 1 | of_run).to_bytes(4, "big")


def challenge(token):
    return bytes([PATH_CHALLENGE]) + token


def response(token):
    return bytes([PATH_RESPONSE]) + token


def data(flow, dsn, packet):
    return struct.pack("!BHIH", DATA, flow, dsn, len(packet)) + packet


def skip(flow, first, count):
    return struct.pack("!BH", SKIP, flow) + varint(first) + varint(count)


def status(subflow, sequence, available):
    return bytes([SUBFLOW_STATUS, subflow]) + varint(sequence) + bytes([available])


def preference(subflow, sequence, use=0, weight=1, uplink=0, ceiling=0):
    return (bytes([SUBFLOW_PREFERENCE, subflow]) + varint(sequence) + bytes([use, weight, uplink]) + varint(ceiling))


def renew_keys(name):
    return struct.pack("!BI", RENEW_KEYS, name)


def keys_ready(name, ready):
    return struct.pack("!BIB", KEYS_READY, name, ready)


def params(*entries):
    """PARAMS of (id, value) with values that are varints."""
    body = b"".join(varint(name) + varint(len(varint(value))) + varint(value) for name, value in entries)
    return counted(PARAMS, body)


def counted(kind, content):
    """A frame of a length and as many bytes."""
    return struct.pack("!BH", kind, len(content)) + content


def recovered(subflow, first, count):
    return bytes([RECOVERED, subflow]) + varint(first) + varint(count)


def end(address, port):
    return ipaddress.ip_address(address).packed + struct.pack("!H", port)


def opening(client, server, credit, asking=False):
    """The opening of a stream between two (address, port)."""
    version = ipaddress.ip_address(client[0]).version + (16 if asking else 0)
    return bytes([version]) + end(*client) + end(*server) + varint(credit)


def stream(number, offset, content=b"", opened=b"", fin=False):
    kind = STREAM | (FIN if fin else 0) | (OPEN if opened else 0)
    unit = varint(number) + opened + content
    return bytes([kind]) + offset.to_bytes(6, "big") + struct.pack("!H", len(unit)) + unit


def stream_credit(number, limit):
    return bytes([STREAM_CREDIT]) + varint(number) + varint(limit)


def stream_reset(number, code):
    return bytes([STREAM_RESET]) + varint(number) + varint(code)


# ---- reading

def _ack(r):
    subflow, largest, delay, count = r.number(1), r.varint(), r.varint(), r.varint()
    if not 1 <= count <= 32:
        raise Malformed("range count")
    high, numbers = largest, []
    for turn in range(count):
        if turn:
            high = low - 2 - r.varint()
        low = high - r.varint()
        if low < 0:
            raise Malformed("range")
        numbers.append((low, high))
    return {"subflow": subflow, "largest": largest, "delay": delay, "ranges": numbers,
            "ecn": [r.varint() for _ in range(3)]}


def _parity(r):
    out = {"block": r.number(2), "index": r.number(1), "m": r.number(1), "size": r.number(2)}
    symbols = []
    for _ in range(r.number(1)):
        subflow, number, runs = r.number(1), r.number(4), r.number(1)
        for turn in range(runs):
            if turn:
                number += r.varint() + 1
            for _ in range(r.varint() + 1):
                symbols.append((subflow, number))
                number += 1
    return {**out, "symbols": symbols, "part": r.take(r.number(2))}


def _params(r):
    body, entries, before = Reader(r.take(r.number(2))), {}, -1
    while body.left():
        name = body.varint()
        if name <= before:
            raise Malformed("ids do not ascend")
        before, value = name, body.take(body.varint())
        entries[name] = value if name > 7 else Reader(value).varint()
    return {"entries": entries}


def _stream(r, kind):
    offset, unit = r.number(6), Reader(r.take(r.number(2)))
    out = {"offset": offset, "stream": unit.varint(), "fin": bool(kind & FIN), "open": bool(kind & OPEN)}
    if out["open"]:
        version = unit.number(1)
        size = 4 if version & 15 == 4 else 16
        out |= {"version": version}
        for name in ("client", "server"):
            out[name] = (str(ipaddress.ip_address(unit.take(size))), unit.number(2))
        out |= {"credit": unit.varint()}
    return {**out, "data": unit.take(unit.left())}


_FIXED = {  # type: (field, size in bytes; 0 for a varint)
    PADDING: (), PING: (), PATH_CHALLENGE: (("token", 8),), PATH_RESPONSE: (("token", 8),),
    SKIP: (("flow", 2), ("first", 0), ("count", 0)),
    SUBFLOW_STATUS: (("subflow", 1), ("sequence", 0), ("available", 1)),
    CLOSE: (("reason", 0),), RECOVERED: (("subflow", 1), ("first", 0), ("count", 0)),
    SUBFLOW_PREFERENCE: (("subflow", 1), ("sequence", 0), ("use", 1), ("weight", 1), ("uplink", 1), ("ceiling", 0)),
    RENEW_KEYS: (("handshake", 4),), KEYS_READY: (("handshake", 4), ("ready", 1)),
    STREAM_CREDIT: (("stream", 0), ("limit", 0)), STREAM_RESET: (("stream", 0), ("code", 0)),
}


def _fields(r, kind):
    if kind in _FIXED:
        return {name: (r.take(8) if name == "token" else r.number(size) if size else r.varint())
                for name, size in _FIXED[kind]}
    if kind == ACK:
        return _ack(r)
    if kind == ACK_TIMED:
        fields, time = _ack(r), r.number(4)
        return fields | {"micros": time >> 1, "of_run": time & 1}
    if kind == DATA:
        return {"flow": r.number(2), "dsn": r.number(4), "packet": r.take(r.number(2))}
    if kind == PARITY:
        return _parity(r)
    if kind == PARITY_TAIL:
        return {"block": r.number(2), "index": r.number(1), "offset": r.number(2), "part": r.take(r.number(2))}
    if kind == PARAMS:
        return _params(r)
    if kind & ~3 == STREAM:
        return _stream(r, kind)
    if 0x40 <= kind < 0x80:
        return {"content": r.take(r.number(2))}
    raise Malformed(f"type {kind:#x}")


def read(content):
    """The frames of a datagram, without PADDING. Malformed for what the document does not allow."""
    r, out = Reader(content), []
    while r.left():
        start, kind = r.place, r.number(1)
        if kind != PADDING:
            fields = _fields(r, kind)
            out.append(Frame(kind, fields, content[start:r.place]))
    return out
