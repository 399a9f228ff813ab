"""python3 -m second.attacker OPTIONS: the process of an attacker. It reads JSON, one object a line, and answers each.

    {"attack": ID, "seconds": S, "mbit": M}  makes a session where the attack needs one, and all datagrams of an attack
                                             that lasts S seconds, of M Mbit/s with their IP headers
                                             -> {"datagrams": number}
    {"order": ["daemon", "sink"]}            sends what was made, cut into slices of two seconds, each of them to both
                                             in this order, and ends the session
                                             -> {"slices": [{"to", "from", "until" (monotonic clock), "mbit", "sent"}],
                                                 "alive": whether the session still was}
"""

import argparse
import contextlib
import json
import pathlib
import socket as sockets
import sys
import time
from typing import NamedTuple

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from . import frames as f
from .attacks import ATTACKS
from .dtls import Client, Identity
from .envelope import COOKIE_REQUEST, Envelope
from .handshake import Handshake
from .session import Session

HEADERS = 28  # bytes of IPv4 and UDP
TICK = 0.004  # seconds between two bursts
SLICE = 2  # seconds in which all goes to one place


class Stranger(NamedTuple):
    """An address from which no key has come, and the cookie that it got."""

    socket: sockets.socket
    cookie: bytes


class Attacker:
    """What attacks are made with. Sockets and the session live until end()."""

    def __init__(self, options):
        self.daemon = (options.daemon, options.port)
        self.identity = Identity.read(options.key, options.certificate)
        self.pin = bytes.fromhex(options.pin)
        self.envelope = Envelope(self.pin)
        self.signature = self.identity.key.sign(b"something else", ec.ECDSA(hashes.SHA256()))
        self.source, self.host, self.server, self.file = options.source, options.host, options.server, options.file
        self.addresses = options.strangers
        self._open, self._session = contextlib.ExitStack(), None

    def end(self):
        """Whether the session, if there is one, was still alive. It is ended."""
        alive = True
        if self._session:
            for flow in list(self._session.subflows.values()):
                _empty(flow.socket)
            self._session.forget()
            alive = self._session.alive()
            self._session.send(bytes([f.CLOSE, 0]))
        self._session = None
        self._open.close()
        return alive

    def socket(self, address=None):
        socket = self._open.enter_context(contextlib.closing(sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM)))
        socket.bind((address or self.source, 0))
        return socket

    def sockets(self, count):
        return [self.socket() for _ in range(count)]

    def session(self):
        """A session that is up, and silent from now on."""
        handshake = Handshake(self.socket(), self.daemon, self.pin, Client(self.identity)).run()
        self._session = Session(*handshake.keys(), handshake.socket, self.daemon).start()
        self._session.pump(timeout=0.1)
        return self._session

    def strangers(self):
        out = []
        for address in self.addresses:
            handshake = Handshake(self.socket(address), self.daemon, self.pin, Client(self.identity))
            handshake.send(handshake.client.hello())
            out.append(handshake)
        for handshake in out:
            opened = handshake.receive()
            assert opened and opened.kind == COOKIE_REQUEST, f"no cookie request: {opened}"
        return [Stranger(handshake.socket, handshake.cookie) for handshake in out]


def _empty(socket):
    with contextlib.suppress(BlockingIOError):
        while socket.recv(65535, sockets.MSG_DONTWAIT):
            pass


def bursts(datagrams, seconds, mbit):
    """The datagrams of each tick, as pairs of socket and bytes."""
    out, bits = [], 0
    while len(out) < seconds / TICK:
        out.append([])
        while bits < len(out) * TICK * mbit * 1e6:
            socket, datagram = next(datagrams)
            bits += 8 * (len(datagram) + HEADERS)
            out[-1].append((socket, datagram))
    return out


def send(planned, to):
    """Sends bursts at their times. What an answer says of a slice."""
    sent = size = 0
    began = time.monotonic()
    for number, burst in enumerate(planned):
        time.sleep(max(0, began + number * TICK - time.monotonic()))
        for socket, datagram in burst:
            size += socket.sendto(datagram, to) + HEADERS
        sent += len(burst)
    time.sleep(max(0, began + len(planned) * TICK - time.monotonic()))
    until = time.monotonic()
    return {"from": began, "until": until, "mbit": size * 8 / (until - began) / 1e6, "sent": sent}


def send_slices(planned, order, places):
    out, each = [], round(SLICE / TICK)
    for start in range(0, len(planned), each):
        out += [{"to": to, **send(planned[start:start + each], places[to])} for to in order]
    return out


def main():
    parser = argparse.ArgumentParser(prog="second.attacker", description=__doc__)
    for name in ("daemon", "pin", "source", "host", "server", "file"):
        parser.add_argument("--" + name, required=True)
    for name in ("port", "sink-port"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--key", type=pathlib.Path, required=True)
    parser.add_argument("--certificate", type=pathlib.Path, required=True)
    parser.add_argument("--strangers", nargs="*", default=[], metavar="ADDRESS")
    options = parser.parse_args()
    attacker, planned = Attacker(options), []
    places = {"daemon": attacker.daemon, "sink": (options.daemon, options.sink_port)}
    for line in sys.stdin:
        wanted = json.loads(line)
        if "attack" in wanted:
            planned = bursts(iter(ATTACKS[wanted["attack"]](attacker)), wanted["seconds"], wanted["mbit"])
            answer = {"datagrams": sum(map(len, planned))}
        else:
            answer = {"slices": send_slices(planned, wanted["order"], places), "alive": attacker.end()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
