"""A million SYNs from forged sources to a host behind the edge, while other connections of that host continue.

They are sent from the server's namespace, pass the concentrator's shim (as from its local side) and the edge's (as to
its host), and get no answer, because the host's kernel drops them before its TCP.
"""

import concurrent.futures
import contextlib
import socket
import struct
import time

from lab import Lab, Link
from lab.measure import resident_bytes
from lab.packets import checksum

from . import require

COUNT = 1_000_000
NEARLY = 0.9  # shares of the SYNs that each gateway must have seen, and that must have reached the host
RATE = 30_000  # per second: what the pair of gateways can handle on two shared cores
BURST = 100
SOURCES = "11.0.0.0/8"
LIVE = 200  # connections
PERIOD = 1.0  # seconds between two exchanges of each
PATIENCE = 5  # seconds without an answer: the connection is lost
GROWTH_LIMIT = 16 << 20  # bytes of resident memory of a gateway
PORT, LIVE_PORT = 80, 7001


def _template(target):
    """(the packet with zeros for what varies, the offsets): IPv4 and TCP headers of a SYN."""
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0x4000, 64, socket.IPPROTO_TCP, 0, bytes([11, 0, 0, 0]),
                     socket.inet_aton(target))
    tcp = struct.pack("!HHIIBBHHH", 0, PORT, 0, 0, 5 << 4, 2, 1024, 0, 0)
    pseudo = ip[12:20] + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp))
    return bytearray(ip + tcp), checksum(pseudo + tcp)


class Flood:
    """The SYNs sent from the server's namespace. The sequence number compensates source and port, so that all have the
    same checksum."""

    def __init__(self, target):
        self._packet, total = _template(target)
        self._target = (target, 0)
        self.sent = 0
        struct.pack_into("!H", self._packet, 36, total)

    def run(self, handle):
        begun = time.monotonic()
        for number in range(COUNT):
            high, low, port = number >> 16, number & 0xffff, 1024 + number % 60_000
            balance = -(high + low + port) % 0xffff  # in ones' complement the sum stays as it was
            struct.pack_into("!BBH", self._packet, 12, 11, high, low)
            struct.pack_into("!H", self._packet, 20, port)
            struct.pack_into("!HH", self._packet, 24, 0, balance)
            handle.sendto(self._packet, self._target)
            self.sent += 1
            if number % BURST == 0:
                time.sleep(max(0.0, begun + number / RATE - time.monotonic()))


class LiveFlows:
    """Connections from the client to an echo service of the server, each used once a second."""

    def __init__(self, lab):
        self._stack = contextlib.ExitStack()
        self._address = (Lab.server_addresses()[0], LIVE_PORT)
        listener = self._stack.enter_context(lab.server.inside(socket.create_server, self._address))
        self.lost = 0
        self._handles = []
        for _ in range(LIVE):
            handle = self._stack.enter_context(lab.client.inside(socket.socket))
            handle.settimeout(PATIENCE)
            handle.connect(self._address)
            far, _ = listener.accept()
            far.settimeout(PATIENCE)
            self._stack.enter_context(far)
            self._handles.append((handle, far))

    def exchange(self):
        """Every connection once, both ways; those that fail are lost."""
        alive = []
        for handle, far in self._handles:
            try:
                handle.sendall(b"question")
                far.sendall(far.recv(8, socket.MSG_WAITALL))
                if handle.recv(8, socket.MSG_WAITALL) != b"question":
                    raise OSError("wrong answer")
                alive.append((handle, far))
            except OSError:
                self.lost += 1
        self._handles = alive

    def close(self):
        self._stack.close()


def _exchanges_under(flood, raw, live):
    """Runs the flood and returns how often the live connections were used meanwhile. Raises when the flood fails,
    because the result would then prove nothing."""
    rounds = 0
    with concurrent.futures.ThreadPoolExecutor(1) as pool, raw:
        running = pool.submit(flood.run, raw)
        while not running.done():
            live.exchange()
            rounds += 1
            time.sleep(PERIOD)
        running.result()
    return rounds


def require_flood(detail, sent, seen, arrived):
    """All SYNs were sent, and nearly all were `seen` by each gateway, {name: count}, and `arrived` at the host."""
    require(detail, sent == COUNT, f"{sent} of {COUNT} SYNs were sent")
    for place, count in {**seen, "the host": arrived}.items():
        require(detail, count >= NEARLY * COUNT, f"{place} saw {count} of {COUNT} SYNs, at least {NEARLY:.0%} it must")


def syn_flood():
    """(live flows lost, or out of a shim's table, plus a gateway that grew without bound; detail)."""
    with Lab([Link("dsl", 1000, 8)]) as lab:
        lab.start_gateways()
        edge = lab.edge_gateway
        edge.config["peers"][0]["prefixes"].append(SOURCES)
        edge.reload()
        lab.client.run("nft", f"add table ip flood; add chain ip flood in {{ type filter hook input priority -300; }};"
                       f"add rule ip flood in ip saddr {SOURCES} counter drop")
        live = LiveFlows(lab)
        live.exchange()
        before = {gateway.name: gateway.status()["ack_shim"] for gateway in lab.gateways()}
        memory = {gateway.name: resident_bytes(gateway.process.pid) for gateway in lab.gateways()}
        raw = lab.server.inside(socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        flood = Flood(lab.sites[0].client_address[0])
        rounds = _exchanges_under(flood, raw, live)
        live.exchange()
        faults = live.lost
        detail = {"syns": flood.sent, "live": LIVE, "exchanges": rounds + 2, "lost": live.lost}
        seen, arrived = {}, lab.client.nft_packets("ip", "flood")
        for gateway in lab.gateways():
            after = gateway.status()["ack_shim"]
            missing = max(0, before[gateway.name]["flows"] - after["flows"])
            growth = resident_bytes(gateway.process.pid) - memory[gateway.name]
            faults += missing + (growth > GROWTH_LIMIT)
            replayed = {a["name"]: a["fired"] for a in after["actuators"]}["syn_replay"]
            seen[gateway.name] = after["half_open_flows"] - before[gateway.name]["half_open_flows"]
            arrived -= replayed
            detail[gateway.name] = {
                "flows": [before[gateway.name]["flows"], after["flows"]], "seen": seen[gateway.name],
                "growth_kib": growth // 1024, "drops": {k: v for k, v in gateway.drops().items() if v},
                "replayed SYNs": replayed}
        detail["at the host"] = arrived
        require_flood(detail, flood.sent, seen, arrived)
        live.close()
    return faults, detail
