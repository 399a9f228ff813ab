"""`device.when-down`: what leaves in clear, past the tunnel, while the gateway starts, runs, stops and is killed."""

import contextlib
import json
import os
import pathlib
import re
import select
import signal
import socket
import struct
import sys
import threading
import time
import unittest

from lab.gateway import binary
from lab.site import PUBLIC
from pair_case import V4, V6, EdgeStartsCase

EVERYTHING = ["0.0.0.0/0", "::/0"]
ELSEWHERE = ["198.51.100.1", "2001:db8:77::1"]  # of nobody
MAYBE_LAN = "192.168.77.1"  # an address as in LANs, which is of nobody
MARKED = 7777  # the UDP port of the datagrams that are looked for
PAUSE = 0.005  # seconds between two rounds of them
LOOK = 0.5  # seconds in which datagrams in clear would be seen: a hundred rounds
RULES = [6200, 6690, 6700]  # into the tunnel; and those of the guard
NOBODY = 65534
UNIT = pathlib.Path(__file__).resolve().parents[2] / "systemd" / "braid-guard@.service"
GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide.md"


class InClear:
    """Counts UDP datagrams to port MARKED, by the version of IP, that reach a namespace outside of the tunnel."""

    def __init__(self, namespace, devices):
        self.seen = {4: 0, 6: 0}
        self._sockets = namespace.inside(lambda: [self._open(device) for device in devices])
        self._stopped = False
        self._thread = threading.Thread(target=self._count, daemon=True)
        self._thread.start()

    @staticmethod
    def _open(device):
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        sniffer.bind((device, 3))
        return sniffer

    def _count(self):
        while not self._stopped:
            for end in select.select(self._sockets, [], [], 0.1)[0]:
                packet, source = end.recvfrom(100)
                version = packet[0] >> 4
                if source[2] == socket.PACKET_OUTGOING or version not in self.seen:
                    continue
                header, kind = ((packet[0] & 15) * 4, packet[9]) if version == 4 else (40, packet[6])
                if kind == socket.IPPROTO_UDP and struct.unpack("!H", packet[header + 2:header + 4])[0] == MARKED:
                    self.seen[version] += 1

    def close(self):
        self._stopped = True
        self._thread.join()
        for end in self._sockets:
            end.close()


class Sender:
    """Sends datagrams to port MARKED of these addresses, without a pause."""

    def __init__(self, namespace, addresses):
        self._ends = namespace.inside(lambda: [
            (socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_DGRAM), to)
            for to in addresses])
        self._stopped = False
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

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


class Block(GuardCase):
    def test_nothing_leaves_in_clear_whatever_happens(self):
        wifi = self.lab.sites[0].device(0)
        self.assertGreater(min(self.seen()), 50, "the look-out sees what leaves in clear")
        self.braidctl("guard", "apply")
        events = [
            ("before the start", None), ("start", self.up), ("running", None),
            ("reload", self.gateway.reload),
            ("a lease", lambda: self.edge.ip("route", "replace", "default", "via", "10.0.0.2", "dev", wifi)),
            ("option 121", lambda: self.edge.ip("route", "add", "198.51.100.0/24", "via", "10.0.0.2", "dev", wifi)),
            ("an uplink goes", lambda: self.edge.ip("link", "set", wifi, "down")),
            ("an uplink comes", lambda: self.lab.restore_uplink(0)),
            *((f"rule {priority} is taken away",
               lambda priority=priority: [self.take_rule_away(family, priority) for family in ("-4", "-6")])
              for priority in RULES),
            ("the filter is taken away", lambda: self.edge.run("nft", "flush", "ruleset")),
            ("the hub goes", lambda: self.lab.gateway.stop(signal.SIGKILL)),
            ("the hub comes", lambda: [self.lab.gateway.start(), self.gateway.wait_up(subflows=2)]),
            ("kill", lambda: self.gateway.stop(signal.SIGKILL)), ("after the kill", None),
            ("start after the kill", self.up),
            ("stop", self.gateway.stop), ("stopped", None), ("start again", self.up),
        ]
        self.addCleanup(self.edge.run, "ip", "route", "del", "default", "metric", 0, check=False)
        self.addCleanup(self.edge.run, "ip", "route", "del", "198.51.100.0/24", check=False)
        for name, action in events:
            with self.subTest(name):
                self.assertEqual(self.seen(action), [0, 0])
        self.assertEqual([self.ping(V4), self.ping(V6)], [5, 5])

    def take_rule_away(self, family, priority):
        """The daemon puts it back."""
        self.assertIn(f"{priority}:", self.edge.ip(family, "rule"))
        self.edge.ip(family, "rule", "del", "priority", priority)
        self.eventually(lambda: f"{priority}:" in self.edge.ip(family, "rule"), f"{family} rule {priority} is back")

    def test_the_daemon_repairs_the_filter(self):
        self.up()
        self.edge.run("nft", "flush", "ruleset")
        self.eventually(lambda: "chain postrouting" in self.edge.run("nft", "list", "ruleset"), "it is back", timeout=3)
        self.assertRegex(self.log(), "was gone from the host, and is put back: the guard's packet filter")

    def test_the_daemon_makes_the_guard_and_release_takes_it_away(self):
        self.up()
        with self.assertRaisesRegex(RuntimeError, "the gateway runs"):
            self.braidctl("release")
        self.gateway.stop()
        self.assertEqual(self.seen(), [0, 0])
        self.braidctl("release")
        self.assertEqual(self.host(), self.before)
        self.assertGreater(min(self.seen()), 50)

    def send_without_end(self):
        """Two senders, each of which has a datagram in the packet filter at any time."""
        words = ("import contextlib, socket, sys\nend = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n"
                 "to = (sys.argv[1], int(sys.argv[2]))\n"
                 "while True:\n with contextlib.suppress(OSError):\n  end.sendto(b'now?', to)")
        for _ in range(2):
            sender = self.edge.popen(sys.executable, "-c", words, ELSEWHERE[1], MARKED)
            self.addCleanup(sender.wait)
            self.addCleanup(sender.kill)

    def test_there_is_no_gap_while_a_guard_is_replaced(self):
        """A datagram that is in the packet filter at that moment."""
        self.braidctl("guard", "apply")
        self.send_without_end()
        self.assertEqual(self.seen(lambda: [self.braidctl("guard", "apply") for _ in range(40)]), [0, 0])

    def test_there_is_no_gap_while_its_numbers_change(self):
        device = self.gateway.config["device"]
        for key in ("rule-priority", "mark-mask"):
            self.addCleanup(device.pop, key, None)
        self.braidctl("guard", "apply")
        self.send_without_end()

        def change():
            for number in range(20):
                device["rule-priority"] = (6000, 7000)[number % 2]
                self.braidctl("guard", "apply")
                for family in ("-4", "-6"):
                    rules = self.edge.ip(family, "rule")
                    self.assertEqual(["6690:" in rules, "6700:" in rules], [number % 2 == 0] * 2, rules)
                    self.assertEqual(["7690:" in rules, "7700:" in rules], [number % 2 == 1] * 2, rules)
            device["mark-mask"] = "0xff0000"
            self.braidctl("guard", "apply")

        self.assertEqual(self.seen(change), [0, 0])
        for family in ("-4", "-6"):
            rules = self.edge.ip(family, "rule")
            self.assertEqual([rules.count("7690:"), rules.count("7700:")], [1, 1], rules)
            self.assertIn("0x400000/0xe00000", rules)
        self.braidctl("release")
        self.assertEqual(self.host(), self.before)

    def test_three_commands_of_the_guide_take_it_away(self):
        section = GUIDE.read_text(encoding="utf-8").split("## When the tunnel is down", 1)[1].split("\n## ", 1)[0]
        commands = [line.strip() for line in section.splitlines() if re.match(r" +(nft|ip) ", line)]
        self.assertEqual(len(commands), 3)
        self.braidctl("guard", "apply")
        self.assertEqual(self.seen(), [0, 0])
        for command in commands:
            self.edge.run("sh", "-c", command)
        self.assertGreater(min(self.seen()), 50)

    def test_release_takes_away_what_was_made_whatever_the_configuration_says_by_then(self):
        for change in ("echo '{' >$0", "rm $0", "sed -i s/braid0/braid1/ $0", "sed -i s/block/direct/ $0"):
            with self.subTest(change):
                self.braidctl("guard", "apply")
                self.assertEqual(self.seen(), [0, 0])
                self.edge.run("sh", "-c", change, self.gateway.path)
                self.edge.run(binary("braidctl"), "release", self.gateway.path)
                self.assertEqual(self.host(), self.before)

    def kept(self):
        """The configuration as it was good last."""
        return pathlib.Path("/var/lib/braid-host") / (str(self.gateway.path.with_suffix(""))[1:].replace(
            "-", "--").replace("/", "-") + ".yaml")

    def test_a_mistake_while_the_gateway_runs_is_not_kept_for_the_next_boot(self):
        self.up()
        self.braidctl("guard", "apply")
        good = self.kept().read_text()
        self.edge.run("sh", "-c", "echo 'uplink: x' >>$0", self.gateway.path)
        self.assertIn("keeps its guard", self.edge.run(binary("braidctl"), "guard", "apply", self.gateway.path))
        self.assertEqual(self.kept().read_text(), good)

    def test_a_mistake_in_the_file_does_not_end_the_guard_of_the_next_boot(self):
        kept = self.kept()
        self.braidctl("guard", "apply")
        self.assertEqual((kept.stat().st_mode & 0o777, kept.read_text()), (0o600, self.gateway.path.read_text()))
        self.edge.run("nft", "flush", "ruleset")
        for family in ("-4", "-6"):
            self.edge.ip(family, "rule", "del", "priority", 6700)
        self.edge.run("sh", "-c", "echo 'uplink: x' >>$0", self.gateway.path)
        told = self.edge.run(binary("braidctl"), "guard", "apply", self.gateway.path)
        self.assertIn("as the file said when it was good last", told)
        self.assertIn(f"{self.gateway.path}:", told)
        self.assertEqual(self.seen(), [0, 0])
        self.edge.run(binary("braidctl"), "release", self.gateway.path)
        self.assertFalse(kept.exists())
        self.assertEqual(self.host(), self.before)
        with self.assertRaisesRegex(RuntimeError, re.escape(f"{self.gateway.path}:")):
            self.edge.run(binary("braidctl"), "guard", "apply", self.gateway.path)

    def test_a_device_that_is_renamed_takes_its_guard_along(self):
        self.braidctl("guard", "apply")
        self.edge.run("sed", "-i", "s/braid0/braid1/", self.gateway.path)
        self.edge.run(binary("braidctl"), "guard", "apply", self.gateway.path)
        self.assertNotIn("braid0", self.edge.run("nft", "list", "ruleset"))
        self.assertEqual(self.seen(), [0, 0])
        self.edge.run(binary("braidctl"), "release", self.gateway.path)
        self.assertEqual(self.host(), self.before)

    def test_the_guard_of_the_old_name_is_found_after_an_apply_while_the_gateway_runs(self):
        self.up()
        self.braidctl("guard", "apply")
        self.edge.run("sed", "-i", "s/braid0/braid1/", self.gateway.path)
        self.assertIn("keeps its guard", self.edge.run(binary("braidctl"), "guard", "apply", self.gateway.path))
        self.gateway.stop()
        self.edge.run(binary("braidctl"), "guard", "apply", self.gateway.path)  # the unit, before the daemon starts
        self.assertNotIn("braid0", self.edge.run("nft", "list", "ruleset"))
        self.assertEqual(self.seen(), [0, 0])
        self.edge.run(binary("braidctl"), "release", self.gateway.path)
        self.assertEqual(self.host(), self.before)

    def test_a_socket_with_a_space_in_its_path(self):
        control = self.gateway.config["control"]
        self.addCleanup(control.update, socket=control["socket"])
        control["socket"] = str(self.lab.directory / "the edge.sock")
        self.braidctl("guard", "apply")
        self.edge.run("sh", "-c", "echo '{' >$0", self.gateway.path)
        self.edge.run(binary("braidctl"), "release", self.gateway.path)
        self.assertEqual(self.host(), self.before)

    def test_who_may_not_take_it_away_hears_of_it(self):
        """While the gateway runs as well, when the configuration does not want a guard any more."""
        def release():
            return self.edge.run("setpriv", "--inh-caps", "-all", "--bounding-set", "-all", "--no-new-privs",
                                 binary("braidctl"), "release", self.gateway.path)

        self.braidctl("guard", "apply")
        with self.assertRaisesRegex(RuntimeError, "use root"):
            release()
        self.up()
        self.edge.run("sed", "-i", "s/block/direct/", self.gateway.path)
        with self.assertRaisesRegex(RuntimeError, "use root"):
            release()
        self.gateway.stop()
        self.assertEqual(self.seen(), [0, 0])

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

    def test_the_removal_of_the_package_takes_it_away(self):
        self.braidctl("guard", "apply")
        self.call_prerm("upgrade", "1.0")
        self.assertEqual(self.seen(), [0, 0], "an upgrade leaves it")
        self.call_prerm("remove")
        self.assertEqual(self.host(), self.before)
        self.assertGreater(min(self.seen()), 50)

    def test_a_configuration_without_it_ends_it(self):
        for by_reload in (True, False):
            with self.subTest(by_reload=by_reload):
                self.gateway.config["device"]["when-down"] = "block"
                self.up()
                self.gateway.config["device"].pop("when-down")
                if by_reload:
                    self.gateway.reload()
                    self.eventually(lambda: "unreachable" not in self.edge.ip("route", "show", "table", "all"), "gone")
                    self.gateway.stop()
                else:
                    self.gateway.stop(signal.SIGKILL)
                    self.assertEqual(self.seen(), [0, 0])
                    self.up()
                    self.gateway.stop()
                self.assertEqual(self.host(), self.before)

    def test_the_other_family_too(self):
        self.gateway.config["device"]["routes"] = ["0.0.0.0/0"]
        self.braidctl("guard", "apply")
        self.assertEqual(self.seen(), [0, 0])
        self.assertEqual(self.seen(self.up), [0, 0])
        self.assertEqual(self.ping(V4), 5)
        self.assertEqual(self.seen(self.gateway.stop), [0, 0])

    def test_an_uplink_by_a_further_name(self):
        """What leaves by it is guarded even to addresses that may be those of a LAN."""
        uplinks = self.gateway.config["uplinks"]
        self.addCleanup(self.gateway.config.update, uplinks=uplinks)
        named = []
        for index, uplink in enumerate(uplinks):
            device = self.lab.sites[0].device(index)
            name = f"further-name-of-uplink-{index}"
            self.edge.ip("link", "property", "add", "dev", device, "altname", name)
            self.addCleanup(self.edge.ip, "link", "property", "del", "dev", device, "altname", name)
            named.append({**uplink, "interface": name})
        self.gateway.config["uplinks"] = named
        self.addCleanup(Sender(self.edge, [MAYBE_LAN]).close)
        self.assertGreater(self.seen()[0], 50)
        self.braidctl("guard", "apply")
        self.assertEqual(self.seen(), [0, 0])
        self.assertEqual(self.seen(self.up), [0, 0])

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

    def test_the_unit_may_do_what_it_must(self):
        """With the unit's capabilities, where the folder of further peers is the daemon's, and while it runs."""
        folder = self.lab.directory / "peers.d"
        folder.mkdir(mode=0o750)
        self.addCleanup(folder.rmdir)
        os.chown(folder, NOBODY, NOBODY)
        self.addCleanup(self.gateway.config.pop, "peers-folder")
        self.gateway.config["peers-folder"] = str(folder)
        self.gateway.write_config()
        bounds = re.search("^CapabilityBoundingSet=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)[1]
        kept = ",".join("+" + name.removeprefix("CAP_").lower() for name in bounds.split())

        def apply():
            return self.edge.run("setpriv", "--inh-caps", "-all", "--bounding-set", "-all," + kept, "--no-new-privs",
                                 binary("braidctl"), "guard", "apply", self.gateway.path)

        self.assertIn("or not at all", apply())
        self.assertEqual(self.seen(), [0, 0])
        self.up()
        control = self.gateway.config["control"]["socket"]
        os.chown(control, NOBODY, NOBODY)
        self.assertIn("keeps its guard", apply())
        self.gateway.stop(signal.SIGKILL)
        self.addCleanup(os.unlink, control)
        self.edge.run("nft", "flush", "ruleset")
        self.assertIn("or not at all", apply(), "the socket of a killed daemon keeps no guard")
        self.assertEqual(self.seen(), [0, 0])

    def test_narrow_routes_guard_what_they_name(self):
        self.gateway.config["device"]["routes"] = [f"{V4}/32", f"{V6}/128"]
        self.braidctl("guard", "apply")
        self.assertGreater(min(self.seen()), 50, "to others")
        for namespace in (self.edge, self.lab.client):
            self.assertEqual([self.ping(V4, count=1, wait=0.3, namespace=namespace),
                              self.ping(V6, count=1, wait=0.3, namespace=namespace)], [0, 0])

    def test_lan_uplinks_neighbours_and_replies_are_spared(self):
        """Before the first start, and while the gateway does not run."""
        self.braidctl("guard", "apply")
        self.spares()
        self.up()
        self.spares()
        self.gateway.stop(signal.SIGKILL)
        self.spares()

    def spares(self):
        for address in self.lab.sites[0].client_address:
            self.assertEqual(self.ping(address, namespace=self.edge), 5, address)
        for index in (0, 1):
            for near, source in zip((pair[0] for pair in self.lab.sites[0].link_addresses(index)), PUBLIC):
                with self.subTest(near=near):
                    self.assertEqual(self.ping(near, namespace=self.lab.concentrator), 5, "on the link")
                    self.assertEqual(self.ping(near, namespace=self.lab.concentrator, options=("-I", source)), 5)
                    with self.answering(self.edge, near, 2222) as listener:
                        self.assertTrue(self.is_answered(listener, near, 2222, source))

    def test_leases_are_renewed_and_neighbours_found(self):
        self.braidctl("guard", "apply")
        self.edge.ip("neighbour", "flush", "dev", "wifi0")
        with self.edge.inside(socket.socket, socket.AF_INET, socket.SOCK_DGRAM) as client, \
                self.lab.concentrator.inside(socket.socket, socket.AF_INET, socket.SOCK_DGRAM) as server:
            client.bind(("0.0.0.0", 68))
            server.bind(("10.0.0.2", 67))
            server.settimeout(3)
            client.sendto(b"request", ("10.0.0.2", 67))
            self.assertEqual(server.recv(100), b"request")

    def test_an_endpoint_by_name(self):
        self.name_the_hub()
        self.braidctl("guard", "apply")
        self.assertEqual(self.seen(self.up), [0, 0])


class Direct(GuardCase):
    WHEN_DOWN = "direct"

    def reaches(self, address=V4):
        return self.ping(address, count=1, wait=0.2) == 1

    def test_hosts_use_the_hosts_own_way_while_the_hub_is_away(self):
        self.up()
        self.assertEqual(self.seen(), [0, 0])
        self.lab.gateway.stop(signal.SIGKILL)
        try:
            began = time.monotonic()
            self.eventually(lambda: self.reaches(V4) and self.reaches(V6), "there is a way", timeout=6)
            self.assertLess(time.monotonic() - began, 3)
            self.assertIn("leave by the host's own routes, in clear", self.log())
            events = self.gateway.ctl("explain")
            self.assertIn("host's own routes", events)
        finally:
            self.lab.gateway.start()
        self.eventually(lambda: "go through the tunnel" in self.log().split("in clear")[-1], "the way back", timeout=20)
        self.eventually(lambda: self.seen() == [0, 0], "what was on the links has arrived")
        self.assertEqual([self.ping(V4), self.ping(V6)], [5, 5])

    def flow(self, address):
        """A flow of datagrams of a LAN host, to an echo. Returns a function: sends the next one; whether it is
        answered. It must be called again and again, so that the flow does not end."""
        kind = socket.AF_INET6 if ":" in address else socket.AF_INET
        echo = self.lab.server.inside(socket.socket, kind, socket.SOCK_DGRAM)
        client = self.lab.client.inside(socket.socket, kind, socket.SOCK_DGRAM)
        for end in (echo, client):
            self.addCleanup(end.close)
            end.settimeout(0.1)
        echo.bind((address, 7070))

        def answered():
            try:
                client.sendto(b"ask", (address, 7070))
                data, source = echo.recvfrom(100)
                echo.sendto(data, source)
                return client.recv(100) == b"ask"
            except OSError:
                return False

        return answered

    def test_flows_of_datagrams_go_on_by_the_other_way(self):
        """They keep their ports, so the kernel knows them from before the change."""
        flows = [self.flow(V4), self.flow(V6)]

        def go_on():
            return all([flow() for flow in flows])  # each of them, in any case

        self.up()
        self.eventually(go_on, "through the tunnel")
        self.lab.gateway.stop(signal.SIGKILL)
        try:
            self.eventually(lambda: go_on() and "in clear" in self.log(), "past it", timeout=6)
        finally:
            self.lab.gateway.start()
        self.eventually(lambda: go_on() and "go through the tunnel" in self.log().split("in clear")[-1],
                        "through it again", timeout=20)

    def test_before_the_first_session_and_after_the_end(self):
        self.lab.gateway.stop()
        try:
            self.gateway.start()
            self.assertTrue(self.reaches(V4) and self.reaches(V6))
        finally:
            self.lab.gateway.start()
        self.gateway.wait_up(subflows=2)
        self.eventually(lambda: self.seen() == [0, 0], "the tunnel is used")
        self.gateway.stop()
        self.assertEqual(self.host(), self.before)


class Unset(GuardCase):
    def test_nothing_outlives_the_gateway(self):
        self.gateway.config["device"].pop("when-down")
        self.assertEqual(self.seen(self.up)[0] > 0, True, "until the start")
        self.assertEqual(self.seen(), [0, 0])
        self.lab.gateway.stop(signal.SIGKILL)
        try:
            self.assertEqual(self.seen(), [0, 0], "while it runs, with or without its hub")
        finally:
            self.lab.gateway.start()
        self.gateway.stop()
        self.assertEqual(self.host(), self.before)
        self.assertGreater(min(self.seen()), 50)


if __name__ == "__main__":
    unittest.main()
