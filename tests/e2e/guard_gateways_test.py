"""Two gateways of a host, of which each has a guard (`device.when-down: block`)."""

import ipaddress
import json
import signal
import unittest

from guard_case import ELSEWHERE, GuardCase
from lab.gateway import binary
from lab.neighbours import SecondBraid
from lab.packets import Capture, Packet
from pair_case import V4, V6


class Other(SecondBraid):
    """A second gateway, to networks that are no LAN's."""

    NETWORKS, FAR = ["198.51.100.0/24", "2001:db8:77::/64"], ELSEWHERE


class Strays(Capture):
    """Counts packets to the second gateway's networks that come out of the first one's tunnel."""

    def __init__(self, namespace, device):
        self.seen, self._targets = 0, {ipaddress.ip_address(address).packed for address in Other.FAR}
        super().__init__(namespace, [device], self._count)

    def _count(self, _, ethertype, data):
        if ethertype in (0x0800, 0x86DD):
            self.seen += Packet(data).target in self._targets


class TwoCase(GuardCase):
    def check_tunnels(self):
        def reached():
            return [self.ping(address, count=3, wait=0.5, namespace=self.edge) for address in (V4, V6, *Other.FAR)]

        self.up()
        with Other(self.lab) as neighbour:
            other = neighbour.gateways[1]
            other.config["device"]["when-down"] = "block"
            other.restart()
            other.wait_up()
            self.addCleanup(self.edge.run, binary("braidctl"), "release", other.path)
            self.assertEqual(reached(), [3, 3, 3, 3])
            strays = Strays(self.lab.concentrator, "braid0")
            self.addCleanup(strays.close)
            for name, action, tunnels in (
                    ("reload", self.gateway.reload, [3, 3, 3, 3]),
                    ("the first is killed", lambda: self.gateway.stop(signal.SIGKILL), [0, 0, 3, 3]),
                    ("its guard is applied", lambda: self.braidctl("guard", "apply"), [0, 0, 3, 3]),
                    ("it starts", self.up, [3, 3, 3, 3]),
                    ("the second is killed", lambda: other.stop(signal.SIGKILL), [3, 3, 0, 0]),
                    ("its guard is applied", lambda: self.edge.run(binary("braidctl"), "guard", "apply", other.path),
                     [3, 3, 0, 0]),
                    ("it starts", lambda: [other.start(), other.wait_up()], [3, 3, 3, 3])):
                with self.subTest(name):
                    self.assertEqual(self.seen(action), [0, 0])
                    self.assertEqual(reached(), tunnels)
            self.assertEqual(strays.seen, 0)


class GlobalUnicast(TwoCase):
    def test_of_two_gateways_each_has_its_tunnel(self):
        """2000::/3 is a usual way to say all of IPv6. The lab's server has a private address."""
        self.gateway.config["device"]["routes"] = ["0.0.0.0/1", "128.0.0.0/1", "2000::/3", f"{V6}/128"]
        self.check_tunnels()


class Gateways(TwoCase):
    def test_of_two_gateways_each_has_its_tunnel(self):
        """The first one takes everything, the second one its own networks; both guard."""
        self.check_tunnels()

    def test_of_two_gateways_each_guard_is_its_own(self):
        other = self.gateway.path.with_name("other.yaml")
        self.braidctl("guard", "apply")
        other.write_text(self.gateway.path.read_text().replace("braid0", "braid1").replace(
            str(self.gateway.socket), str(other.with_suffix(".sock"))), encoding="ascii")
        self.addCleanup(other.unlink)
        self.addCleanup(self.edge.run, binary("braidctl"), "release", other)
        self.edge.run(binary("braidctl"), "guard", "apply", other)
        rules = [self.edge.ip(family, "rule").count("6700:") for family in ("-4", "-6")]
        self.assertEqual(rules, [2, 2])
        self.edge.run(binary("braidctl"), "release", other)
        self.assertEqual(self.seen(), [0, 0], "the first one's guard stays")
        self.braidctl("release")
        self.assertEqual(self.host(), self.before)

    def test_guards_of_two_gateways_have_the_pass_rule_together(self):
        def passes():
            return self.edge.ip("rule").count("6690:") + self.edge.ip("-6", "rule").count("6690:")

        self.braidctl("guard", "apply")
        first, path, own = passes(), self.gateway.path, self.gateway.config
        self.assertEqual(first, 2)
        other = {**own, "device": {**own["device"], "name": "braid7"}}
        other["control"] = {"socket": own["control"]["socket"] + "7"}
        second = path.with_name("second.yaml")
        second.write_text(json.dumps(other), encoding="utf-8")
        self.edge.run(binary("braidctl"), "guard", "apply", second)
        self.edge.run(binary("braidctl"), "release", second)
        self.assertEqual(passes(), 2, "the first one needs it")
        self.braidctl("release")
        self.assertEqual(passes(), 0)
        self.assertEqual(self.host(), self.before)


if __name__ == "__main__":
    unittest.main()
