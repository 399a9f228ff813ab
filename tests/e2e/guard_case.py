"""The base class of the tests of `device.when-down`: hosts that send datagrams without a pause, and a look-out for
those that leave in clear."""

import contextlib
import re
import socket
import threading
import time

from lab.gateway import binary
from lab.packets import Capture, Packet
from pair_case import V4, V6, EdgeStartsCase

EVERYTHING = ["0.0.0.0/0", "::/0"]
ELSEWHERE = ["198.51.100.1", "2001:db8:77::1"]  # of nobody
MARKED = 7777  # the UDP port of the datagrams that are looked for
PAUSE = 0.005  # seconds between two rounds of them
LOOK = 0.5  # seconds in which datagrams in clear would be seen: a hundred rounds
IP = {0x0800: 4, 0x86DD: 6}  # by EtherType


class InClear(Capture):
    """Counts UDP datagrams to port MARKED, by the version of IP, that reach a namespace outside of the tunnel."""

    def __init__(self, namespace, devices):
        self.seen = {4: 0, 6: 0}
        super().__init__(namespace, devices, self._count)

    def _count(self, _, ethertype, data):
        if ethertype in IP and (packet := Packet(data)).protocol == socket.IPPROTO_UDP and packet.ports[1] == MARKED:
            self.seen[IP[ethertype]] += 1


class Sender:
    """Sends datagrams to port MARKED of these addresses, without a pause. `mark`: of their packets."""

    def __init__(self, namespace, addresses, mark=0):
        self._ends = namespace.inside(lambda: [(self._open(to, mark), to) for to in addresses])
        self._stopped = False
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    @staticmethod
    def _open(to, mark):
        end = socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_DGRAM)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
        return end

    def _send(self):
        while not self._stopped:
            for end, to in self._ends:
                with contextlib.suppress(OSError):
                    end.sendto(b"in clear?", (to, MARKED))
            time.sleep(PAUSE)

    def close(self):
        self._stopped = True
        self._thread.join()
        for end, _ in self._ends:
            end.close()


class GuardCase(EdgeStartsCase):
    WHEN_DOWN = "block"

    def setUp(self):
        super().setUp()
        self.gateway.config["peers"][0]["prefixes"] = EVERYTHING
        self.gateway.config["device"].update({"routes": EVERYTHING, "when-down": self.WHEN_DOWN})
        self.gateway.config["device"].pop("networks", None)
        self.before = self.host()
        far = [self.lab.sites[0].far_device(index) for index in (0, 1)]
        self.clear = InClear(self.lab.concentrator, far)
        self.addCleanup(self.clear.close)
        for namespace in (self.lab.client, self.edge):
            self.addCleanup(Sender(namespace, [V4, V6, *ELSEWHERE]).close)

    def tearDown(self):
        super().tearDown()
        self.braidctl("release")

    def host(self):
        """Routes, rules and packet filter, without those of link-local addresses, which come when the kernel has
        checked them."""
        def lines(*words):
            found = re.sub(r" expires \S+", "", self.edge.run(*words)).splitlines()
            return sorted(line for line in found if not re.search(r"fe80::|ff00::/8", line))

        return [lines(*words) for words in (
            ("ip", "route", "show", "table", "all"), ("ip", "-6", "route", "show", "table", "all"),
            ("ip", "rule"), ("ip", "-6", "rule"), ("nft", "list", "ruleset"))]

    def braidctl(self, *words):
        self.gateway.write_config()
        return self.edge.run(binary("braidctl"), *words, self.gateway.path)

    def seen(self, action=None):
        """How many datagrams are in clear while something happens and a moment longer: [IPv4, IPv6]."""
        before = dict(self.clear.seen)
        if action:
            action()
        time.sleep(LOOK)
        return [self.clear.seen[version] - before[version] for version in (4, 6)]

    def log(self):
        return self.lab.log(self.gateway.name).read_text(errors="replace")
