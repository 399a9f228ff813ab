"""A handshake as an initiator (docs/protocol.md, section 2): DTLS in envelopes, over one route."""

import os
import select
import time

from . import crypto, dtls
from .envelope import COOKIE_REQUEST, LARGEST, NO_COOKIE, RESPONDER, Envelope
from .envelope import INITIATOR as OURS

PATIENCE = 2.0  # seconds for an answer that must come
SILENCE = 0.15  # seconds after which an answer does not come any more: the lab has no delay
ROOM = LARGEST - 37 - 16  # bytes of DTLS in a datagram


def arrives(socket, timeout):
    """(datagram, address, ECN codepoint) or None. The codepoint is that of a socket of Place.socket()."""
    if not select.select([socket], [], [], max(0, timeout))[0]:
        return None
    datagram, more, _, address = socket.recvmsg(65535, 64)
    return datagram, address, next((content[0] & 3 for _, _, content in more), 0)


class Handshake:
    """`socket`: bound where the handshake starts; `remote`: the responder; `client`: the DTLS inside."""

    def __init__(self, socket, remote, pin, client):
        self.socket, self.remote, self.client = socket, remote, client
        self.envelope = Envelope(pin)
        self.id = os.urandom(8)
        self.cookie = NO_COOKIE
        self.came = []  # all that opened, as Opened
        self.strange = []  # datagrams that are not of this handshake

    def send_body(self, body, **changes):
        """Sends one handshake datagram and returns it."""
        datagram = self.envelope.seal(OURS, self.id, body, self.cookie, **changes)
        self.socket.sendto(datagram, self.remote)
        return datagram

    def send(self, *records):
        """Sends records, as many in a datagram as fit."""
        body = b""
        for record in records:
            if len(body) + len(record) > ROOM:
                self.send_body(body)
                body = b""
            body += record
        self.send_body(body)

    def receive(self, timeout=PATIENCE):
        """The next datagram of this handshake, Opened, or None when the time is over."""
        deadline = time.monotonic() + timeout
        while got := arrives(self.socket, deadline - time.monotonic()):
            opened = self.envelope.open(got[0])
            if not opened or opened.id != self.id or opened.kind not in (RESPONDER, COOKIE_REQUEST):
                self.strange.append(got[0])
                continue
            self.came.append(opened)
            if opened.kind == COOKIE_REQUEST:
                self.cookie = opened.body
            elif opened.body and opened.body[0] >= dtls.CCS:
                self.client.take(opened.body)
            return opened
        return None

    def receive_until(self, condition, timeout=PATIENCE):
        """Whether it becomes true while datagrams come."""
        deadline = time.monotonic() + timeout
        while not condition():
            if not self.receive(deadline - time.monotonic()):
                return condition()
        return True

    def hello(self):
        """Sends the ClientHello, without and with the cookie. Whether the server's whole flight has come."""
        self.send(self.client.hello())
        opened = self.receive()
        if opened and opened.kind == COOKIE_REQUEST:
            self.send(self.client.hello())
        return self.receive_until(lambda: dtls.DONE in self.client.server or self.client.alerts)\
            and dtls.DONE in self.client.server

    def finish(self, steps=dtls.FLIGHT, timeout=PATIENCE):
        """Sends the second flight. Whether the server has finished, too."""
        self.send(*self.client.flight(steps))
        return self.receive_until(lambda: self.client.done or self.client.alerts, timeout) and self.client.done

    def run(self):
        """The whole handshake; raises AssertionError when it fails."""
        assert self.hello(), f"no flight of the server came: alerts {self.client.alerts}, {len(self.came)} datagrams"
        assert self.finish(), f"the server did not finish: alerts {self.client.alerts}"
        return self

    def keys(self, psk=None):
        """(Generation, session id)."""
        exported = self.client.exporter(crypto.EXPORTER, 68)
        return crypto.Generation.of(self.client.suite, exported, psk), crypto.session_id(exported)
