"""Joining (docs/protocol.md, section 14): what an invitation proves, requests and answers."""

import base64
import hashlib
import ipaddress

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from . import crypto
from .frames import Reader

REQUEST, ANSWER = 1, 2
PROTOCOL = b"braid-join/1"
DONE, UNKNOWN, USED, EXPIRED, TAKEN, FAILED = range(6)


def networks(listed):
    """A list of (address, prefix length)."""
    out = bytes([len(listed)])
    for address, length in listed:
        address = ipaddress.ip_address(address)
        out += bytes([address.version]) + address.packed + bytes([length])
    return out


class Invitation:
    """The holder of an invitation's secret."""

    def __init__(self, secret):
        self.key = ed25519.Ed25519PrivateKey.from_private_bytes(secret)
        self.public = self.key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.name = hashlib.sha256(self.public).digest()[:8]

    def request(self, binding, own_pin, their_pin, asked):
        """A request for these networks."""
        wish = networks(asked)
        signature = self.key.sign(b"braid join 1" + binding + own_pin + their_pin + wish)
        return bytes([1]) + self.name + signature + wish


def seal(suite, secret, kind, content):
    """The body of a handshake datagram."""
    sealer = crypto.Sealer(suite, secret)
    return bytes([kind]) + sealer.aead.encrypt(sealer.iv, content, bytes([kind]))


def open_answer(suite, secret, body):
    sealer = crypto.Sealer(suite, secret)
    return read_answer(sealer.aead.decrypt(sealer.iv, body[1:], body[:1]))


def read_answer(content):
    """An answer as a dict; AssertionError when it is not well-formed."""
    r = Reader(content)
    assert r.number(1) == 1, "format"
    out = {"code": r.number(1), "text": r.take(r.number(1)).decode(), "name": r.take(r.number(1)).decode()}

    def address():
        return str(ipaddress.ip_address(r.take(4 if r.number(1) == 4 else 16)))

    out["theirs"] = [address() for _ in range(r.number(1))]
    out["own"] = [(address(), r.number(1)) for _ in range(r.number(1))]
    out["networks"] = [(address(), r.number(1)) for _ in range(r.number(1))]
    assert not r.left(), "longer than its lists"
    return out


def secret_of(line):
    """The secret in the line that `braidctl invite` prints: version/endpoint/pin/secret/..."""
    return base64.urlsafe_b64decode(line.split("/")[3] + "=")
