"""Pins, key derivation and the three AEADs (docs/protocol.md, sections 2 and 4)."""

import hashlib
import hmac

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

TAG = 16
EXPORTER = b"EXPORTER-braid-2"
JOIN_EXPORTER = b"EXPORTER-braid-join-1"
FORGOTTEN = 3.0  # seconds for which a side keeps the keys of the previous epoch or generation


class Suite:
    """A cipher suite: its AEAD for session datagrams and joins, and what DTLS needs of it."""

    def __init__(self, number, aead, key, fixed_iv, digest):
        self.number, self.aead, self.key, self.fixed_iv, self.digest = number, aead, key, fixed_iv, digest


AES128 = Suite(0xc02b, AESGCM, 16, 4, "sha256")
AES256 = Suite(0xc02c, AESGCM, 32, 4, "sha384")
CHACHA = Suite(0xcca9, ChaCha20Poly1305, 32, 12, "sha256")
SUITES = {suite.number: suite for suite in (AES128, AES256, CHACHA)}


def extract(salt, secret):
    return hmac.digest(salt, secret, "sha256")


def expand_label(secret, label, length):
    """HKDF-Expand-Label of RFC 8446 with SHA-256 and an empty context."""
    full = b"tls13 " + label.encode()
    info = length.to_bytes(2, "big") + bytes([len(full)]) + full + b"\0"
    out, block = b"", b""
    while len(out) < length:
        block = hmac.digest(secret, block + info + bytes([len(out) // 32 + 1]), "sha256")
        out += block
    return out[:length]


def pin_of(certificate):
    """The pin of an x509 certificate."""
    spki = certificate.public_key().public_bytes(serialization.Encoding.DER,
                                                 serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(spki).digest()


def xor(one, other):
    return bytes(a ^ b for a, b in zip(one, other))


class Sealer:
    """Key and IV of one secret, for a suite."""

    def __init__(self, suite, secret):
        self.aead = suite.aead(expand_label(secret, "braid key", suite.key))
        self.iv = expand_label(secret, "braid iv", 12)

    def nonce(self, subflow, number):
        return xor(self.iv, subflow.to_bytes(4, "big") + number.to_bytes(8, "big"))

    def seal(self, subflow, number, head, content):
        return self.aead.encrypt(self.nonce(subflow, number), content, head)

    def open(self, subflow, number, head, sealed):
        """The content. cryptography's InvalidTag when the seal does not open."""
        return self.aead.decrypt(self.nonce(subflow, number), sealed, head)


class Generation:
    """The keys of both directions that one handshake gave: secrets of epoch 0, and from these all epochs."""

    def __init__(self, suite, secrets):
        self.suite = suite
        self.secrets = secrets  # (initiator's, responder's), of epoch 0
        self._sealers = {}

    @classmethod
    def of(cls, suite, exported, psk=None):
        """From the 68 bytes of the exporter, and the pre-shared key if there is one."""
        secrets = (exported[:32], exported[32:64])
        made = cls(suite, tuple(extract(psk, secret) for secret in secrets) if psk else secrets)
        made.notice_token = expand_label(secrets[1], "braid psk", 16)  # of the key notice
        return made

    def sealer(self, side, epoch):
        """`side`: 0 what the initiator seals, 1 what the responder seals."""
        if (side, epoch) not in self._sealers:
            secret = self.secrets[side]
            for _ in range(epoch):
                secret = expand_label(secret, "braid ku", 32)
            self._sealers[side, epoch] = Sealer(self.suite, secret)
        return self._sealers[side, epoch]

    def roots(self):
        return [expand_label(secret, "braid root", 32) for secret in self.secrets]

    def next(self, fresh):
        """The generation after this one, from the Generation that a fresh handshake's exporter gave."""
        return Generation(fresh.suite, tuple(extract(old, new) for old, new in zip(self.roots(), fresh.roots())))

    def return_token(self):
        """The token of the restart notice."""
        return expand_label(self.secrets[1], "braid return", 16)


def session_id(exported):
    return int.from_bytes(exported[64:68], "big") or 1
