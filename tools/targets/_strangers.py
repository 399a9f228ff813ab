"""A million datagrams from strangers at the concentrator of a pair that carries a download meanwhile.

The strangers are behind the concentrator's LAN port and send to its public address. Some of their datagrams carry the
real edge's address as source (raw socket). The others come from the strangers' own addresses, where answers are
counted."""

import random
import socket
import struct
import threading
import time

from lab import Download, Lab, Link
from lab.gateway import PORT
from lab.site import PUBLIC
from lab.measure import resident_bytes
from lab.packets import capture_udp, checksum
from lab.services import Nginx

from . import require

LINKS = [Link("wifi", 50, 20), Link("lte", 30, 60)]
COUNT = 1_000_000
RATE = 25_000  # datagrams per second: what the daemon's socket takes beside the download on two shared cores
GROWTH_LIMIT = 16 << 20  # bytes of resident memory
STALL_LIMIT = 0.5  # seconds: beyond this the download counts as disturbed
SOCKETS = 128
SEED = 1
CAUSES = ["runt_datagram", "unknown_type", "unknown_version", "unknown_session", "unknown_subflow", "decrypt_failed",
          "replay",
          "bad_frame", "handshake_decrypt_failed", "handshake_replay", "handshake_limit", "handshake_unexpected",
          "restart_notice"]


class Questions:
    """Makes datagrams of every kind from a capture of the real tunnel."""

    def __init__(self, captured, generator):
        self._random = generator
        self._session = [datagram for datagram in captured if datagram[0] & 0xC0 == 0x40]
        self._hellos = [datagram for datagram in captured if 32 <= datagram[0] <= 34]
        if not self._session or not self._hellos:
            raise RuntimeError(f"captured {len(self._session)} datagrams of sessions and {len(self._hellos)} of "
                               "handshakes")
        self.kinds = [self.noise, self.session_like, self.truncated, self.replayed, self.flipped, self.hello,
                      self.flipped_hello, self.fake_hello, self.fake_call]

    def noise(self):
        return self._random.randbytes(self._random.randint(0, 1400))

    def session_like(self):
        """A datagram header of the right form over random bytes."""
        return bytes([0x40 | self._random.getrandbits(6)]) + self._random.randbytes(self._random.randint(0, 1400))

    def truncated(self):
        whole = self._random.choice(self._session)
        return whole[:self._random.randrange(len(whole))]

    def replayed(self):
        return self._random.choice(self._session)

    def flipped(self):
        return self._flip(self._random.choice(self._session))

    def hello(self):
        """A real handshake datagram, as the edge sent it."""
        return self._random.choice(self._hellos)

    def flipped_hello(self):
        return self._flip(self._random.choice(self._hellos))

    def fake_hello(self):
        """The first byte of an initiator's handshake datagram, over random bytes."""
        return b"\x20" + self._random.randbytes(self._random.randint(12, 400))

    def fake_call(self):
        """A restart notice for an existing session, with a wrong token."""
        return b"\x23" + self._random.choice(self._session)[1:5] + self._random.randbytes(16)

    def _flip(self, datagram):
        changed = bytearray(datagram)
        for _ in range(self._random.randint(1, 3)):
            changed[self._random.randrange(len(changed))] ^= 1 << self._random.getrandbits(3)
        return bytes(changed)


class Sender:
    """Sends datagrams and counts the answers: a stranger must never get more bytes than it sent."""

    def __init__(self, questions, generator, edge):
        self._questions = questions
        self._edge = edge
        self._random = generator
        self.sent = {kind.__name__: 0 for kind in questions.kinds}
        self.answers = 0
        self.too_large = 0
        self._balance = []

    def run(self):
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(SOCKETS)]
        self._balance = [0] * SOCKETS
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        for handle in sockets:
            handle.connect((PUBLIC[0], PORT))
            handle.setblocking(False)
        begun, number = time.monotonic(), 0
        while number < COUNT:
            for index, handle in enumerate(sockets[:COUNT - number]):
                kind = self._questions.kinds[(number + index) % len(self._questions.kinds)]
                question = kind()
                self.sent[kind.__name__] += 1
                if kind in (self._questions.replayed, self._questions.flipped) and self._random.getrandbits(1):
                    raw.sendto(_spoofed(self._edge, question), (PUBLIC[0], 0))
                else:
                    handle.send(question)
                    self._balance[index] += len(question)
            number += min(SOCKETS, COUNT - number)
            self._collect(sockets)
            wait = begun + number / RATE - time.monotonic()
            if wait > 0:
                time.sleep(wait)
        time.sleep(1)
        self._collect(sockets)
        for handle in [*sockets, raw]:
            handle.close()

    def _collect(self, sockets):
        for index, handle in enumerate(sockets):
            while True:
                try:
                    answer = handle.recv(65536)
                except BlockingIOError:
                    break
                except OSError:
                    break  # an ICMP error: the daemon is gone, which the caller sees
                self.answers += 1
                self._balance[index] -= len(answer)
                if self._balance[index] < 0:
                    self.too_large += 1
                    self._balance[index] = 0


def _spoofed(edge, payload):
    """An IPv4 packet from the real edge's address and port."""
    source, target = socket.inet_aton(edge[0]), socket.inet_aton(PUBLIC[0])
    udp = struct.pack("!HHHH", edge[1], PORT, 8 + len(payload), 0)
    pseudo = source + target + struct.pack("!BBH", 0, 17, 8 + len(payload))
    udp = udp[:6] + struct.pack("!H", checksum(pseudo + udp + payload) or 0xFFFF)
    return struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 0, 0, 64, 17, 0, source, target) + udp + payload


def strangers():
    generator = random.Random(SEED)
    with Lab(LINKS) as lab:
        nginx = Nginx(lab)
        captured = []
        sniffer = threading.Thread(target=lambda: captured.extend(
            capture_udp(lab.concentrator, "wifi0", PORT, 2000, timeout=8, inbound_only=True)))
        sniffer.start()
        lab.start_gateways()
        warm = nginx.add("warm", 20_000_000)
        url = f"http://{Lab.server_addresses()[0]}"
        before_rate = Download(lab, url + warm).finish().goodput_mbit()
        sniffer.join()
        gateway = lab.gateway
        drops, udp, memory = gateway.drops(), lab.concentrator.counters(), resident_bytes(gateway.process.pid)
        path = nginx.add("long", int(COUNT / RATE * 1.2 * sum(link.rate_mbit for link in LINKS) * 1e6 / 8))
        download = Download(lab, url + path)
        download.wait_for_size(5_000_000)
        address, _, port = gateway.paths()[0]["remote"].rpartition(":")
        sender = Sender(Questions(captured, generator), generator, (address, int(port)))
        begin = download.elapsed()
        lab.server.inside(sender.run)
        end, ended_early = download.elapsed(), not download.is_alive()
        crashed = int(gateway.process.poll() is not None)
        growth = 0 if crashed else resident_bytes(gateway.process.pid) - memory
        detail = {"sent": sender.sent, "answers": sender.answers, "answers_too_large": sender.too_large,
                  "crashes": crashed, "memory_growth_kib": growth // 1024, "rate_per_s": int(COUNT / (end - begin))}
        if crashed:
            download.stop()
            detail["exit_code"] = gateway.process.returncode
            return 1 + sender.too_large, detail
        uncounted = _uncounted(lab, gateway, drops, udp, sender, detail)
        disturbed = _disturbed(download, nginx.sha256[path], begin, end, detail)
        detail["goodput_before_mbit"] = round(before_rate, 1)
        require(detail, not ended_early, "a transfer that goes on all the time: it ended before the flood")
        return crashed + sender.too_large + int(growth > GROWTH_LIMIT) + uncounted + disturbed, detail


def _uncounted(lab, gateway, drops, udp, sender, detail):
    """The number of datagrams that reached the daemon, got no answer and are not in any drop counter."""
    after = gateway.drops()
    counted = {cause: after[cause] - drops[cause] for cause in CAUSES}
    kernel = lab.concentrator.counters()
    lost = kernel["Udp.RcvbufErrors"] - udp["Udp.RcvbufErrors"]
    uncounted = max(0, COUNT - lost - sum(counted.values()) - sender.answers)
    detail.update({"drops": counted, "dropped_by_kernel_queue": lost, "uncounted": uncounted})
    return uncounted


def _disturbed(download, sha256, begin, end, detail):
    """1 if the download stalled, failed or had wrong bytes."""
    detail["goodput_during_mbit"] = round(download.rate_mbit(begin, end), 1)
    try:
        download.finish()
        detail["longest_stall_s"] = round(download.longest_stall(begin, end), 3)
    except (RuntimeError, TimeoutError) as error:
        detail["download"] = str(error)[:200]
        return 1
    detail["download"] = "verified" if download.sha256 == sha256 else "changed"
    return int(download.sha256 != sha256 or detail["longest_stall_s"] > STALL_LIMIT)
