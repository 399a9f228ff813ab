"""The guard of `device.when-down: block` where IPv6 alone has a route, and over an upgrade of the package."""

import unittest

from guard_case import GuardCase
from pair_case import V4, V6


class Guard(GuardCase):
    def test_ipv4_as_the_other_family(self):
        self.gateway.config["device"]["routes"] = ["::/0"]
        self.braidctl("guard", "apply")
        self.assertEqual(self.seen(), [0, 0])
        self.assertEqual(self.seen(self.up), [0, 0])
        self.assertEqual([self.ping(V4, count=1, wait=0.3), self.ping(V6)], [0, 5])
        self.assertEqual(self.seen(self.gateway.reload), [0, 0])
        self.assertEqual(self.seen(self.gateway.stop), [0, 0])
        self.braidctl("release")
        self.assertGreater(min(self.seen()), 50)

    def test_an_upgrade(self):
        """What the package does: the old one's script, the end and the start of the daemon."""
        self.up()
        for name, action in (("the script", lambda: self.call_prerm("upgrade", "1.0")), ("the end", self.gateway.stop),
                             ("the check of the unit", lambda: self.braidctl("check")), ("the start", self.up)):
            with self.subTest(name):
                self.assertEqual(self.seen(action), [0, 0])
        self.assertEqual([self.ping(V4), self.ping(V6)], [5, 5])


if __name__ == "__main__":
    unittest.main()
