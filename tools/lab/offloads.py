"""Hosts whose offloads do not work: a network card that damages what it merges, a device that takes no runs.

As a program: `python3 offloads.py PROGRAM...` runs it with a kernel that refuses several packets in one write."""

import ctypes
import errno
import os
import platform
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2  # linux/prctl.h, linux/seccomp.h
_LOAD, _EQUAL, _GREATER, _RETURN = 0x20, 0x15, 0x25, 0x06  # linux/filter.h: BPF_LD | BPF_W | BPF_ABS, ...
_NUMBER, _PIECES = 0, 16 + 2 * 8  # struct seccomp_data: nr, and the low half of args[2]
_ERRNO, _ALLOW = 0x00050000, 0x7fff0000
_WRITEV = {"x86_64": 20, "aarch64": 66}
_OF_ONE = 2  # pieces of a write of one packet: the virtio header and the packet

REFUSES_RUNS = [sys.executable, os.path.abspath(__file__)]  # words before a daemon's command line

HOLD = 1_000_000  # nanoseconds that a card holds datagrams to merge further ones with them
DATAGRAM, MERGED = 1500, 65000  # bytes


def damage_merged(near, space, device, port):
    """The end of a wire in `space` merges datagrams (GRO) for sockets that ask for it, and damages one byte in each
    1500 behind the first datagram of those to a UDP port. `near`: the namespace of the other end, which has the same
    name there. Needs a kernel that changes bytes by nftables anywhere in a packet."""
    near.run("ethtool", "-K", device, "tso", "off")  # else a veth pair does not merge
    space.run("ethtool", "-K", device, "gro", "on")
    space.run("sh", "-c", f"echo {HOLD} > /sys/class/net/{device}/gro_flush_timeout")
    rules = [f"  meta l4proto udp th dport {port} meta length > {at + 64} @th,{8 * at},8 set 0x5a"
             for at in range(DATAGRAM + 300, MERGED, DATAGRAM)]
    space.run("nft", "\n".join(["table inet card { chain arrivals { type filter hook prerouting priority -300;", *rules,
                               "}", "}"]))


def _refuse_runs():
    code = [(_LOAD, 0, 0, _NUMBER), (_EQUAL, 0, 3, _WRITEV[platform.machine()]),
            (_LOAD, 0, 0, _PIECES), (_GREATER, 0, 1, _OF_ONE),
            (_RETURN, 0, 0, _ERRNO | errno.EINVAL), (_RETURN, 0, 0, _ALLOW)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0)):
        if libc.prctl(*words) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    _refuse_runs()
    os.execv(sys.argv[1], sys.argv[1:])
