"""The base class of the tests of `braidctl setup`, `invite` and `join`: two bare machines, each with folders and a
service manager of its own."""

from lab import Link, binary
from lab.bare import Machine
from lab.site import PUBLIC, SERVER_LAN
from pair_case import PairCase


class JoinCase(PairCase):
    LINKS = [Link("wifi", 20, 10), Link("lte", 20, 25)]
    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hub, cls.edge = (Machine(cls.lab, "hub", cls.lab.concentrator), Machine(cls.lab, "edge", cls.lab.edge))
        for machine in (cls.hub, cls.edge):
            cls.addClassCleanup(machine.stop)
        networks = [word for network in SERVER_LAN for word in ("--network", network)]
        cls.told_by_setup = cls.hub.ctl("setup", "--yes", *networks)

    def leave(self):
        """Makes the edge a bare machine again."""
        self.edge.call("systemctl", "disable", "--now", "braid@edge")
        self.edge.call(binary("braidctl"), "release", "edge")
        self.edge.call("sh", "-c", "rm -f /etc/braid/*")

    def tearDown(self):
        super().tearDown()
        if self.edge.files("/etc/braid"):
            self.leave()
        for name in self.hub.files("/var/lib/braid/concentrator.peers.d"):
            self.hub.call("rm", f"/var/lib/braid/concentrator.peers.d/{name}")
        self.hub.ctl("reload")

    def invite(self, name, *words):
        return self.hub.ctl("invite", name, "--address", f"{PUBLIC[0]}:4433", *words).strip()

    def join(self, line, *words):
        return self.edge.ctl("join", "--yes", *words, given=line + "\n")

    def refused(self, line, *words, timeout=60):
        """Expects that braidctl fails and changes nothing at either side. Returns its one line of output."""
        done = self.edge.call(binary("braidctl"), "join", "--yes", *words, given=line + "\n", timeout=timeout)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(self.edge.files("/etc/braid"), [])
        self.assertEqual(self.hub.files("/var/lib/braid/concentrator.peers.d"), [])
        return done.stderr
