"""Two gateways of a host, of which each has a guard (`device.when-down: block`)."""

import json
import unittest

from guard_case import GuardCase
from lab.gateway import binary


class Gateways(GuardCase):
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
