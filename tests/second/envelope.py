"""Handshake datagrams, the key notice and the restart notice (docs/protocol.md, sections 2 and 10)."""

import os
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from .crypto import expand_label, extract

INITIATOR, RESPONDER, COOKIE_REQUEST, NOTICE, KEY_NOTICE = 32, 33, 34, 35, 36
LARGEST = 1200  # bytes of a handshake datagram
NO_COOKIE = bytes(16)


class Opened(NamedTuple):
    """A handshake datagram that has opened."""

    kind: int
    id: bytes
    nonce: bytes
    cookie: bytes  # empty except for INITIATOR
    body: bytes


class Envelope:
    """Seals and opens the handshake datagrams of one responder, known by its pin."""

    def __init__(self, pin):
        base = extract(bytes(32), pin)
        self.keys = {"i": expand_label(base, "braid hs i", 32), "r": expand_label(base, "braid hs r", 32)}

    def _aead(self, kind):
        return ChaCha20Poly1305(self.keys["i" if kind == INITIATOR else "r"])

    def seal(self, kind, handshake, body, cookie=NO_COOKIE, nonce=None):
        nonce = nonce or os.urandom(12)
        head = bytes([kind]) + handshake + nonce + (cookie if kind == INITIATOR else b"")
        return head + self._aead(kind).encrypt(nonce, body, head)

    def open(self, datagram):
        """Opened, or None for what is no handshake datagram of this responder."""
        kind = datagram[0]
        head = 37 if kind == INITIATOR else 21
        if kind not in (INITIATOR, RESPONDER, COOKIE_REQUEST) or len(datagram) < head + 16:
            return None
        nonce = datagram[9:21]
        try:
            body = self._aead(kind).decrypt(nonce, datagram[head:], datagram[:head])
        except InvalidTag:
            return None
        return Opened(kind, datagram[1:9], nonce, datagram[21:head], body)


def notice(session, token, kind=NOTICE):
    """A restart notice, or a key notice."""
    return bytes([kind]) + session.to_bytes(4, "big") + token
