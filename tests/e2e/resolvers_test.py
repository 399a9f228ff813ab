"""Name servers of the host that the tunnel makes unreachable are named by doctor: those of the provider, and the
uplink's router itself."""

import subprocess
import unittest

from lab.gateway import binary
from routes_test import EverythingCase

PROVIDERS, ROUTERS, LANS = "198.51.100.53", "10.0.0.77", "192.168.10.2"


class Resolvers(EverythingCase):
    def setUp(self):
        super().setUp()
        self.folder = self.files_of(self.edge)
        self.addCleanup((self.folder / "resolv.conf").unlink)

    def findings(self, *servers):
        (self.folder / "resolv.conf").write_text("".join(f"nameserver {s}\n" for s in servers), encoding="ascii")
        done = subprocess.run(self.edge.words(binary("braidctl"), "doctor", self.gateway.path), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=40)
        return " ".join(done.stdout.split())

    def test_those_that_the_tunnel_takes_away_are_found(self):
        self.up()
        told = self.findings(PROVIDERS, ROUTERS)
        for server in (PROVIDERS, ROUTERS):
            self.assertIn(f"the name server {server} (/etc/resolv.conf) is asked through the tunnel, and does not "
                          "answer", told)
        self.assertIn("dns: {servers:", told)

    def test_one_in_the_lan_is_none_of_them(self):
        self.up()
        self.assertNotIn("the name server", self.findings(LANS))


if __name__ == "__main__":
    unittest.main()
