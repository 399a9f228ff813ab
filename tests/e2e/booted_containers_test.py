"""Docker, Podman and libvirt in booted machines: what they need stays with them, and what the LAN needs beside them is
there again after a start of the machine."""

import re
import unittest

from booted_case import BootedCase
from firewall_case import CLIENT, LAN
from pair_case import V4, V6

ROUTER = "10.0.0.2"  # at the far end of wifi


class ContainersCase(BootedCase):
    EDGE = {"device": {"networks": list(LAN.values())}}
    NSPAWN = ("--system-call-filter=@keyring bpf",)  # of a container's own

    def setUp(self):
        super().setUp()
        self.networkd()
        self.configure()

    def switch_on(self):
        self.renew()
        self.boot()
        self.machine.wait(self.machine.up, "a session")

    def passes(self, address=V4):
        """From a host of the LAN through the tunnel."""
        return self.ping(address, count=1, wait=0.5) == 1

    def become(self, passes, why, address=V4):
        self.eventually(lambda: self.passes(address) == passes, why, 20)

    def image(self):
        """The folder of a container's files: one program."""
        self.machine.run("sh", "-c", "mkdir -p /root/image/bin && cp /bin/busybox /root/image/bin/")
        return "/root/image"


class Docker(ContainersCase):
    FORWARDS = False  # it drops by its policy where it switches forwarding on itself

    def setUp(self):
        super().setUp()
        self.machine.write("etc/docker/daemon.json", '{"storage-driver": "vfs"}')

    def rules(self):
        return self.machine.run("iptables", "-S", "DOCKER-USER")

    def test_what_was_allowed_is_there_after_a_start_of_the_machine(self):
        self.machine.enable("docker")
        self.switch_on()
        self.become(False, "Docker's policy drops")
        before = self.rules()
        self.machine.run("braidctl", "firewall", "allow", "edge")
        self.become(True, "allowed")
        allowed = self.rules()
        self.assertIn("braid edge", allowed)
        self.switch_on()
        self.become(True, "after a start of the machine")
        self.assertEqual(self.rules(), allowed)
        self.machine.run("systemctl", "restart", "docker")
        self.become(True, "after a restart of Docker")
        self.assertEqual(self.rules(), allowed)
        self.machine.run("braidctl", "firewall", "remove", "edge")
        self.become(False, "removed")
        self.assertEqual(self.rules(), before)
        self.switch_on()
        self.become(False, "removed, and started")
        self.assertEqual(self.rules(), before)

    def test_forwarding_stays_on_while_its_containers_need_it(self):
        self.gateway.config["forwarding"] = "on"
        self.addCleanup(self.gateway.config.pop, "forwarding")
        self.configure()
        self.switch_on()
        self.machine.run("systemctl", "start", "docker")
        self.machine.run("sh", "-c", f"tar -C {self.image()} -c . | docker import - box")
        self.machine.run("docker", "run", "--detach", "--stop-timeout=0", "--name", "box", "box", "/bin/busybox",
                         "sleep", "600")

        def gets_out():
            return "1 packets received" in self.machine.run("docker", "exec", "box", "/bin/busybox", "ping", "-c", "1",
                                                            ROUTER, check=False)

        self.assertTrue(gets_out())
        self.machine.run("systemctl", "stop", "braid@edge")
        self.assertTrue(gets_out(), "Docker found forwarding switched on, and does not say that it needs it")
        self.machine.run("systemctl", "start", "braid@edge")
        self.machine.run("sh", "-c", "kill -9 $(systemctl show --value --property=MainPID braid@edge)")
        self.machine.wait(self.machine.up, "a session")
        self.machine.run("systemctl", "stop", "braid@edge")
        self.assertTrue(gets_out(), "after kill -9")

    def test_forwarding_ends_with_the_gateway_where_nobody_needs_it(self):
        self.gateway.config["forwarding"] = "on"
        self.addCleanup(self.gateway.config.pop, "forwarding")
        self.configure()
        self.switch_on()
        self.assertEqual(self.machine.run("sysctl", "-n", "net.ipv4.ip_forward"), "1\n")
        self.machine.run("systemctl", "stop", "braid@edge")
        self.assertEqual(self.machine.run("sysctl", "-n", "net.ipv4.ip_forward"), "0\n")


class Podman(ContainersCase):
    """With netavark, which adds chains to FORWARD."""

    PROGRAMS = {V4: "iptables", V6: "ip6tables"}

    def rules(self):
        """Those of netavark, and where they are called."""
        return [re.sub(r"\[\d+:\d+\]", "", line) for program in self.PROGRAMS.values()
                for line in self.machine.run(f"{program}-save").splitlines() if "NETAVARK" in line]

    def reached(self, address):
        """From a container, through the tunnel."""
        return "1 packets received" in self.machine.run(
            "podman", "exec", "box", "/bin/busybox", "ping", "-c", "1", "-W", "1", address, check=False)

    def test_the_chains_of_containers_stay_theirs(self):
        self.machine.write("etc/containers/storage.conf", '[storage]\ndriver = "vfs"\n'
                           'graphroot = "/var/lib/containers/storage"\nrunroot = "/run/containers/storage"\n')
        self.switch_on()
        self.machine.run("podman", "network", "create", "--subnet", "10.90.0.0/24", "--subnet", "fd90::/64", "both")
        self.machine.run("podman", "run", "--detach", "--pids-limit=0", "--cap-add=NET_RAW", "--name", "box",
                         "--network", "both", "--rootfs", self.image(), "/bin/busybox", "sleep", "600")
        self.addCleanup(self.machine.run, "podman", "rm", "--force", "--time", "0", "box")  # the machine's end waits
        before = self.rules()
        self.assertGreater(len(before), 8)
        for event in ("restart", "stop", "start"):
            self.machine.run("systemctl", event, "braid@edge")
            self.assertEqual(self.rules(), before, event)
        self.machine.wait(self.machine.up, "a session")
        for address, program in self.PROGRAMS.items():
            with self.subTest(program):
                self.become(True, "a policy that accepts", address)
                self.assertTrue(self.reached(address))
                self.machine.run(program, "-P", "FORWARD", "DROP")
                self.assertFalse(self.passes(address))
                self.assertTrue(self.reached(address), "netavark lets its own through")
                said = " ".join(self.machine.run("braidctl", "doctor", "edge", check=False).split())
                self.assertRegex(said, r"lan0 .*to braid0 are dropped by chain FORWARD of table ip6? filter, by its "
                                       "policy")
                self.machine.run("braidctl", "firewall", "allow", "--into-chains", "edge")
                self.become(True, "allowed", address)
                self.assertTrue(self.reached(address))
                self.machine.run("braidctl", "firewall", "remove", "edge")
                self.assertFalse(self.passes(address))
                self.assertEqual(self.rules(), before)


class Libvirt(ContainersCase):
    """libvirt 11 with a packet filter of its own, which keeps its guests from what comes in. The LAN's host is one."""

    SUITE = "trixie"
    HAS_LAN = False
    NETWORK = """<network><name>lan</name><forward mode="nat"/><bridge name="virbr0" stp="off"/>
<ip address="192.168.10.1" prefix="24"/><ip family="ipv6" address="fd00:0:0:10::1" prefix="64"/></network>"""
    # What is left out repairs checksums of DHCP. Not every kernel has it, and the lab's host needs none.
    TC = '#!/bin/sh\ncase "$*" in *csum*) exit 0 ;; esac\nexec /usr/sbin/tc "$@"\n'

    def virsh(self, *words):
        self.machine.run("virsh", "--connect", "network:///system", *words)

    def attach(self):
        """The guest's interface, as when a guest starts."""
        self.machine.run("ip", "link", "set", "lan0", "up", "master", "virbr0")

    def gets_in(self):
        """A new connection of a host behind the peer to the guest."""
        return self.ping(CLIENT[V4], namespace=self.lab.server, count=1, wait=0.5, options=("-I", V4)) == 1

    def become(self, gets_in, why):
        self.eventually(lambda: self.gets_in() == gets_in, why, 20)

    def rules(self):
        return re.sub(r"packets \d+ bytes \d+", "", self.machine.run("nft", "list", "table", "ip", "libvirt_network"))

    def test_its_own_table(self):
        self.machine.write("usr/local/sbin/tc", self.TC, 0o755)
        self.machine.write("root/lan.xml", self.NETWORK)
        self.machine.enable("libvirtd")
        self.switch_on()
        self.virsh("net-define", "/root/lan.xml")
        self.virsh("net-autostart", "lan")
        self.virsh("net-start", "lan")
        self.attach()
        self.reaches()
        self.become(False, "libvirt keeps its guests")
        said = " ".join(self.machine.run("braidctl", "doctor", "edge", check=False).split())
        self.assertRegex(said, r"new IPv4 connections from braid0 to virbr0 .*are dropped by chain forward of table ip "
                               r"libvirt_network, by a rule of chain guest_input .*firewall allow .*libvirt")
        before = self.rules()
        self.machine.run("braidctl", "firewall", "allow", "edge")
        self.become(True, "allowed")
        allowed = self.rules()
        self.machine.run("systemctl", "restart", "libvirtd")
        self.become(True, "after a restart of libvirt")
        self.virsh("net-destroy", "lan")
        self.virsh("net-start", "lan")
        self.attach()
        self.become(True, "after a start of the network")
        self.assertEqual(self.rules(), allowed, "each rule once")
        self.switch_on()
        self.eventually(lambda: "virbr0" in self.edge.ip("link"), "the network's start")
        self.attach()
        self.become(True, "after a start of the machine")
        self.machine.run("braidctl", "firewall", "remove", "edge")
        self.become(False, "removed")
        self.assertEqual(self.rules(), before)
        self.assertEqual(self.machine.run("find", "/etc/libvirt/hooks", "-name", "braid*"), "")


if __name__ == "__main__":
    unittest.main()
