"""The lab itself: links have the requested properties, and nothing is left behind."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

from diagnosed import DiagnosedCase
from lab import Lab, Link, Wire, clean, run
from lab.bare import Machine
from lab.host_state import differences, state_of
from pair_case import V4, PairCase


class Links(PairCase):
    GATEWAYS = False
    LINKS = [Link("fast", 40, 10), Link("slow", 10, 40)]

    def test_rate_and_round_trip(self):
        for index, link in enumerate(self.LINKS):
            with self.subTest(link=link.name):
                self.attempts(lambda: self.rate_and_round_trip(Lab.server_addresses(index)[0], link))

    def rate_and_round_trip(self, address, link):
        download = self.download(self.file(int(link.rate_mbit * 1e6 / 8 * 1.5)), address)
        self.verify(download)
        goodput = download.goodput_mbit()
        self.assertLess(goodput, link.rate_mbit * 1448 / 1500)
        out = self.lab.client.run("ping", "-n", "-q", "-c", 5, "-i", 0.05, address)
        shortest = float(out.partition("mdev = ")[2].partition("/")[0])
        self.assertGreaterEqual(shortest, link.rtt_ms)
        self.in_time(goodput > link.rate_mbit * 0.75, f"{goodput:.1f} of {link.rate_mbit} Mbit/s")
        self.in_time(shortest < link.rtt_ms + 5, f"the shortest of 5 round trips took {shortest} of {link.rtt_ms} ms")

    def test_a_link_goes_down_and_up(self):
        address = Lab.server_addresses(0)[1]
        self.assertEqual(self.ping(address, count=3), 3)
        self.lab.links.set("fast", "ab", down=True)
        self.assertEqual(self.ping(address, count=2), 0)
        self.lab.links.set("fast", "ab", down=False)
        self.assertEqual(self.ping(address, count=3), 3)


class SinglePackets(PairCase):
    """Code that counts or drops packets in the lab gets single packets, not super-packets, unless a lab is configured
    for speed."""

    GATEWAYS = False
    LINKS = [Wire("wire")]
    RULES = ("add table inet sizes; add chain inet sizes pass { type filter hook forward priority 0; };"
             "add rule inet sizes pass meta length > 1500 counter;"
             "add rule inet sizes pass meta length <= 1500 counter")
    COUNTER = re.compile(r"counter packets (\d+)")

    def test_what_a_gateway_forwards(self):
        self.lab.concentrator.run("nft", self.RULES)
        self.verify(self.download(self.file(3_000_000), Lab.server_addresses(0)[0]))
        text = self.lab.concentrator.run("nft", "list", "table", "inet", "sizes")
        large, small = map(int, self.COUNTER.findall(text))
        self.assertGreater(small, 10)
        self.assertEqual(large > 0, self.OFFLOADS)


class SuperPackets(SinglePackets):
    OFFLOADS = True


class Reports(DiagnosedCase):
    """What sanitizers report of daemons is known after the lab has ended."""

    TEXTS = {"race": "WARNING: ThreadSanitizer: data race (pid=1)", "use": "==1==ERROR: AddressSanitizer: heap-use",
             "leak": "==1==ERROR: LeakSanitizer: detected memory leaks",
             "overflow": "a.cc:1:2: runtime error: signed integer overflow",
             "other": "2026-11-30 12:00:00 warning: nothing was reported"}

    def test_each_kind_and_nothing_else(self):
        with Lab([Wire("wire")]) as lab:
            for name, text in self.TEXTS.items():
                lab.start(lab.client, name, ["echo", f"before\n{text}\nafter"]).wait()
            self.assertEqual(lab.reports, [])
        found = {report.partition(".log: ")[0]: report for report in lab.reports}
        self.assertEqual(set(found), set(self.TEXTS) - {"other"})
        for report in found.values():
            self.assertTrue(report.rstrip().endswith("after"), report)


class HostState(PairCase):
    """What a program leaves on a bare machine is seen, whatever it is, and nothing else."""

    GATEWAYS = False
    LINKS = [Wire("wifi")]
    TABLE = "table inet left { chain input { type filter hook input priority 0; }; }"
    LEFT = {  # {part: {what leaves something: what is said of it}}
        "files": {"touch /etc/left": "/etc/left", "mkdir -p /var/lib/left/folder": "/var/lib/left/folder",
                  "mkfifo /run/left": "/run/left", "ln -s /dev/null /etc/left.service": "/etc/left.service",
                  "chmod 600 /etc/hostname": "-rw------- 0:0", "echo '# left' >> /etc/hosts": "/etc/hosts",
                  "rm /etc/hostname": "- "},
        "processes": {"setsid sleep 777 >/dev/null 2>&1 & echo $!": "sleep 777",
                      "setsid unshare --net sleep 778 >/dev/null 2>&1 & echo $!; sleep 0.2": "sleep 778"},
        "nftables": {f"nft '{TABLE}'": "table inet left"},
        "iptables": {"iptables -A INPUT -p udp -j ACCEPT": "-A INPUT -p udp -j ACCEPT"},
        "ip6tables": {"ip6tables -A INPUT -p udp -j ACCEPT": "-A INPUT -p udp -j ACCEPT"},
        "address show -4": {"ip address add 192.0.2.7/32 dev lo": "192.0.2.7"},
        "address show -6": {"ip address add 2001:db8::7/128 dev lo": "2001:db8::7"},
        "links": {"ip link add left type bridge": "left:", "ip link set wifi0 mtu 1400": "mtu 1400"},
        "rule list -4": {"ip rule add pref 32766 lookup main": "from all lookup main"},  # there are two by then
        "rule list -6": {"ip -6 rule add pref 77 lookup main": "77:"},
        "route show table all -4": {"ip route add 192.0.2.0/24 dev lo table 77": "table 77"},
        "route show table all -6": {"ip -6 route add 2001:db8::/32 dev lo table 77": "table 77"},
        "settings": {"sysctl -w net.ipv4.tcp_ecn=1": "ipv4/tcp_ecn:1",
                     "sysctl -w net.netfilter.nf_conntrack_generic_timeout=77": "generic_timeout:77",
                     "sysctl -w net.ipv6.conf.wifi0.accept_ra=2": "ipv6/conf/wifi0/accept_ra:2"},
    }

    def test_each_kind(self):
        machine = Machine(self.lab, "bare", self.lab.edge)
        self.addCleanup(machine.stop)
        before = state_of(machine)
        self.assertEqual(set(self.LEFT), set(before))
        self.ping(V4)  # as hosts do meanwhile
        other = pathlib.Path("/etc/netns") / f"{self.lab.edge.name}-other"  # as another lab has it
        other.mkdir(parents=True)
        self.addCleanup(run, "rmdir", "--ignore-fail-on-non-empty", "--parents", other)
        self.assertEqual(differences(before, state_of(machine)), [])
        for part, commands in self.LEFT.items():
            for command, said in commands.items():
                with self.subTest(command=command):
                    done = machine.call("sh", "-c", command)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    if part == "processes":
                        self.addCleanup(os.kill, int(done.stdout), signal.SIGTERM)
                    after = state_of(machine)
                    found = [line for line in differences(before, after) if line.startswith(f"{part}: ")]
                    self.assertTrue(any(said in line for line in found), found)
                    before = after


class CleanUp(DiagnosedCase):
    def start(self):
        """Starts a lab in a separate process. Returns the process and the lab's name."""
        code = ("import time\nfrom lab import Lab, Link\n"
                "with Lab([Link('wifi')]) as lab:\n  print(lab.name, flush=True)\n  time.sleep(60)\n")
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True)
        self.addCleanup(process.stdout.close)
        return process, process.stdout.readline().strip()

    def assert_gone(self, name):
        self.assertNotIn(name, run("ip", "netns", "list"))
        self.assertFalse(clean.work_directory(name).exists())
        emulators = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")
                     if name.encode() in _read(path) and path.parent.name != str(os.getpid())]
        self.assertEqual(emulators, [])

    def test_signals_remove_everything(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                process, name = self.start()
                process.send_signal(number)
                process.wait(10)
                self.assert_gone(name)

    def test_left_overs_of_a_killed_lab_are_removed(self):
        process, name = self.start()
        process.kill()
        process.wait(10)
        self.assertIn(name, run("ip", "netns", "list"))
        self.assertIn(name, clean.remove_leftovers())
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline and clean.work_directory(name).exists():
            time.sleep(0.05)
        self.assert_gone(name)


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    unittest.main()
