"""DTLS 1.2 (RFC 6347, RFC 5246, RFC 7627) as a client, by hand, so that each message can be wrong in any way.

Flight 1 is hello(); take() reads what the server sends; flight() makes the second flight, in the order asked for.
"""

import datetime
import hashlib
import hmac
import os
import struct

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.x509.oid import NameOID

from .crypto import CHACHA, SUITES, pin_of, xor

CCS, ALERT, HANDSHAKE, APPLICATION = 20, 21, 22, 23  # types of records
HELLO, SERVER_HELLO, CERTIFICATE, SERVER_KEY, REQUEST, DONE, VERIFY, CLIENT_KEY = 1, 2, 11, 12, 13, 14, 15, 16
FINISHED = 20
X25519, P256 = 29, 23
ECDSA_SHA256 = 0x0403
FLIGHT = ("certificate", "key_exchange", "verify", "ccs", "finished")
HANDSHAKE_FAILURE, PROTOCOL_VERSION, NO_APPLICATION_PROTOCOL = 40, 70, 120  # alerts


class Identity:
    """A key with its certificate. `key`: a private key of any kind, by default a new one of P-256."""

    def __init__(self, key=None, certificate=None):
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.certificate = certificate or _self_signed(self.key)
        self.der = self.certificate.public_bytes(serialization.Encoding.DER)
        self.pin = pin_of(self.certificate)

    @classmethod
    def read(cls, key, certificate):
        """From the files of `braidctl keygen`."""
        return cls(serialization.load_pem_private_key(key.read_bytes(), None),
                   x509.load_pem_x509_certificate(certificate.read_bytes()))


def _self_signed(key):
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "second")])
    begin = datetime.datetime(2020, 1, 1)
    algorithm = hashes.SHA256() if hasattr(key, "curve") or hasattr(key, "key_size") else None  # Ed25519 has its own
    return (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(begin).not_valid_after(begin + datetime.timedelta(1))
            .sign(key, algorithm))


def prf(digest, secret, label, seed, size):
    seed, out = label + seed, b""
    a = seed
    while len(out) < size:
        a = hmac.digest(secret, a, digest)
        out += hmac.digest(secret, a + seed, digest)
    return out[:size]


def vector(content, size):
    return len(content).to_bytes(size, "big") + content


def extension(kind, content):
    return struct.pack("!H", kind) + vector(content, 2)


class Client:
    """One handshake. What `changes` gives replaces the ordinary: suites, groups, protocols (ALPN names; None: no such
    extension), ems, version, chain (DER certificates), signer (key of the verify message), verify_data."""

    def __init__(self, identity, protocols=(b"braid/2",), **changes):
        self.suites, self.groups = list(SUITES), [X25519, P256]
        self.protocols, self.ems, self.version = protocols, True, 0xfefd
        self.chain, self.signer, self.verify_data = [identity.der], identity.key, None
        self.__dict__.update(changes)
        self.random = os.urandom(32)
        self.sequence = [0, 0]  # next record number of each epoch
        self.next_message = 0
        self.transcript = []
        self.parts = {}  # message number: (type, bytes, set of those that came)
        self.read_messages = 0
        self.server = {}  # type of message: its body
        self.alerts = []
        self.master, self.suite, self.keys = bytes(48), None, None
        self.done = False
        self.record_types = set()  # of what the server has sent

    # ---- records and messages

    def record(self, kind, content, epoch=0, version=0xfefd):
        number = self.sequence[epoch]
        self.sequence[epoch] += 1
        place = struct.pack("!HHI", epoch, number >> 32, number & 0xffffffff)
        if epoch and self.keys:
            content = self._protect(kind, place, content)
        return struct.pack("!BH", kind, version) + place + vector(content, 2)

    def message(self, kind, body, number=None):
        """A whole handshake message, which counts in the transcript."""
        if number is None:
            number = self.next_message
            self.next_message += 1
        size = len(body).to_bytes(3, "big")
        out = bytes([kind]) + size + struct.pack("!H", number) + bytes(3) + size + body
        self.transcript.append(out)
        return out

    def fragments(self, message, size, overlap=0):
        """Records of at most `size` bytes of a message each; each repeats the last `overlap` bytes."""
        body, out = message[12:], []
        for start in range(0, len(body), size):
            first = max(0, start - overlap)
            part = body[first:start + size]
            out.append(self.record(HANDSHAKE, message[:6] + first.to_bytes(3, "big") + vector(part, 3)))
        return out

    def _aead(self, mine):
        return self.suite.aead(self.keys[0 if mine else 1])

    def _nonce(self, mine, place, explicit):
        fixed = self.keys[2 if mine else 3]
        return xor(fixed, bytes(4) + place) if self.suite is CHACHA else fixed + explicit

    def _protect(self, kind, place, content):
        explicit = b"" if self.suite is CHACHA else place
        head = place + struct.pack("!BHH", kind, 0xfefd, len(content))
        return explicit + self._aead(True).encrypt(self._nonce(True, place, explicit), content, head)

    def _unprotect(self, kind, place, sealed):
        cut = 0 if self.suite is CHACHA else 8
        head = place + struct.pack("!BHH", kind, 0xfefd, len(sealed) - cut - 16)
        return self._aead(False).decrypt(self._nonce(False, place, sealed[:cut]), sealed[cut:], head)

    # ---- the client's messages

    def hello(self, session=b""):
        """The record of a ClientHello. Called again, the same one in a new record."""
        if not self.transcript:
            extensions = extension(10, vector(b"".join(struct.pack("!H", group) for group in self.groups), 2))
            extensions += extension(11, vector(b"\0", 1)) + extension(13, vector(struct.pack("!H", ECDSA_SHA256), 2))
            extensions += extension(0xff01, b"\0")
            if self.ems:
                extensions += extension(23, b"")
            if self.protocols is not None:
                extensions += extension(16, vector(b"".join(vector(name, 1) for name in self.protocols), 2))
            suites = b"".join(struct.pack("!H", suite) for suite in self.suites)
            self.message(HELLO, struct.pack("!H", self.version) + self.random + vector(session, 1) + b"\0"
                         + vector(suites, 2) + b"\1\0" + vector(extensions, 2))
        return self.record(HANDSHAKE, self.transcript[0])

    def flight(self, steps=FLIGHT):
        """The records of these steps, in this order."""
        return [getattr(self, step)() for step in steps]

    def certificate(self):
        listed = b"".join(vector(der, 3) for der in self.chain)
        return self.record(HANDSHAKE, self.message(CERTIFICATE, vector(listed, 3)))

    def key_exchange(self):
        share, shared = self._share()
        out = self.record(HANDSHAKE, self.message(CLIENT_KEY, vector(share, 1)))
        label, seed = ((b"extended master secret", self.hashed()) if self.ems else
                       (b"master secret", self.random + self.server_random))
        self.master = prf(self.suite.digest, shared, label, seed, 48)
        key, fixed = self.suite.key, self.suite.fixed_iv
        block = prf(self.suite.digest, self.master, b"key expansion", self.server_random + self.random,
                    2 * (key + fixed))
        self.keys = [block[:key], block[key:2 * key], block[2 * key:2 * key + fixed], block[2 * key + fixed:]]
        return out

    def verify(self):
        signed = b"".join(self.transcript)
        signature = self.signer.sign(signed, ec.ECDSA(hashes.SHA256()))
        return self.record(HANDSHAKE, self.message(VERIFY, struct.pack("!H", ECDSA_SHA256) + vector(signature, 2)))

    def ccs(self):
        return self.record(CCS, b"\1")

    def finished(self, epoch=1):
        said = prf(self.suite.digest, self.master, b"client finished", self.hashed(), 12)
        return self.record(HANDSHAKE, self.message(FINISHED, self.verify_data or said), epoch)

    def plain_finished(self):
        return self.finished(epoch=0)

    def application(self):
        return self.record(APPLICATION, b"data", epoch=1)

    # ---- the server's messages

    def hashed(self):
        return hashlib.new(self.suite.digest, b"".join(self.transcript)).digest()

    def exporter(self, label, size):
        return prf(self.suite.digest, self.master, label, self.random + self.server_random, size)

    def take(self, datagram):
        """Reads a DTLS datagram."""
        while datagram:
            kind, place = datagram[0], datagram[3:11]
            size = struct.unpack("!H", datagram[11:13])[0]
            content, datagram = datagram[13:13 + size], datagram[13 + size:]
            if place[1]:  # the epoch
                try:
                    content = self._unprotect(kind, place, content)
                except InvalidTag:
                    continue
            self.record_types.add(kind)
            if kind == HANDSHAKE:
                self._take_fragment(content)
            elif kind == ALERT:
                self.alerts.append(content[1])

    def _take_fragment(self, content):
        while content:
            size = int.from_bytes(content[1:4], "big")
            number = struct.unpack("!H", content[4:6])[0]
            start, length = (int.from_bytes(content[at:at + 3], "big") for at in (6, 9))
            kind, body, there = self.parts.setdefault(number, (content[0], bytearray(size), set()))
            body[start:start + length] = content[12:12 + length]
            there.update(range(start, start + length))
            content = content[12 + length:]
        while self.read_messages in self.parts:
            kind, body, there = self.parts[self.read_messages]
            if len(there) < len(body):
                break
            self._take_message(kind, bytes(body), self.read_messages)
            self.read_messages += 1

    def _take_message(self, kind, body, number):
        self.server[kind] = body
        if kind == FINISHED:
            self.done = hmac.compare_digest(body, prf(self.suite.digest, self.master, b"server finished",
                                                      self.hashed(), 12))
        else:
            self.message(kind, body, number)
        if kind == SERVER_HELLO:
            self.server_random = body[2:34]
            rest = body[35 + body[34]:]
            self.suite = SUITES[struct.unpack("!H", rest[:2])[0]]
            self.compression = rest[2]
            self.extensions, rest = {}, rest[5:]
            while rest:
                name, size = struct.unpack("!HH", rest[:4])
                self.extensions[name], rest = rest[4:4 + size], rest[4 + size:]

    def protocol(self):
        """The ALPN name that the server has chosen."""
        return self.extensions[16][3:] if 16 in self.extensions else None

    def server_certificate(self):
        return x509.load_der_x509_certificate(self.server[CERTIFICATE][6:])

    def check_server_key(self):
        """Raises InvalidSignature when the server's share is not signed by its certificate's key."""
        body = self.server[SERVER_KEY]
        cut = 4 + body[3]
        self.server_certificate().public_key().verify(body[cut + 4:], self.random + self.server_random + body[:cut],
                                                      ec.ECDSA(hashes.SHA256()))

    def _share(self):
        """(this side's share, the shared secret)."""
        body = self.server[SERVER_KEY]
        group, theirs = struct.unpack("!H", body[1:3])[0], body[4:4 + body[3]]
        if group == X25519:
            own = x25519.X25519PrivateKey.generate()
            public = own.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
            return public, own.exchange(x25519.X25519PublicKey.from_public_bytes(theirs))
        own = ec.generate_private_key(ec.SECP256R1())
        public = own.public_key().public_bytes(serialization.Encoding.X962,
                                               serialization.PublicFormat.UncompressedPoint)
        return public, own.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs))
