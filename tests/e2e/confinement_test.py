"""What is left to a daemon after its start as plain root, and what a reload needs of that."""

import os
import pathlib
import platform
import tempfile
import unittest

from lab import Link
from lab.injected import Injected
from lab.rights import beyond, of_status, opens
from pair_case import V4, EdgeStartsCase

USER, GROUP = 990, 991  # of the user "braid" that the edge's namespace has
ACCOUNTS = {"passwd": f"root:x:0:0::/root:/bin/sh\nbraid:x:{USER}:{GROUP}::/run/braid:/usr/sbin/nologin\n",
            "group": f"root:x:0:\nbraid:x:{GROUP}:\n", "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n"}


@unittest.skipUnless(platform.machine() == "x86_64", "the numbers and registers are those of x86-64")
class Confinement(EdgeStartsCase):
    LINKS = [Link("wifi", 100, 4), Link("lte", 100, 4)]

    def reloaded(self, expected):
        """Reloads by the control socket, which tells what came of it."""
        self.gateway.write_config()
        try:
            told = self.gateway.ctl("reload")
        except RuntimeError as error:
            told = str(error)
        self.assertIn(expected, told)

    def pid(self):
        return self.gateway.status()["gateway"]["pid"]

    def changed(self, section, **values):
        """Changes a section of the configuration for this test."""
        before = dict(self.gateway.config.get(section, {}))
        self.addCleanup(self.gateway.config.__setitem__, section, before)
        self.gateway.config[section] = {**before, **values}

    # ---- as root, without a user `braid`

    def test_root_without_a_user_of_its_own_is_left_little(self):
        self.changed("recovery", trace=str(self.lab.directory / "edge.trace"))
        self.up()
        self.eventually(lambda: len(of_status(self.pid())) == 2, "the trace has its thread")
        self.assertEqual(beyond(self.pid(), 0), [])
        self.lab.wait_for_line("edge", "there is no user 'braid'")
        self.assertEqual(self.ping(), 5, "it goes on as before")

    def test_it_writes_its_own_folder_alone(self):
        self.up()
        with tempfile.TemporaryDirectory() as other, Injected(self.pid()) as process:
            for folder, may in ((self.lab.directory, True), (other, False)):
                path = pathlib.Path(folder) / "braid-was-here"
                self.assertEqual(opens(process, str(path), os.O_WRONLY | os.O_CREAT), may, path)
                self.assertEqual(path.exists(), may)
            path.unlink(missing_ok=True)
            for family in ("ipv4", "ipv6"):
                self.assertTrue(opens(process, f"/proc/sys/net/{family}/conf/all/forwarding", os.O_WRONLY))

    def test_a_reload_with_a_new_interface(self):
        uplinks = self.gateway.config["uplinks"]
        self.addCleanup(self.gateway.config.update, uplinks=uplinks)
        self.gateway.config["uplinks"] = uplinks[:1]
        self.gateway.start()
        self.gateway.wait_up(subflows=1)
        self.gateway.config["uplinks"] = uplinks
        self.gateway.reload()
        self.gateway.wait_path("lte", "active")

    def test_a_reload_with_forwarding(self):
        self.addCleanup(self.gateway.config.pop, "forwarding")
        self.gateway.config["forwarding"] = "off"
        self.up()
        was = self.edge.run("sysctl", "-n", "net.ipv4.ip_forward")
        self.addCleanup(self.edge.run, "sysctl", "-q", f"net.ipv4.ip_forward={was.strip()}")
        self.edge.run("sysctl", "-q", "net.ipv4.ip_forward=0")
        self.gateway.config["forwarding"] = "on"
        self.gateway.reload()
        self.eventually(lambda: self.edge.run("sysctl", "-n", "net.ipv4.ip_forward") == "1\n", "it is switched on")

    def test_a_trace_in_a_new_folder_needs_a_restart(self):
        self.changed("recovery")
        self.up()
        with tempfile.TemporaryDirectory() as other:
            trace = pathlib.Path(other) / "trace"
            self.gateway.config["recovery"]["trace"] = str(trace)
            self.reloaded("a new folder needs a restart")
            self.assertFalse(trace.exists())
            self.gateway.config["recovery"]["trace"] = str(self.lab.directory / "new.trace")
            self.reloaded("reload: done")
            self.assertTrue((self.lab.directory / "new.trace").exists(), "beside the state there is no need")
            self.gateway.config["recovery"]["trace"] = str(trace)
            self.gateway.restart()
            self.assertTrue(trace.exists())

    def test_a_new_key_needs_a_restart_and_the_old_one_is_not_read_again(self):
        key = self.lab.directory / "edge.key"
        self.changed("identity")
        self.up()
        key.rename(key.with_suffix(".away"))
        self.addCleanup(key.with_suffix(".away").rename, key)
        self.reloaded("reload: done")
        self.gateway.config["identity"]["key"] = "edge.away"
        self.reloaded("identity.key: a changed value needs a restart")

    # ---- as its own user

    def own_user(self):
        """The edge's namespace gets the user, and the daemon gets folders as the package makes them."""
        folder = self.files_of(self.edge)
        for name, text in ACCOUNTS.items():
            (folder / name).write_text(text, encoding="ascii")
            self.addCleanup((folder / name).unlink)
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("run", "lib"):
            (self.place / name).mkdir(mode=0o755)
        self.place.chmod(0o755)
        mounts = " && ".join(f"mkdir -p {target} && mount --bind {self.place / name} {target}"
                             for name, target in (("run", "/run/braid"), ("lib", "/var/lib/braid")))
        # Where these do not exist, what is made for the mount is seen by this daemon only.
        script = f"mount -t tmpfs tmpfs /var/lib && mount -t tmpfs tmpfs /run && {mounts} && exec \"$@\""
        self.changed("control", socket="/run/braid/edge.sock")
        self.addCleanup(self.gateway.config.__setitem__, "state", self.gateway.config.pop("state"))
        self.addCleanup(setattr, self.gateway, "socket", self.gateway.socket)
        self.gateway.socket = self.place / "run/edge.sock"
        self.addCleanup(setattr, self.gateway, "wrapper", [])
        self.gateway.wrapper = ["unshare", "--mount", "sh", "-ec", script, "sh"]

    def let_others_read(self):
        mode = self.lab.directory.stat().st_mode
        self.addCleanup(self.lab.directory.chmod, mode)
        self.lab.directory.chmod(0o755)

    def test_root_goes_on_as_the_user_of_the_package(self):
        self.own_user()
        self.let_others_read()
        self.up()
        pid = self.pid()
        self.assertEqual(beyond(pid, USER), [])
        self.assertEqual(of_status(pid)[pid]["Gid"].split(), [str(GROUP)] * 4)
        self.assertEqual(self.gateway.status()["gateway"]["unconfined"], [])
        self.assertEqual((self.lab.directory / "edge.key").stat().st_uid, 0, "the key stays root's")
        self.reloaded("reload: done")
        self.assertEqual(self.ping(V4), 5)
        self.assertEqual(self.gateway.stop(), 0)
        left = sorted(path.name for path in (self.place / "run").iterdir())
        self.assertEqual(left, [], "socket and lock are gone")
        owners = {path.stat().st_uid for path in (self.place / "lib", *(self.place / "lib").iterdir())}
        self.assertEqual(owners, {USER})
        self.up()
        self.assertEqual(self.ping(V4), 5, "root's next daemon can go on from there")

    def test_what_an_earlier_daemon_of_roots_left_is_the_users(self):
        self.own_user()
        self.gateway.start()  # the configuration's folder is root's alone
        self.gateway.wait_up(subflows=2)
        self.lab.wait_for_line("edge", "'braid': that user cannot read")
        pid = self.pid()
        self.assertEqual(beyond(pid, 0), [])
        self.assertEqual(self.gateway.stop(), 0)
        state = [path for path in (self.place / "lib").iterdir()]
        self.assertTrue(state)
        self.assertEqual({path.stat().st_uid for path in state}, {0})
        self.let_others_read()
        self.up()
        self.assertEqual(of_status(self.pid())[self.pid()]["Uid"].split(), [str(USER)] * 4)
        self.assertEqual({path.stat().st_uid for path in (self.place / "lib").iterdir()}, {USER})


if __name__ == "__main__":
    unittest.main()
