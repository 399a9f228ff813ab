"""Reload, restart and end of the daemons under traffic."""

import contextlib
import copy
import fcntl
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest

from lab import Link, binary
from pair_case import V4, V6, PairCase

STALL_LIMIT = IDLE_LIMIT = 1.2  # seconds; the target shield.6 measures both
SETTLED = 3  # seconds: a gateway saves its list of known initiators at most every 2 s


class Lifecycle(PairCase):
    def setUp(self):
        for gateway in self.lab.gateways():
            if gateway.process is None or gateway.process.poll() is not None:
                gateway.start()
        self.lab.edge_gateway.wait_up(subflows=2)

    def test_reload_under_traffic(self):
        self.attempts(self.reload_under_traffic)

    def reload_under_traffic(self):
        download = self.download(self.file(12_000_000))
        download.wait_for_size(3_000_000)
        pids = [gateway.process.pid for gateway in self.lab.gateways()]
        for gateway in self.lab.gateways():
            gateway.reload()
        at = download.elapsed()
        self.verify(download)
        self.assertEqual([gateway.process.pid for gateway in self.lab.gateways()], pids)
        self.assertTrue(all(gateway.process.poll() is None for gateway in self.lab.gateways()))
        stall = download.longest_stall(begin=at)
        self.in_time(stall < 0.5, f"a reload, and the download stood still for {stall:.2f} s")

    def test_reload_takes_an_uplink_away_and_gives_it_back(self):
        gateway = self.lab.edge_gateway
        uplinks = gateway.config["uplinks"]
        self.addCleanup(gateway.config.update, uplinks=uplinks)
        download = self.download(self.file(12_000_000))
        download.wait_for_size(3_000_000)
        gateway.config["uplinks"] = uplinks[:1]
        gateway.reload()
        gateway.wait_path("lte", "closed")
        gateway.config["uplinks"] = uplinks
        gateway.reload()
        gateway.wait_path("lte", "active")
        self.verify(download)

    def test_reload_of_a_broken_file_changes_nothing(self):
        gateway = self.lab.edge_gateway
        gateway.path.write_text("peers: [\n", encoding="ascii")
        gateway.process.send_signal(signal.SIGHUP)
        self.lab.wait_for_line(gateway.name, "the old configuration stays")
        self.assertIsNone(gateway.process.poll())
        self.verify(self.download(self.file(2_000_000)))
        gateway.reload()

    def test_restart_of_either_daemon_under_traffic(self):
        for gateway in self.lab.gateways():
            for number in (signal.SIGTERM, signal.SIGKILL):
                with self.subTest(gateway=gateway.name, signal=number):
                    download = self.download(self.file(12_000_000))
                    download.wait_for_size(3_000_000)
                    gateway.restart(number)
                    self.verify(download)

    def test_a_killed_daemon_is_back_before_the_download_notices_much(self):
        self.kill_each(self.stall_of_a_kill, STALL_LIMIT, "the download stood still")

    def test_a_silent_edge_is_reached_soon_after_a_daemon_was_killed(self):
        self.kill_each(self.gap_of_a_kill, IDLE_LIMIT, "the edge was not reached")

    def kill_each(self, measure, limit, what):
        """Kills each daemon in turn during normal operation. `measure` returns the seconds that something then
        takes."""
        def attempt():
            self.lab.edge_gateway.wait_up(subflows=2)
            time.sleep(SETTLED)
            seconds = measure(gateway)
            self.in_time(seconds < limit, f"{gateway.name} was killed, and {what} for {seconds:.2f} s")

        for gateway in self.lab.gateways():
            with self.subTest(gateway=gateway.name):
                self.attempts(attempt)

    def stall_of_a_kill(self, gateway):
        download = self.download(self.file(12_000_000))
        download.wait_for_size(3_000_000)
        at = download.elapsed()
        gateway.kill_and_supervise()
        self.verify(download)
        return download.longest_stall(begin=at)

    def gap_of_a_kill(self, gateway):
        begun = time.monotonic()
        gateway.kill_and_supervise()
        client = self.lab.sites[0].client_address[0]
        while self.ping(client, count=1, namespace=self.lab.server, wait=0.2) == 0 and time.monotonic() - begun < 20:
            pass
        return time.monotonic() - begun

    def test_what_others_take_away_comes_back(self):
        edge = self.lab.edge

        def configured():
            return [edge.run("ip", "-br", "link", "show", "braid0").split()[1:],
                    edge.run("ip", "-o", "address", "show", "dev", "braid0", "scope", "global"),
                    edge.run("ip", "route", "show", "table", "all", "proto", "66"),
                    sorted(edge.run("ip", "-6", "route", "show", "table", "all", "proto", "66").splitlines())]

        before = configured()
        for change in ("address flush dev braid0", "link set braid0 down", "route flush table 6599",
                       "-6 route flush table 6599"):
            with self.subTest(change):
                edge.run("ip", *change.split())
                self.eventually(lambda: configured() == before, f"all is as it was before 'ip {change}'")
                self.assertGreaterEqual(self.ping(V4), 4)
                self.assertGreaterEqual(self.ping(V6), 4)
        self.lab.wait_for_line(self.lab.edge_gateway.name, "was gone from the host, and is put back")

    def test_clean_end(self):
        gateway = self.lab.edge_gateway
        self.assertEqual(gateway.stop(), 0)
        self.assertNotIn("braid0", self.lab.edge.run("ip", "-br", "link"))
        self.assertNotRegex(self.lab.edge.run("ip", "rule"), r"(?m)^6\d\d\d:", "the daemon's routing rules are gone")
        gateway.start()
        gateway.wait_up(subflows=2)
        self.assertGreaterEqual(self.ping(V4), 4)


class Listening(PairCase):
    """At boot the daemon may be earlier than the address on which it listens."""

    LINKS = [Link("wifi", 50, 20), Link("lte", 30, 60)]
    GATEWAYS = False

    def test_an_address_that_is_not_there_yet_is_waited_for(self):
        self.lab.make_gateways()
        for address, place in (("203.0.113.77", "203.0.113.77:4433"), ("2001:db8::77", "[2001:db8::77]:4433")):
            with self.subTest(address=address):
                hub, edge = self.lab.gateways()
                hub.config["listen"] = edge.config["peers"][0]["endpoints"] = [place]
                for gateway in (hub, edge):
                    gateway.start()
                    self.addCleanup(self.end, gateway)
                self.lab.wait_for_line(hub.name, f"no interface has the address of {place} yet")
                self.assertEqual(hub.status()["gateway"]["listen"], [place])
                self.assertFalse(edge.up())
                self.lab.concentrator.address("lo", f"{address}/{128 if ':' in address else 32}")
                edge.wait_up(subflows=2, timeout=20)
                self.assertEqual(self.ping(), 5)
                for gateway in (hub, edge):
                    self.end(gateway)

    @staticmethod
    def end(gateway):
        if gateway.process is not None:
            gateway.stop()


class Places(PairCase):
    """The files that a daemon finds and creates in its folders."""

    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.make_gateways()
        cls.configs = copy.deepcopy([gateway.config for gateway in cls.lab.gateways()])

    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="braid-"))
        self.place.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.place)
        for gateway, config in zip(self.lab.gateways(), self.configs):
            gateway.config = copy.deepcopy(config)
            gateway.socket = pathlib.Path(config["control"]["socket"])
            gateway.wrapper = []

    def tearDown(self):
        super().tearDown()
        for gateway in self.lab.gateways():
            if gateway.process is not None:
                gateway.stop(signal.SIGKILL)

    def control_in_a_folder_that_nobody_locks(self):
        """The edge's control socket is in a folder that another user has locked, which any user with read access can
        do."""
        gateway = self.lab.edge_gateway
        gateway.socket = self.place / "edge.sock"
        gateway.config["control"]["socket"] = str(gateway.socket)
        holder = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "flock", self.place,
                                   "sleep", "60"], start_new_session=True)
        self.addCleanup(holder.wait)
        self.addCleanup(os.killpg, holder.pid, signal.SIGKILL)
        self.eventually(self.folder_is_locked, "a lock on the folder")
        return gateway

    def folder_is_locked(self):
        folder = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        finally:
            os.close(folder)

    def test_who_locks_the_sockets_folder_holds_nobody_up(self):
        gateway = self.control_in_a_folder_that_nobody_locks()
        gateway.start()
        self.assertTrue(self.folder_is_locked())
        lock = os.stat(self.place / "edge.sock.lock")
        self.assertEqual((stat.S_IMODE(lock.st_mode), lock.st_uid), (0o600, 0))
        gateway.kill_and_supervise()  # a stale socket, and a stale lock
        self.assertEqual(gateway.stop(), 0)
        self.assertEqual(os.listdir(self.place), [])

    def test_a_start_hears_that_it_is_to_end(self):
        gateway = self.control_in_a_folder_that_nobody_locks()
        gateway.write_config()
        process = self.lab.start(gateway.namespace, "edge", [binary("braidd"), "--config", gateway.path])
        try:
            self.eventually(lambda: "braid0" in self.lab.edge.run("ip", "-br", "link"), "the device")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(5), 0)
        finally:
            self.lab.stop(process, signal.SIGKILL)
        self.assertNotIn("braid0", self.lab.edge.run("ip", "-br", "link"))

    def test_a_second_daemon_ends_at_once_and_has_changed_nothing(self):
        gateway = self.lab.edge_gateway
        gateway.start()
        config = json.loads(gateway.path.read_text())
        config["device"] |= {"name": "braid1", "addresses": ["10.254.0.2/24"]}
        second = self.lab.directory / "second.yaml"
        second.write_text(json.dumps(config))
        seen = self.lab.directory / "seen"
        with open(seen, "w", encoding="ascii") as out:
            watching = gateway.namespace.popen("ip", "monitor", "link", "address", "route", "rule", stdout=out)
        try:
            self.eventually(lambda: self.shows(seen, 65000), "what happens in the namespace")
            done = subprocess.run(gateway.namespace.words(binary("braidd"), "--config", second), timeout=10,
                                  capture_output=True, text=True)
            self.eventually(lambda: self.shows(seen, 65001), "the end of it")
        finally:
            watching.kill()
            watching.wait()
        self.assertNotIn("braid1", seen.read_text(encoding="ascii"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"lock {gateway.socket}.lock: held by a process of root; another daemon has the control socket "
                      f"{gateway.socket}: stop it first, or set control.socket", done.stderr)
        self.assertIsNotNone(gateway.status())

    @staticmethod
    def with_mounts(*mounts):
        """A command prefix that gives a daemon these private mounts."""
        mount = " && ".join(f"mount {words}" for words in mounts)
        return ["unshare", "--mount", "sh", "-c", f"{mount} && exec \"$@\"", "sh"]

    def shows(self, seen, mtu):
        """Whether a change made now or before has been saved to its file."""
        self.lab.edge.ip("link", "set", "lo", "mtu", 65535)
        self.lab.edge.ip("link", "set", "lo", "mtu", mtu)
        return f"mtu {mtu}" in seen.read_text(encoding="ascii")

    def test_the_state_folder_is_made_and_used(self):
        hub = self.lab.gateway
        library = self.place / "lib"
        library.mkdir(mode=0o755)
        hub.wrapper = self.with_mounts(f"--bind {library} /var/lib")
        del hub.config["state"]
        self.check_state_folder(library / "braid")

    def test_the_configured_state_folder_is_made_and_used(self):
        self.lab.gateway.config["state"] = str(self.place / "configured" / "concentrator.state")
        self.check_state_folder(self.place / "configured")

    def check_state_folder(self, folder):
        hub, edge = self.lab.gateways()
        hub.start()
        edge.start()
        edge.wait_up(subflows=2)
        made = os.stat(folder)
        self.assertEqual((stat.S_IMODE(made.st_mode), made.st_uid, made.st_gid), (0o750, 0, 0))
        pin = hub.config["peers"][0]["pin"]
        self.eventually(lambda: self.initiators(folder) == [pin], "the edge is written down")
        before = len(self.restarts(edge))
        hub.kill_and_supervise()
        self.eventually(lambda: len(self.restarts(edge)) > before, "the edge is called back")
        edge.wait_up(subflows=2)

    def restarts(self, gateway):
        """Lines in the log about restart notices from the peer, which it can only send from its list of known
        initiators."""
        lines = self.lab.log(gateway.name).read_text(encoding="utf-8").splitlines()
        return [line for line in lines if "has restarted, a new session begins" in line]

    def test_the_state_folder_is_the_users_as_whom_it_runs(self):
        hub = self.lab.gateway
        tun = self.place / "tun"
        os.mknod(tun, stat.S_IFCHR | 0o666, os.stat("/dev/net/tun").st_rdev)
        tun.chmod(0o666)
        library = self.place / "lib"
        library.mkdir(mode=0o755)
        hub.wrapper = self.with_mounts(f"--bind {library} /var/lib", f"--bind {tun} /dev/net/tun")
        hub.wrapper[-2] += " --user nobody"
        files = self.place / "nobody"
        files.mkdir(mode=0o755)
        for ending in ("key", "crt"):
            shutil.copy(self.lab.directory / f"concentrator.{ending}", files)
        del hub.config["state"]
        hub.socket = files / "concentrator.sock"
        hub.config["control"]["socket"] = str(hub.socket)
        hub.path = files / "concentrator.yaml"
        self.addCleanup(setattr, hub, "path", self.lab.directory / "concentrator.yaml")
        hub.write_config()
        for path in (files, *files.iterdir()):
            shutil.chown(path, "nobody", "nogroup")
        hub.start()
        made = os.stat(library / "braid")
        self.assertEqual((stat.S_IMODE(made.st_mode), made.st_uid), (0o750, os.stat(files).st_uid))
        self.assertEqual(hub.stop(), 0)

    def test_where_the_state_folder_cannot_be_made_packets_are_carried(self):
        hub, edge = self.lab.gateways()
        hub.wrapper = self.with_mounts("-t tmpfs -o ro tmpfs /var/lib")
        del hub.config["state"]
        hub.start()
        edge.start()
        edge.wait_up(subflows=2)
        self.lab.wait_for_line(hub.name, "cannot make the folder /var/lib/braid: Read-only file system; make it for")
        self.assertEqual(self.ping(), 5)

    @staticmethod
    def initiators(folder):
        with contextlib.suppress(OSError, ValueError):
            text = (folder / "concentrator.state.initiators").read_text(encoding="ascii")
            return [initiator["pin"] for initiator in json.loads(text)["initiators"]]
        return []


if __name__ == "__main__":
    unittest.main()
