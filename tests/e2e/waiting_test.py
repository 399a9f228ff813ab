"""Situations in which a gateway has to wait for many seconds before it may do something about them: a link with four
seconds of queue, and a prefix of which nothing comes back. With scripts/test --nightly."""

import socket
import threading
import time
import unittest

from lab import Link, Wire
from lab.gateway import PORT
from lab.site import PUBLIC
from pair_case import V4, V6, PairCase

QUEUE = 4  # seconds
RATE = 2  # Mbit/s
STALE, FRESH = "2001:db8:a:", "2001:db8:b:"  # how their addresses begin
PREFIXES = """
interface %s {
  AdvSendAdvert on;
  MinRtrAdvInterval 3; MaxRtrAdvInterval 4;
  AdvDefaultLifetime 1800;
%s
};
"""


class Filler:
    """Keeps the queue of a link full: sends its first `burst` bytes at once, and then a little more than fits."""

    def __init__(self, namespace, to, burst, rate):
        self._end = namespace.inside(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
        self._end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
        self._to, self._pause, self._stopped = (to, 9), 1000 * 8 / rate, False
        for _ in range(burst // 1000):
            self._end.sendto(b"x" * 972, self._to)
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self):
        while not self._stopped:
            self._end.sendto(b"x" * 972, self._to)
            time.sleep(self._pause)

    def close(self):
        self._stopped = True
        self._thread.join()
        self._end.close()


class Slow(PairCase):
    LINKS = [Link("lte", RATE, 60, more={"queue_bytes": QUEUE * RATE * 1_000_000 // 8})]
    GATEWAYS = False

    def test_a_link_of_four_seconds_of_queue_comes_up(self):
        lab = self.lab
        lab.make_gateways()
        near, far = lab.sites[0].link_addresses(0)[0]
        for space, to in ((lab.edge, far), (lab.concentrator, near)):
            filler = Filler(space, to, QUEUE * RATE * 1_000_000 // 8, RATE * 1e6)
            self.addCleanup(filler.close)
        out = lab.edge.run("ping", "-c", 1, "-W", 12, far, check=False, timeout=20)
        waited = float(out.partition("time=")[2].split()[0]) if "time=" in out else 0
        self.assertGreater(waited, 1.5 * QUEUE * 1000, f"the queues are full both ways: {out}")
        for gateway in lab.gateways():
            gateway.start()
        began = time.monotonic()
        lab.edge_gateway.wait_up(timeout=60)
        print(f"up after {time.monotonic() - began:.1f} s")
        self.assertEqual([self.ping(V4, count=1, wait=20), self.ping(V6, count=1, wait=20)], [1, 1])


class Prefixes(PairCase):
    LINKS = [Wire("wifi")]
    GATEWAYS = False

    def advertise(self, *prefixes):
        """Router advertisements with these prefixes, instead of those before. They take no prefix back."""
        if getattr(self, "router", None):
            self.lab.edge.sysctl(net__ipv6__conf__wifi0__accept_ra=0)
            self.lab.stop(self.router)
            self.lab.edge.sysctl(net__ipv6__conf__wifi0__accept_ra=2)
        config = self.lab.directory / "radvd.conf"
        each = "  prefix %s:/64 { AdvOnLink on; AdvAutonomous on; DeprecatePrefix off; };"
        config.write_text(PREFIXES % (self.lab.sites[0].far_device(0), "\n".join(each % prefix for prefix in prefixes)),
                          encoding="ascii")
        self.router = self.lab.start(self.lab.concentrator, "radvd", [
            "radvd", "--nodaemon", "--config", config, "--pidfile", self.lab.directory / "radvd.pid"])

    def has(self, prefix):
        return prefix in self.lab.edge.ip("-6", "address", "show", "dev", "wifi0")

    def carries(self, prefix):
        return any(path["local"].startswith(prefix) and path["state"] == "active"
                   for path in self.lab.edge_gateway.paths())

    def test_a_stale_prefix_gives_way(self):
        """The provider gives another prefix after its router has lost its memory: the one before stays on the host and
        leads nowhere."""
        lab, edge, hub = self.lab, self.lab.edge, self.lab.concentrator
        lab.make_gateways()
        lab.edge_gateway.config["peers"][0]["endpoints"] = [f"[{PUBLIC[1]}]:{PORT}"]
        edge.ip("-6", "address", "flush", "dev", "wifi0", "scope", "global")
        edge.sysctl(net__ipv6__conf__wifi0__accept_ra=2)
        for prefix in (STALE, FRESH):
            hub.ip("-6", "route", "add", f"{prefix}:/64", "dev", lab.sites[0].far_device(0))
        self.advertise(STALE)
        self.eventually(lambda: self.has(STALE), "an address")
        for gateway in lab.gateways():
            gateway.start()
        self.eventually(lambda: self.carries(STALE), "the address carries")
        self.advertise(FRESH)
        self.eventually(lambda: self.has(FRESH), "another address")
        self.assertTrue(self.has(STALE))
        hub.run("nft", f"add table ip6 gone; add chain ip6 gone in {{ type filter hook prerouting priority 0; }}; "
                f"add rule ip6 gone in ip6 saddr {STALE}:/64 drop")
        began = time.monotonic()
        self.eventually(lambda: self.carries(FRESH), "the other address carries", timeout=60)
        print(f"after {time.monotonic() - began:.1f} s")
        self.assertEqual([self.ping(V4), self.ping(V6)], [5, 5])


if __name__ == "__main__":
    unittest.main()
