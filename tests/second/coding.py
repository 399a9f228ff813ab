"""The code of parities (docs/protocol.md, section 8) and the frames that carry them."""

import struct

from . import frames as f


def _tables():
    powers, logs, value = [0] * 510, [0] * 256, 1
    for power in range(255):
        powers[power] = powers[power + 255] = value
        logs[value] = power
        value = value << 1 ^ (0x11d if value & 0x80 else 0)
    return powers, logs


_POWERS, _LOGS = _tables()


def multiply(a, b):
    return _POWERS[_LOGS[a] + _LOGS[b]] if a and b else 0


def divide(a, b):
    return _POWERS[_LOGS[a] - _LOGS[b] + 255] if a else 0


def coefficient(i, j):
    column = 128 ^ j
    if i == 15:
        return divide(column, 128)
    x = 128 + i
    return divide(multiply(x, column), multiply(128, x ^ j))


def parity(index, symbols):
    """Parity number `index` of these symbols."""
    out = bytearray(max(map(len, symbols)))
    for j, symbol in enumerate(symbols):
        c = coefficient(index, j)
        for place, byte in enumerate(symbol):
            out[place] ^= multiply(c, byte)
    return bytes(out)


def symbol(frames):
    """The symbol of a datagram with these Frames."""
    return b"".join(frame.raw for frame in frames if frame.type == f.DATA or frame.type & ~3 == f.STREAM)


def groups(names):
    """The groups of a PARITY that names (subflow, packet number) in this order; each of one run."""
    runs = []
    for subflow, number in names:
        if runs and runs[-1][0] == subflow and runs[-1][1] + runs[-1][2] == number:
            runs[-1][2] += 1
        else:
            runs.append([subflow, number, 1])
    return bytes([len(runs)]) + b"".join(struct.pack("!BIB", subflow, number, 1) + f.varint(count - 1)
                                         for subflow, number, count in runs)


def frame(block, index, m, names, value, size=None, part=None):
    """A PARITY. `value`: the parity; `part`: how many of its bytes the frame carries (all)."""
    carried = value[:part]
    return struct.pack("!BHBBH", f.PARITY, block, index, m, len(value) if size is None else size)\
        + groups(names) + struct.pack("!H", len(carried)) + carried


def tail(block, index, offset, rest):
    """A PARITY_TAIL."""
    return struct.pack("!BHBHH", f.PARITY_TAIL, block, index, offset, len(rest)) + rest
