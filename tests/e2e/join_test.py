"""Two bare machines become a pair by `braidctl setup`, `invite` and `join`, and carry downloads over both uplinks."""

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import unittest

from join_case import JoinCase
from lab import binary
from lab.gateway import flatten_subflows
from lab.services import Dnsmasq
from lab.site import PUBLIC, SERVER_LAN
from pair_case import V4, V6, unbroken

TUNSETIFF, IFF_TUN, IFF_TAP, IFF_NO_PI = 0x400454ca, 1, 2, 0x1000  # linux/if_tun.h


class Joining(JoinCase):
    def test_three_commands_make_a_pair_that_downloads_over_both_uplinks(self):
        self.assertIn("braidctl invite NAME", self.told_by_setup)
        line = self.invite("van")
        told = self.join(line)
        self.assertIn("uplinks: wifi0, lte0", told)
        self.assertIn("joined as 'van'", told)
        self.assertIn("the first packet went through: 10.99.0.1 answers", told)
        fragment = self.hub.call("cat", "/var/lib/braid/concentrator.peers.d/van.yaml").stdout
        self.assertIn("192.168.10.0/24", fragment)
        self.hub.ctl("check", "/etc/braid/concentrator.yaml")
        self.edge.ctl("check", "/etc/braid/edge.yaml")

        def both():
            flows = flatten_subflows(json.loads(self.edge.ctl("paths", "--json")))
            return {flow["uplink"] for flow in flows if flow["state"] == "active"} == {"wifi0", "lte0"}

        self.lab.wait_for(both, "both uplinks")
        for address in (V4, V6):
            self.verify(self.download(self.file(6_000_000), address))
        received = {}
        for flow in flatten_subflows(json.loads(self.edge.ctl("paths", "--json"))):
            received[flow["uplink"]] = received.get(flow["uplink"], 0) + flow["received_bytes"]
        self.assertGreater(min(received["wifi0"], received["lte0"]), 1_000_000, received)
        self.assertIn("already", self.hub.call(binary("braidctl"), "invite", "van").stderr)

    def test_as_json_it_is_one_object(self):
        invited = json.loads(self.hub.ctl("invite", "van", "--address", f"{PUBLIC[0]}:4433", "--json"))
        self.assertIn("not whole", self.refused(invited["line"][:-5], "--json"))
        made = json.loads(self.join(invited["line"], "--json"))
        self.assertEqual((made["name"], made["uplinks"]), ("van", ["wifi0", "lte0"]))
        self.assertIn("10.99.0.2/24", made["addresses"])
        self.assertIn("192.168.10.0/24", made["networks"])
        self.assertEqual((made["started"], made["answered"], made["forwarding"]), (True, True, True))
        self.assertNotIn(invited["line"].split("/")[3], json.dumps(made))

    def test_uplinks_are_named_and_metered_by_flags(self):
        told = self.join(self.invite("van"), "--uplink", "wifi0=home", "--uplink", "lte0", "--metered", "lte0=50GB")
        self.assertIn("uplinks: home (wifi0), lte0 (metered, 50GB a month)", told)
        uplinks = {each["name"]: each for each in json.loads(self.edge.ctl("status", "--json"))["gateway"]["uplinks"]}
        self.assertEqual((uplinks["home"]["interface"], uplinks["home"]["use"]), ("wifi0", "normal"))
        self.assertEqual((uplinks["lte0"]["use"], uplinks["lte0"]["metered"]["cap_bytes"]), ("metered", 50_000_000_000))

    def test_everything_is_of_both_families_or_said_not_to_be(self):
        def invited(name, *networks):
            words = [word for network in networks for word in ("--network", network)]
            return self.hub.call(binary("braidctl"), "invite", name, "--address", f"{PUBLIC[0]}:4433", *words)

        half = invited("van", "0.0.0.0/0")
        self.assertIn("IPv6 of that gateway leaves in clear", unbroken(half.stderr))
        self.assertIn("note: IPv6 is not routed into the tunnel, and so it is refused",
                      unbroken(self.join(half.stdout, "--network", "none")))
        self.leave()
        both = invited("boat", "0.0.0.0/0", "::/0")
        self.assertNotIn("in clear", both.stderr)
        self.assertNotIn("in clear", self.join(both.stdout))
        for family, to in (("-4", "198.51.100.1"), ("-6", "2001:db8:77::1")):
            self.assertIn("dev braid0", self.lab.edge.ip(family, "route", "get", to))

    def test_an_invitation_is_good_once_and_its_secret_is_nowhere_to_be_seen(self):
        line = self.invite("van")
        secret = line.split("/")[3]
        seen = []

        def look():
            for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    if secret.encode() in process.read_bytes():
                        seen.append(process)

        joining = subprocess.Popen(self.edge.words(binary("braidctl"), "join", "--yes"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env={**os.environ, "PATH": self.edge.path}, start_new_session=True)
        joining.stdin.write(line + "\n")
        joining.stdin.close()
        while joining.poll() is None:
            look()
        told = joining.stdout.read()
        joining.stdout.close()
        self.assertEqual(joining.returncode, 0, told)
        self.assertEqual(seen, [])
        texts = [told, self.lab.log("hub").read_text(), self.lab.log("edge").read_text()]
        for machine in (self.hub, self.edge):
            found = machine.call("sh", "-c", "cat /etc/braid/*.yaml; find /var/lib/braid -type f -exec cat {} +")
            texts.append(found.stdout)
        for text in texts:
            self.assertNotIn(secret, text)
        self.leave()
        self.hub.call("rm", "/var/lib/braid/concentrator.peers.d/van.yaml")
        self.hub.ctl("reload")
        self.assertIn("was used by another gateway", self.refused(line))

    def test_the_line_in_the_command_line_is_overwritten_there(self):
        line = self.invite("van", "--valid-for", "10min")
        told = self.edge.call(binary("braidctl"), "join", line, "--yes", "--dry-run")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("interface: \"wifi0\"", told.stdout)
        self.assertIn("# uplinks: wifi0, lte0", told.stdout)
        self.assertIn("all IPv4 and IPv6 traffic of this machine and of the networks behind it goes through the tunnel",
                      told.stdout)
        self.assertEqual(self.edge.files("/etc/braid"), [])

    def test_a_join_applies_nothing_that_was_only_saved(self):
        line, file = self.invite("van"), "/etc/braid/concentrator.yaml"
        self.hub.call("sh", "-c", f"cp {file} {file}.kept; echo 'half: [' >>{file}")
        told = self.join(line)
        self.hub.call("mv", f"{file}.kept", file)
        self.assertIn("is not applied yet; run 'braidctl reload' there", unbroken(told))
        self.assertIn("the first packet went through", told)
        self.assertIn("nothing else was applied: /etc/braid/concentrator.yaml:", self.lab.log("hub").read_text())

    def test_a_comment_in_the_configuration_is_no_edit(self):
        """`setup` removes one from its file once the daemon has started with it."""
        line, file = self.invite("van"), "/etc/braid/concentrator.yaml"
        self.hub.call("sh", "-c", f"cp {file} {file}.kept; printf '\\n# a remark\\n' >>{file}")
        told = self.join(line)
        self.hub.call("mv", f"{file}.kept", file)
        self.assertNotIn("not applied", told)
        self.assertNotIn("nothing else was applied", self.lab.log("hub").read_text())

    def test_what_is_wrong_is_one_line_and_leaves_nothing(self):
        line = self.invite("van")
        self.assertIn("not whole", self.refused(line[:-5]))
        parts = line.split("/")
        wrong = bytearray(base64.urlsafe_b64decode(parts[3] + "="))
        wrong[0] ^= 1
        parts[3] = base64.urlsafe_b64encode(wrong).decode().rstrip("=")
        self.assertIn("its secret is wrong", self.refused(self.sealed(parts)))
        parts = line.split("/")
        parts[1] = f"{PUBLIC[0]}:9"
        told = self.refused(self.sealed(parts))
        self.assertIn(f"no answer from {PUBLIC[0]}:9", told)
        self.assertIn("blocked", told)
        self.assertIn("192.168.100.0/25 overlaps", self.refused(line, "--network", "192.168.100.0/25"))
        self.assertIn("no interface wan9", self.refused(line, "--uplink", "wan9"))
        self.assertIn("joined as 'van'", self.join(line))

    @staticmethod
    def sealed(parts):
        text = "/".join(parts[:5])
        return f"{text}/{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def test_a_name_is_found_behind_the_guard_of_an_earlier_gateway(self):
        line = self.hub.ctl("invite", "van", "--address", "hub.example:4433").strip()
        server = Dnsmasq(self.lab, {"hub.example": PUBLIC[0]}, namespace=self.lab.concentrator, listen=PUBLIC[0])
        self.addCleanup(self.lab.stop, server.process)
        earlier = ("identity: {key: old.key, certificate: old.crt}\n"
                   "device: {routes: [0.0.0.0/0, '::/0'], when-down: block}\nuplinks: [{interface: wifi0}]\n"
                   f"peers: [{{name: old, pin: 'sha256:{'A' * 43}=', endpoints: ['192.0.2.1:1'], "
                   "prefixes: [0.0.0.0/0, '::/0']}]\n")
        self.edge.call("tee", "/etc/braid/old.yaml", given=earlier)
        self.edge.call("tee", "/etc/resolv.conf", given=f"nameserver {PUBLIC[0]}\n")
        self.assertIn("or not at all", self.edge.ctl("guard", "apply", "old"))
        self.addCleanup(self.edge.call, "rm", "/etc/resolv.conf")
        self.assertNotEqual(self.edge.call("getent", "hosts", "hub.example").returncode, 0, "the guard refuses others")
        self.assertIn("first packet went through", self.join(line))

    def test_a_network_in_which_the_edge_is_stays_here(self):
        self.edge.call("ip", "address", "add", "10.20.77.2/24", "dev", "wifi0")
        try:
            line = self.invite("van", "--network", "10.20.77.0/24")
            done = self.edge.call(binary("braidctl"), "join", "--yes", given=line + "\n")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertIn("10.20.77.0/24 of wifi0 here, too", done.stderr)
            self.assertEqual(self.edge.files("/etc/braid"), [])
            line = self.invite("van", "--network", "10.20.0.0/16")
            self.assertEqual(self.hub.files("/var/lib/braid/concentrator.peers.d"), [], "another invitation, anew")
            self.assertIn("first packet went through", self.join(line))
        finally:
            self.edge.call("ip", "address", "del", "10.20.77.2/24", "dev", "wifi0")

    def test_a_second_concentrator_of_the_machine_lets_its_own_edges_in(self):
        network = ("--network", "192.168.10.0/24")
        self.join(self.invite("bus"), *network)
        self.leave()
        second = ("--name", "second", "--device", "braid1", "--port", 4434)
        told = self.hub.call(binary("braidctl"), "setup", "--yes", *second).stderr
        self.assertRegex(told, "overlaps 10.99.0.1/24 of braid0; name another with --tunnel")
        try:
            second += ("--tunnel", "10.98.0.1/24")
            text = self.hub.ctl("setup", "--yes", *second, "--dry-run")
            self.assertIn(SERVER_LAN[0], text)
            self.assertNotIn("10.99.", text, "the first one's tunnel is none of its networks")
            self.hub.ctl("setup", "--yes", *second, "--network", SERVER_LAN[0])
            told = self.hub.call(binary("braidctl"), "invite", "van").stderr
            self.assertIn("several daemons run; name one with --socket: concentrator second", told)
            line = self.hub.ctl("invite", "van", "--socket", "second", "--address", f"{PUBLIC[0]}:4434").strip()
            told = self.edge.call(binary("braidctl"), "join", "--yes", *network, given=line + "\n").stderr
            self.assertIn("overlaps 192.168.10.0/24, which the concentrator itself is in or has a route to", told,
                          "the first one has an edge with this network")
            self.hub.call("rm", "/var/lib/braid/concentrator.peers.d/bus.yaml")
            self.hub.ctl("reload", "--socket", "concentrator")
            self.assertIn("the first packet went through: 10.98.0.1 answers", self.join(line, *network))
            self.assertEqual(self.hub.files("/var/lib/braid/second.peers.d"), ["van.yaml"])
            self.assertEqual(self.hub.files("/var/lib/braid/concentrator.peers.d"), [])
            self.assertEqual(self.ping(), 5)
        finally:
            self.hub.call("systemctl", "disable", "--now", "braid@second")
            self.hub.call("sh", "-c", "rm -rf /etc/braid/second.* /var/lib/braid/second.*")
            self.lab.wait_for(lambda: self.hub.files("/run/braid") == ["concentrator.sock", "concentrator.sock.lock"],
                              "the second one to end")

    def test_who_locks_the_folder_holds_nobody_up(self):
        holder = subprocess.Popen(self.edge.words("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                                  "flock", "/etc/braid", "sh", "-c", "echo locked; exec sleep 60"),
                                  stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(holder.communicate)
        self.addCleanup(os.killpg, holder.pid, signal.SIGKILL)
        self.assertEqual(holder.stdout.readline(), "locked\n")
        self.assertIn("first packet went through", self.join(self.invite("van")))
        self.assertEqual(self.edge.files("/etc/braid"), ["edge.crt", "edge.key", "edge.yaml"])

    def test_lans_are_chosen_by_what_links_are_and_not_by_their_names(self):
        """A container's namespace: its NICs are veth devices to the host, and those of its own containers lead
        elsewhere."""
        machine, host, pod = (self.lab.namespace(name) for name in ("machine", "host", "pod"))

        def veth(name, space, master=None):
            machine.ip("link", "add", name, "type", "veth", "peer", "name", f"x-{name}", "netns", space.name)
            space.ip("link", "set", f"x-{name}", "up")
            machine.ip("link", "set", name, *(["master", master] if master else []), "up")

        def tun(name, flags):
            """A TUN or TAP device like that of a VPN or a virtual machine. It is kept open, so that it has a
            carrier."""
            device = machine.inside(os.open, "/dev/net/tun", os.O_RDWR)
            self.addCleanup(os.close, device)
            machine.inside(fcntl.ioctl, device, TUNSETIFF, struct.pack("16sH22x", name.encode(), flags | IFF_NO_PI))

        for bridge in ("br-lan", "podman0", "incusbr0", "virbr9"):
            machine.ip("link", "add", bridge, "type", "bridge")
        veth("wan", host)
        veth("docker7", host)
        veth("lan1", host, "br-lan")
        veth("pod1", pod, "podman0")
        veth("pod2", pod, "incusbr0")
        for name in ("tun0", "wg0", "tailscale0"):
            tun(name, IFF_TUN)
        tun("vnet0", IFF_TAP)
        machine.ip("link", "set", "vnet0", "master", "virbr9", "up")
        machine.ip("link", "add", "ifb7", "type", "ifb")
        links = ("wan", "br-lan", "docker7", "podman0", "incusbr0", "virbr9", "tun0", "wg0", "tailscale0", "ifb7")
        for number, name in enumerate(links):
            machine.address(name, f"10.{number}.0.1/24")
        machine.route("0.0.0.0/0", "via", "10.0.0.2")
        machine.route("10.77.0.0/16", "dev", "tun0")
        machine.ip("route", "add", "default", "dev", "wg0", "metric", "7")
        for name in ("docker7", "br-lan", "podman0", "incusbr0"):
            self.lab.wait_for(lambda name=name: " state UP " in machine.run("ip", "link", "show", name), name)

        def offered(*words):
            return machine.run(binary("braidctl"), *words, "--yes", "--dry-run", "--name", "by-kind", "--keep-router")

        told = offered("setup")
        self.assertEqual(re.findall(r"10\.\d+\.0\.0/24", told), ["10.1.0.0/24", "10.2.0.0/24"], told)
        told = offered("join", self.invite("van"))
        self.assertEqual(re.findall(r'interface: "?(\w+)', told), ["wan"], told)
        self.assertIn("10.1.0.0/24", told)


if __name__ == "__main__":
    unittest.main()
