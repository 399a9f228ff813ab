"""The lab: namespaces, routes and processes of one run, all removed when it ends. site.py lists the addresses.

In mode "tap" client and server share one subnet, 172.16.0.0/24, and each gateway bridges its LAN port with the TAP
device.
"""

import atexit
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

from . import clean, priority
from .gateway import Gateway, binary, make_identities
from .links import Link, LinkEmulator, Wire
from .netns import Namespace, join, run
from .site import PUBLIC, Site, server_addresses

CONGESTION_CONTROLS = "reno bbr cubic"
DIRECT_TABLE = 1000  # routing tables from this number on; each sends the server's direct addresses over one link
DIRECT_RULE = 1000  # priorities of the rules for them, before Braid's
# How a report of a sanitizer begins.
REPORT = re.compile(r"(WARNING|ERROR): (Thread|Address|Leak)Sanitizer|: runtime error: ")
REPORT_SIZE = 4000  # characters of it that are kept


class Lab:
    """Use as a context manager: `with Lab([Link("wifi", 50, 20)]) as lab: ...`."""

    def __init__(self, links, sites=1, mode="tun", seed=1, lans=None, offloads=False):
        """`lans`: {host: Link} for hosts ("client", "client1", "server") that reach their gateway over an emulated
        link instead of a veth pair; `lab.links.set("lan.client", ...)` changes it, direction "ab" is that from the
        host. `offloads`: veth pairs pass super-packets (netns.join)."""
        if os.geteuid() != 0:
            raise PermissionError("the lab makes network namespaces: run it as root")
        self.name = clean.new_name()
        self.directory = clean.work_directory(self.name)
        self.mode = mode
        self._seed = seed
        self._links = list(links)
        self._site_count = sites
        self._lans = lans or {}
        self._offloads = offloads
        self.gateway = self.edge_gateway = self.links = None
        self.reports = []  # of sanitizers, after close(): the first one of each log
        self._namespaces = []
        self._processes = {}
        self._closed = False

    def __enter__(self):
        clean.remove_leftovers()
        priority.raise_own()
        atexit.register(self.close)
        _end_on_signals()
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, error, trace):
        if error is not None and not isinstance(error, (KeyboardInterrupt, SystemExit)):
            self.save_logs()
        self.close()

    server_addresses = staticmethod(server_addresses)

    def _build(self):
        (self.directory / "logs").mkdir(parents=True, mode=0o700)
        self.directory.chmod(0o700)
        pathlib.Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").write_text(CONGESTION_CONTROLS)
        self.server = self.namespace("server")
        self.concentrator = self.namespace("concentrator")
        self.sites = [Site(self, number, self._links) for number in range(self._site_count)]
        self.client, self.edge = self.sites[0].client, self.sites[0].edge
        for space in self._namespaces:
            tune(space)
        plan = self._plan()
        self._join(plan)
        emulated = [entry for entry in plan if not isinstance(entry[-1], Wire)]
        if emulated:
            self.links = LinkEmulator(self, emulated, self._seed)
        self.concentrator.address("lo", PUBLIC[0] + "/32", PUBLIC[1] + "/128")
        for site in self.sites:
            self._configure_links(site)
        if self.mode == "tap":
            self._configure_bridged()
        else:
            self._configure_routed()

    def _plan(self):
        """(name, near namespace, device, far namespace, device, Link) of every link."""
        plan = [(site.link_name(i), site.edge, site.device(i), self.concentrator, site.far_device(i), link)
                for site in self.sites for i, link in enumerate(self._links)]
        for host, gateway in [(self.server, self.concentrator), *((site.client, site.edge) for site in self.sites)]:
            role = host.name.rpartition("-")[2]
            if role in self._lans:
                plan.append((f"lan.{role}", host, "lan0", gateway, "lan0", self._lans[role]))
            else:
                plan.append((None, host, "lan0", gateway, "lan0", Wire("lan")))
        return plan

    def _join(self, plan):
        for _, near, near_device, far, far_device, link in plan:
            if isinstance(link, Wire):
                join(near, near_device, far, far_device, self._offloads)

    def renew_edge(self):
        """Gives the first edge another namespace, whose interfaces have no addresses: as at power-up. No process may
        be in the old one. For links that are wires."""
        site = self.sites[0]
        plan = [entry for entry in self._plan() if self.edge in entry]
        for _, near, near_device, far, far_device, _ in plan:
            self.edge.ip("link", "del", near_device if near is self.edge else far_device)
        self.edge.delete()
        self.edge.make()
        self._join(plan)
        for index in range(len(site.links)):
            self._configure_far_end(site, index)
        self._configure_client(site)

    def _configure_far_end(self, site, index):
        (_, far4), (_, far6) = site.link_addresses(index)
        self.concentrator.address(site.far_device(index), far4 + "/24", far6 + "/64")

    def _configure_links(self, site):
        for index in range(len(site.links)):
            self._configure_far_end(site, index)
            site.configure_uplink(index)

    def _configure_routed(self):
        """LANs and the server's direct addresses. Answers from these use the link on which the request came."""
        self.concentrator.address("lan0", "192.168.100.1/24", "fd00:0:0:100::1/64")
        for link in [None, *range(len(self._links))]:
            v4, v6 = self.server_addresses(link)
            self.server.address("lan0", v4 + "/24", v6 + "/64")
        self.server.route("0.0.0.0/0", "via", "192.168.100.1")
        self.server.route("::/0", "via", "fd00:0:0:100::1")
        for site in self.sites:
            self._configure_client(site)
            site.edge.address("lan0", *site.lan_addresses)
            for index in range(len(site.links)):
                for family, address in zip(("-4", "-6"), self.server_addresses(index)):
                    site.edge.ip(family, "rule", "add", "to", address, "lookup", "main",
                                 "priority", DIRECT_RULE + index)
                for prefix, (near, _) in zip(site.lan, site.link_addresses(index)):
                    self.concentrator.route(prefix, "via", near, "dev", site.far_device(index),
                                            "table", DIRECT_TABLE + index)
        for index in range(len(self._links)):
            for family, address in zip(("-4", "-6"), self.server_addresses(index)):
                self.concentrator.ip(family, "rule", "add", "from", address, "lookup", DIRECT_TABLE + index,
                                     "priority", DIRECT_RULE + index)

    def _configure_client(self, site):
        for own, gateway, prefix in zip(site.client_address, site.lan_addresses, ("0.0.0.0/0", "::/0")):
            site.client.address("lan0", own + gateway[gateway.index("/"):])
            site.client.route(prefix, "via", gateway.partition("/")[0])

    def _configure_bridged(self):
        for space in (self.edge, self.concentrator):
            space.ip("link", "add", "br0", "type", "bridge")
            space.ip("link", "set", "lan0", "master", "br0", "up")
            space.ip("link", "set", "br0", "up")
        for space, host in ((self.client, 2), (self.server, 3)):
            space.address("lan0", f"172.16.0.{host}/24", f"fd00:0:0:16::{host}/64")

    # Gateways

    def make_gateways(self, edge=None, concentrator=None):
        """Makes a braidd for every edge and for the concentrator, without starting them. The arguments change the
        configuration (gateway.py)."""
        names = ["concentrator", *[site.edge.name.rpartition("-")[2] for site in self.sites]]
        pins = make_identities(self.directory, names)
        self.gateway = Gateway(self, "concentrator", self.concentrator,
                               Gateway.concentrator_config(self, pins, **(concentrator or {})))
        for site, name in zip(self.sites, names[1:]):
            site.gateway = Gateway(self, name, site.edge, Gateway.edge_config(self, site, name, pins, **(edge or {})))
        self.edge_gateway = self.sites[0].gateway

    def start_gateways(self, edge=None, concentrator=None, wait=True):
        """Makes and starts them; `wait`: until all subflows are active."""
        self.make_gateways(edge, concentrator)
        for gateway in self.gateways():
            gateway.start()
        if wait:
            for site in self.sites:
                site.gateway.wait_up(subflows=len(site.links))
        return self.edge_gateway

    def gateways(self):
        """The gateways of the concentrator and of the sites, as far as they exist."""
        return [gateway for gateway in (self.gateway, *(site.gateway for site in self.sites)) if gateway]

    def switch_ack_shim(self, enabled):
        """Switches the ack shim of every gateway. Switching it off removes its flows."""
        for gateway in self.gateways():
            gateway.config.setdefault("tunnel", {})["ack-shim"] = {"enabled": "on" if enabled else "off"}
            gateway.reload()
        self.wait_for(lambda: all(gateway.status()["ack_shim"]["on"] == enabled for gateway in self.gateways()),
                      "the ack shim's switch")

    def restore_uplink(self, index, site=0):
        """Sets an uplink up again, with addresses and routes, after `ip link set wifi0 down` at the edge."""
        self.sites[site].configure_uplink(index)

    # Processes

    binary = staticmethod(binary)

    def namespace(self, role):
        space = Namespace(f"{self.name}-{role}")
        self._namespaces.append(space)
        return space

    def log(self, name):
        return self.directory / "logs" / f"{name}.log"

    def start(self, namespace, name, command, **options):
        """Starts a process that the lab ends; its output goes to the log of that name."""
        with open(self.log(name), "ab") as log:
            options = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL, **options}
            command = [str(word) for word in command]
            if namespace is None:
                process = subprocess.Popen(command, start_new_session=True, **options)
            else:
                process = namespace.popen(*command, **options)
        priority.raise_session(process.pid)
        self._processes[process.pid] = process
        process.lab_name = name
        return process

    def stop(self, process, number=signal.SIGTERM, timeout=5):
        """Ends a process, by force if it does not end in time. Returns its exit code (negative: the signal)."""
        self._processes.pop(process.pid, None)
        for attempt in (number, signal.SIGKILL):
            _signal_group(process, attempt)
            try:
                process.wait(timeout)
                break
            except subprocess.TimeoutExpired:
                continue
        return process.returncode

    def wait_for(self, condition, what, timeout=10, interval=0.02):
        """Calls `condition` until it is true and returns its value; raises with every log's end when time is up."""
        deadline = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            for process in list(self._processes.values()):  # other threads may start and stop processes meanwhile
                if process.poll() not in (None, 0):
                    raise RuntimeError(f"{process.lab_name} ended with {process.returncode} while waiting for {what}\n"
                                       + self.log_tail(process.lab_name))
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {timeout} s\n" + self.log_tail())
            time.sleep(interval)

    def wait_for_line(self, name, text, timeout=10):
        """Waits until a process's log holds the text."""
        return self.wait_for(lambda: text in self.log(name).read_text(errors="replace"), f"{name} to print {text!r}",
                             timeout)

    def log_tail(self, name=None, lines=15):
        logs = [self.log(name)] if name else sorted((self.directory / "logs").glob("*.log"))
        parts = []
        for log in logs:
            tail = log.read_text(errors="replace").splitlines()[-lines:] if log.exists() else []
            parts.append("\n".join([f"--- {log.name}", *tail]))
        return "\n".join(parts)

    def told(self, lines=25):
        """Information for failures: every gateway's status, the links' counters, the logs."""
        parts = []
        for gateway in self.gateways():
            ended = gateway.process.poll() if gateway.process else "not running"
            parts.append(f"--- {gateway.name}: " + ("running" if ended is None else f"ended with {ended}"))
            with contextlib.suppress(RuntimeError, OSError, subprocess.TimeoutExpired):
                parts.append(gateway.ctl("status", "--verbose"))
        with contextlib.suppress(OSError, ValueError):
            links = self.links.stats()["links"] if self.links else {}
            parts += ["--- links", *(f"{name}: {json.dumps(link)}" for name, link in links.items())]
        return "\n".join([*parts, self.log_tail(lines=lines)])

    def save_logs(self):
        """Copies logs and configurations to $BRAID_LAB_LOGS if that is set."""
        place = os.environ.get("BRAID_LAB_LOGS")
        if place and self.directory.exists():
            shutil.copytree(self.directory, pathlib.Path(place) / self.name, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("*.sock", "*.key", "files"))

    def close(self):
        """Ends all processes, removes all namespaces and files. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        for process in self._processes.values():
            _signal_group(process, signal.SIGTERM)
        for process in list(self._processes.values()):
            self.stop(process, timeout=2)
        for log in (self.directory / "logs").glob("*.log"):
            text = log.read_text(errors="replace")
            if found := REPORT.search(text):
                self.reports.append(f"{log.name}: {text[found.start():found.start() + REPORT_SIZE]}")
        clean.remove_lab(self.name)
        atexit.unregister(self.close)


def _signal_group(process, number):
    if process.poll() is None:
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass


def tune(space):
    """Sets the kernel's options: forwarding between interfaces, no reverse-path filter (answers may take another path),
    no TCP metrics kept between runs."""
    space.sysctl(net__ipv4__ip_forward=1, net__ipv4__conf__all__rp_filter=0, net__ipv4__conf__default__rp_filter=0,
                 net__ipv6__conf__all__forwarding=1, net__ipv6__conf__all__keep_addr_on_down=1,
                 net__ipv6__conf__default__accept_dad=0, net__ipv4__tcp_congestion_control="cubic",
                 net__ipv4__tcp_no_metrics_save=1)
    space.sysctl(net__ipv4__ping_group_range="0 2147483647")


def _end_on_signals():
    """Makes SIGTERM and SIGHUP end the program like ^C: `with` blocks and atexit clean up, and unittest stops."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)
