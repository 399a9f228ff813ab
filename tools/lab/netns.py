"""One network namespace: commands, functions, sysctls, addresses and kernel counters inside it."""

import ctypes
import json
import os
import subprocess
import threading

CLONE_NEWNET = 0x40000000  # sched.h
_libc = ctypes.CDLL(None, use_errno=True)


def run(*command, check=True, timeout=60, **options):
    """Runs a command and returns its output. An error contains the command's own message."""
    command = [str(word) for word in command]
    done = subprocess.run(command, stdin=options.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=timeout, **options)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Namespace:
    """A network namespace under /run/netns, made on construction."""

    def __init__(self, name):
        self.name = name
        self.make()

    def make(self):
        """Makes it again, after delete()."""
        run("ip", "netns", "add", self.name)
        # Link-local addresses are ready at once. Without one a gateway cannot ask for the MAC addresses of IPv6 hosts.
        self.sysctl(net__ipv6__conf__default__accept_dad=0)
        self.ip("link", "set", "lo", "up")

    @classmethod
    def existing(cls, name):
        """An existing namespace that another process has made."""
        space = cls.__new__(cls)
        space.name = name
        return space

    def delete(self):
        run("ip", "netns", "del", self.name, check=False)

    def words(self, *command):
        """The command line that runs `command` inside."""
        return ["ip", "netns", "exec", self.name, *[str(word) for word in command]]

    def run(self, *command, **options):
        return run(*self.words(*command), **options)

    def popen(self, *command, **options):
        """Starts a command in its own session, so that one signal to its group reaches all of it."""
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.words(*command), start_new_session=True, **options)

    def ip(self, *command):
        return run("ip", "-n", self.name, *command)

    def inside(self, function, *arguments):
        """Calls a function in a thread that has entered the namespace. Sockets that it opens stay in that namespace."""
        box = {}

        def body():
            try:
                self._enter()
                box["value"] = function(*arguments)
            except BaseException as error:  # handed to the caller below
                box["error"] = error

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        thread.join()
        if "error" in box:
            raise box["error"]
        return box["value"]

    def _enter(self):
        handle = os.open(f"/run/netns/{self.name}", os.O_RDONLY)
        try:
            if _libc.setns(handle, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns to {self.name}")
        finally:
            os.close(handle)

    def sysctl(self, **settings):
        """Sets sysctls; `__` in a name stands for the slash: net__ipv4__ip_forward=1."""

        def write():
            for name, value in settings.items():
                with open("/proc/sys/" + name.replace("__", "/"), "w", encoding="ascii") as file:
                    file.write(str(value))

        self.inside(write)

    def address(self, device, *addresses):
        """Gives the device addresses (with prefix length) and sets it up."""
        for address in addresses:
            extra = ["nodad"] if ":" in address else []
            self.ip("address", "replace", address, "dev", device, *extra)
        self.ip("link", "set", device, "up")

    def route(self, prefix, *words):
        family = "-6" if ":" in prefix else "-4"
        self.ip(family, "route", "replace", prefix, *words)

    def counters(self):
        """The kernel's network counters of this namespace: {"TcpExt.TCPOFOQueue": 0, "Tcp.RetransSegs": 0, ...}."""
        return self.inside(_read_counters)

    def nft_packets(self, family, table):
        """How many packets the counters of an nftables table have counted."""
        listed = json.loads(self.run("nft", "-j", "list", "table", family, table))["nftables"]
        parts = [part for item in listed for part in item.get("rule", {}).get("expr", [])]
        return sum(part["counter"]["packets"] for part in parts if "counter" in part)

    def set_congestion_control(self, name):
        """The algorithm that new TCP connections of this namespace use."""
        self.sysctl(net__ipv4__tcp_congestion_control=name)


def _read_counters():
    counters = {}
    for table in ("netstat", "snmp"):
        with open(f"/proc/thread-self/net/{table}", encoding="ascii") as file:
            lines = file.read().splitlines()
        for names, values in zip(lines[::2], lines[1::2]):
            group, names = names.split(":")
            for name, value in zip(names.split(), values.split(":")[1].split()):
                counters[f"{group}.{name}"] = int(value)
    return counters


# The offloads with which a host and its interface exchange packets of up to 64 KB.
_OFFLOADS = ("tso", "gso", "gro", "tx-udp-segmentation")


def join(left, left_device, right, right_device, offloads=False):
    """Joins two namespaces by a veth pair.

    A veth processes a packet on the CPU that sends it, so packets are reordered when a sender moves to another CPU.
    Real interfaces do not do this. Flow steering keeps a flow on one CPU.

    A veth pair passes super-packets (up to 64 KB of a flow) unchanged. Counting, dropping or delaying a packet there
    would affect dozens of packets at once. `offloads` allows this, for measurements of speed.

    Both ends get different numbers: with equal ones the kernel takes them for one interface, and notes up to a second
    later that the link is up. Until then no IPv6 host is answered.
    """
    pair = ("ip", "link", "add", left_device, "netns", left.name, "type", "veth",
            "peer", "name", right_device, "netns", right.name)
    run(*pair)
    made = json.loads(left.ip("-json", "link", "show", "dev", left_device))[0]
    if made["ifindex"] == made["link_index"]:
        left.ip("link", "del", left_device)
        left.ip("link", "add", left_device, "type", "veth")  # takes two numbers
        left.ip("link", "del", left_device)
        run(*pair)
    for end, device in ((left, left_device), (right, right_device)):
        run("ip", "netns", "exec", end.name, "sh", "-c", f"echo 3 > /sys/class/net/{device}/queues/rx-0/rps_cpus")
        if not offloads:
            end.run("ethtool", "-K", device, *(word for name in _OFFLOADS for word in (name, "off")))
