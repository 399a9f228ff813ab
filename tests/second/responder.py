"""A responder (docs/protocol.md, section 2): envelopes and cookies by hand, and the DTLS of OpenSSL inside."""

import hashlib
import os
import time

from OpenSSL import SSL, crypto as openssl

from . import crypto
from .envelope import COOKIE_REQUEST, INITIATOR, LARGEST, NO_COOKIE, RESPONDER, Envelope
from .handshake import arrives
from .session import Session

SUITES = {"ECDHE-ECDSA-AES128-GCM-SHA256": crypto.AES128, "ECDHE-ECDSA-AES256-GCM-SHA384": crypto.AES256,
          "ECDHE-ECDSA-CHACHA20-POLY1305": crypto.CHACHA}


class Hello:
    """A ClientHello, read as far as Braid says something of it."""

    def __init__(self, record):
        body = record[25:]  # behind the heads of record and message
        self.version, rest = body[:2], body[34:]
        rest = rest[1 + rest[0]:]  # without session id and
        rest = rest[1 + rest[0]:]  # cookie
        cut = 2 + int.from_bytes(rest[:2], "big")
        self.suites = {int.from_bytes(rest[at:at + 2], "big") for at in range(2, cut, 2)}
        rest = rest[cut:]
        self.compressions, rest = rest[1:1 + rest[0]], rest[3 + rest[0]:]
        self.extensions = {}
        while rest:
            size = int.from_bytes(rest[2:4], "big")
            self.extensions[int.from_bytes(rest[:2], "big")], rest = rest[4:4 + size], rest[4 + size:]

    def protocols(self):
        """The ALPN names."""
        out, rest = [], self.extensions[16][2:]
        while rest:
            out.append(rest[1:1 + rest[0]])
            rest = rest[1 + rest[0]:]
        return out

    def groups(self):
        content = self.extensions[10][2:]
        return {int.from_bytes(content[at:at + 2], "big") for at in range(0, len(content), 2)}


class Association:
    """One handshake of an initiator."""

    def __init__(self, responder, first):
        self.first, self.cookies = first, []
        self.hello = Hello(first.body)
        self.done = self.ended = False
        context = SSL.Context(SSL.DTLS_METHOD)
        context.set_options(SSL.OP_NO_QUERY_MTU | SSL.OP_NO_TICKET)
        context.set_cipher_list(":".join(SUITES).encode())
        context.use_privatekey(openssl.PKey.from_cryptography_key(responder.shown.key))
        context.use_certificate(openssl.X509.from_cryptography(responder.shown.certificate))
        context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, lambda *_: True)
        context.set_alpn_select_callback(lambda *_: responder.protocol)
        self.connection = SSL.Connection(context, None)
        self.connection.set_accept_state()
        self.connection.set_ciphertext_mtu(LARGEST - 60)

    def take(self, body):
        """The bodies of datagrams that answer this one."""
        self.connection.bio_write(body)
        try:
            self.connection.do_handshake()
            self.done = True
        except SSL.WantReadError:
            pass
        except SSL.Error:
            self.ended = True
        try:
            rest = self.connection.bio_read(65535)
        except SSL.WantReadError:
            return []
        bodies = [b""]
        while rest:
            size = 13 + int.from_bytes(rest[11:13], "big")
            if len(bodies[-1]) + size > LARGEST - 37:
                bodies.append(b"")
            bodies[-1] += rest[:size]
            rest = rest[size:]
        return bodies

    def keys(self, psk=None):
        """(Generation, session id)."""
        suite = SUITES[self.connection.get_cipher_name()]
        exported = self.connection.export_keying_material(crypto.EXPORTER, 68)
        return crypto.Generation.of(suite, exported, psk), crypto.session_id(exported)


class Responder:
    """`socket`: where it listens; `identity`: whose pin the initiator knows. `changes`: shown (another identity),
    protocol (what it chooses), asks (for a cookie), answers (at all)."""

    def __init__(self, socket, identity, **changes):
        self.socket, self.shown, self.envelope = socket, identity, Envelope(identity.pin)
        self.protocol, self.asks, self.answers = b"braid/2", True, True
        self.__dict__.update(changes)
        self.secret = os.urandom(16)
        self.associations = {}  # handshake id: Association
        self.came = []  # (address, Opened) of all handshake datagrams
        self.session = None  # to which session datagrams are given

    def cookie(self, address):
        return hashlib.sha256(self.secret + repr(address).encode()).digest()[:16]

    def take(self, datagram, address, mark):
        if datagram[0] >> 6 == 1:
            if self.session:
                self.session.take(self.socket, datagram, address, mark)
            return
        opened = self.envelope.open(datagram)
        if not opened or opened.kind != INITIATOR:
            return
        self.came.append((address, opened))
        if not self.answers:
            return
        if self.asks and opened.cookie != self.cookie(address):
            self.reply(COOKIE_REQUEST, opened.id, self.cookie(address), address)
            return
        if opened.id not in self.associations:
            self.associations[opened.id] = Association(self, opened)
        for body in self.associations[opened.id].take(opened.body):
            self.reply(RESPONDER, opened.id, body, address)

    def reply(self, kind, handshake, body, address):
        self.socket.sendto(self.envelope.seal(kind, handshake, body), address)

    def serve(self, condition=lambda: False, timeout=3):
        """Answers until the condition is true, or the time is over. The condition's last value."""
        deadline = time.monotonic() + timeout
        while not (value := condition()) and (left := deadline - time.monotonic()) > 0:
            got = arrives(self.socket, min(left, 0.02))
            if got:
                self.take(*got)
        return value

    def done(self):
        """The handshakes that are done."""
        return [each for each in self.associations.values() if each.done]

    def accept(self, psk=None, **changes):
        """The session of the next handshake that ends."""
        before = len(self.done())
        assert self.serve(lambda: len(self.done()) > before, 5), "no handshake came to its end"
        generation, name = self.done()[-1].keys(psk)
        self.session = Session(generation, name, self.socket, self.came[-1][0], side=1, **changes)
        self.session.subflows.clear()  # those that the initiator begins
        return self.session


def no_cookie(opened):
    return opened.cookie == NO_COOKIE
