"""firewalld and Docker themselves, from a Debian tree of their own, as users have them: what `braidctl firewall allow`
tells them lasts over their reload. With --nightly: the tree has to be made first ($BRAID_BOOT_TREES)."""

import pathlib
import subprocess
import time
import unittest

from firewall_case import CLIENT, OTHER, FirewallCase
from lab.boot import programs_tree
from lab.gateway import binary
from lab.netns import run
from pair_case import V4, V6

PREPARE = """set -e
mount -t overlay overlay -o lowerdir={tree},upperdir={root}/upper,workdir={root}/work {root}/all
mkdir -p {root}/all{bin} {root}/all{lab}
mount --bind {bin} {root}/all{bin}
mount --bind {lab} {root}/all{lab}
mount -t proc proc {root}/all/proc
mount -t sysfs sysfs {root}/all/sys
mount -t cgroup2 cgroup2 {root}/all/sys/fs/cgroup || true
mount --bind /dev {root}/all/dev
mount -t tmpfs tmpfs {root}/all/run
mkdir -p {root}/all/run/dbus {root}/all/var/lib/docker
mount -t tmpfs tmpfs {root}/all/var/lib/docker
touch {root}/all/run/is-ready
exec sleep infinity
"""


class Programs(FirewallCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = programs_tree("bookworm")
        super().setUpClass()

    def setUp(self):
        super().setUp()
        root = self.lab.directory / (self._testMethodName + ".machine")
        root.mkdir()
        run("mount", "-t", "tmpfs", "tmpfs", root)
        self.addCleanup(run, "umount", "-l", root)
        for folder in ("upper", "work", "all"):
            (root / folder).mkdir()
        prepare = PREPARE
        for word, value in (("tree", self.tree), ("root", root), ("lab", self.lab.directory),
                            ("bin", pathlib.Path(binary("braidctl")).parent)):
            prepare = prepare.replace("{" + word + "}", str(value))
        self.holder = self.lab.start(self.edge, "machine", ["unshare", "--mount", "sh", "-c", prepare])
        self.addCleanup(self.lab.stop, self.holder)
        self.inside = root / "all"
        self.eventually(lambda: self.host("test", "-e", "/run/is-ready", check=False)[0] == 0, "the machine")

    def words(self, *words):
        return ["nsenter", "-t", str(self.holder.pid), "--mount", "--net", "--", "chroot", str(self.inside), *map(
            str, words)]

    def host(self, *words, check=True):
        done = subprocess.run(self.words(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        if check:
            self.assertEqual(done.returncode, 0, done.stdout)
        return done.returncode, done.stdout

    def run_daemon(self, *words):
        process = self.lab.start(None, words[0], self.words(*words))
        self.addCleanup(self.lab.stop, process)
        return process

    def dies(self, address):
        return not self.connects(self.lab.client, address, OTHER, 1)

    def test_firewalld(self):
        self.run_daemon("dbus-daemon", "--system", "--nofork")
        self.eventually(lambda: self.host("test", "-S", "/run/dbus/system_bus_socket", check=False)[0] == 0, "the bus")
        self.run_daemon("firewalld", "--nofork", "--nopid")
        self.eventually(lambda: self.host("firewall-cmd", "--state", check=False)[0] == 0, "firewalld", 60)
        before = self.host("firewall-cmd", "--list-all-zones")[1]
        with self.listening(self.lab.server, OTHER):
            for address in (V4, V6):
                self.assertTrue(self.dies(address))
            self.assertEqual(len([1 for what, _ in self.findings() if "filter_FWD_public" in what]), 4)
            self.firewall("allow")
            self.assertEqual(self.findings(), [])
            for when in ("after allow", "after a reload of firewalld"):
                for address in (V4, V6):
                    with self.subTest(when, address=address):
                        self.assertFalse(self.dies(address))
                        self.assert_web(address, True, 0, "as packets")
                        self.assert_nothing_else(address)
                self.host("firewall-cmd", "--reload")
            with self.listening(self.lab.client, OTHER):
                for address in (V4, V6):
                    self.assertTrue(self.connects(self.lab.server, CLIENT[address], OTHER, source=(address, 0)))
            self.firewall("remove")
            for address in (V4, V6):
                self.assertTrue(self.dies(address))
        self.assertEqual(self.host("firewall-cmd", "--list-all-zones")[1], before)

    def test_docker(self):
        # Docker drops by its policy where it switches forwarding on itself.
        self.edge.sysctl(net__ipv4__ip_forward=0)
        docker = self.run_daemon("dockerd", "--storage-driver", "vfs")
        self.lab.wait_for_line("dockerd", "API listen", 60)
        self.assertTrue([1 for what, remedy in self.findings() if "chain FORWARD of table ip filter, by its policy" in
                         what and "docker" in remedy])
        with self.listening(self.lab.server, OTHER):
            self.assertTrue(self.dies(V4))
            self.firewall("allow")
            self.assertFalse(self.dies(V4))
            self.assert_nothing_else_passes_docker()
            self.lab.stop(docker, timeout=20)
            time.sleep(1)
            self.run_daemon("dockerd", "--storage-driver", "vfs")
            self.eventually(lambda: self.host("docker", "ps", check=False)[0] == 0, "docker", 60)
            self.assertFalse(self.dies(V4), "after a restart of Docker")
            self.firewall("remove")
            self.assertTrue(self.dies(V4))

    def assert_nothing_else_passes_docker(self):
        with self.listening(self.lab.concentrator, OTHER):
            self.assertFalse(self.connects(self.lab.client, "10.0.0.2", OTHER, 1), "LAN to uplink")


if __name__ == "__main__":
    unittest.main()
