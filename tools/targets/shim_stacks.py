"""The ack shim between the kernel's TCP and two others, lwIP and gVisor's netstack, all as packaged."""

import contextlib
import os
import pathlib
import subprocess
import threading
import time

from lab import Lab, Link, percentile
from lab.gateway import binary
from lab.netns import run
from lab.stacks import SOURCES, Peer

from . import target
from ._builds import dependencies
from ._recovery_lab import Stalls
from .shim import halves_apart

LOSS = 0.02  # of the last hop, towards the receiver
LINK, LAN = Link("dsl", 100, 8), Link("lan", 1000, 2)  # 10 ms RTT, 2 of them outside the tunnel
SMALL, LARGE = 14600, 1_000_000
BLOCKS = 14
# Small flows of a series in a block: one after the other, then some at once; and one large flow.
SINGLES, PARALLEL = 16, 4
STALL = 5  # s without a byte. lwIP's first timer is 2 to 3 s after a short exchange, Linux and gVisor's 0.2 s
DIRECTIONS = {"download": ("server", "client", "lan.client"), "upload": ("client", "server", "lan.server")}
SERIES = {"lwip sends": ("lwip", "kernel"), "lwip receives": ("kernel", "lwip"),
          "netstack sends": ("netstack", "kernel"), "netstack receives": ("kernel", "netstack"),
          "lwip to netstack": ("lwip", "netstack"), "netstack to lwip": ("netstack", "lwip"),
          "kernel to kernel": ("kernel", "kernel")}
PACKAGES = ("liblwip0", "golang-gvisor-gvisor-dev", "golang-go")
FAULTS = ("stalls", "resets", "corrupted", "incomplete")
# The series of large_flows_alone(). With lwIP's timers a flow of 1 MB takes many seconds, with and without the shim.
LARGE_SERIES = ("netstack sends", "netstack receives", "kernel to kernel")
LARGE_ALONE = 3  # in a block


def _build_netstack():
    """Builds the Go program only from Debian packages, without network access."""
    root = SOURCES.parents[1]
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOTOOLCHAIN": "local",
                   "GOCACHE": str(root / "build" / "go-cache"), "GOFLAGS": ""}
    dependencies("stacks")
    run("/usr/bin/go", "build", "-o", pathlib.Path(binary("braidd")).parent / "netstack_peer",
        SOURCES / "netstack_peer.go",
        timeout=1200, env=environment)


class _Flow:
    """The receiver's report of one flow, and its errors."""

    def __init__(self, began, report, stalls):
        self.report = report
        self.seconds = report["seconds"]
        self.large = report["size"] == LARGE
        self.whole = report["ok"] and report["end"] == "complete"
        wait = max(report["gap"], report["connect"]) - stalls.paused(began, time.monotonic())
        self.undisturbed = bool(stalls.undisturbed([(began, time.monotonic() - began)]))
        self.fault = None
        if report["end"] == "reset":
            self.fault = "resets"
        elif report["end"] == "complete" and not report["ok"]:
            self.fault = "corrupted"
        elif wait >= STALL or report["end"] == "silent":
            self.fault = "stalls"
        elif not self.whole:
            self.fault = "incomplete"


class _Bench:
    """The lab with a peer of each stack at both ends; flows and the shim's counters by shim, direction and series."""

    def __init__(self, lab, stalls):
        self._lab = lab
        self._stalls = stalls
        self._peers = {(stack, host): Peer(lab, stack, getattr(lab, host))
                       for stack in ("kernel", "lwip", "netstack") for host in ("client", "server")}
        self.flows, self.actuators, self.served_resets, self.errors = {}, {}, {True: 0, False: 0}, []

    def block(self, number, shim, direction):
        """All series at the same time, in one direction, through new shims or none."""
        with self._shimmed(shim, direction):
            self._together([(self._series, self._arguments(number, shim, direction, name)) for name in SERIES])

    def large_alone(self, number, shim, direction):
        """The same with large flows of LARGE_SERIES, one flow after the other."""
        with self._shimmed(shim, direction):
            for name in LARGE_SERIES:
                one = self._fetcher(*self._arguments(number, shim, direction, name))
                for i in range(LARGE_ALONE):
                    one(f"large{i}", LARGE)

    def _arguments(self, number, shim, direction, name):
        source, target_host, _ = DIRECTIONS[direction]
        return (f"{number}.{int(shim)}.{direction}", source, target_host, name,
                self.flows.setdefault((shim, direction, name), []))

    @contextlib.contextmanager
    def _shimmed(self, shim, direction):
        lossy = DIRECTIONS[direction][2]
        resets = self._resets()
        self._lab.switch_ack_shim(shim)
        self._lab.links.set(lossy, direction="ba", loss=LOSS)
        try:
            yield
        finally:
            self._lab.links.set(lossy, direction="ba", loss=0)
        if shim:
            self._count()
        self._lab.switch_ack_shim(False)
        self.served_resets[shim] += self._resets() - resets
        if self.errors:
            raise self.errors[0]

    def _fetcher(self, label, source, target_host, name, flows):
        """A function that has one flow of a series, given its seed and size."""
        sender, receiver = SERIES[name]
        receiver, sender = self._peers[receiver, target_host], self._peers[sender, source]

        def one(seed, size):
            began = time.monotonic()
            report = receiver.fetch(sender, f"{label}.{name.replace(' ', '-')}.{seed}", size)
            flows.append(_Flow(began, {**report, "size": size}, self._stalls))

        return one

    def _series(self, *series):
        one = self._fetcher(*series)
        for i in range(SINGLES):
            one(i, SMALL)
        self._together([(one, (f"p{i}", SMALL)) for i in range(PARALLEL)])
        one("large", LARGE)

    def _together(self, calls):
        def guarded(function, arguments):
            try:
                function(*arguments)
            except Exception as error:  # raised by block()
                self.errors.append(error)

        threads = [threading.Thread(target=guarded, args=call) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _resets(self):
        return sum(peer.served_resets for peer in self._peers.values())

    def _count(self):
        for gateway in self._lab.gateways():
            for entry in gateway.status()["ack_shim"]["actuators"]:
                total = self.actuators.setdefault(entry["name"], dict.fromkeys(("fired", "useful", "spurious"), 0))
                for key in total:
                    total[key] += entry[key]


def _good(flows):
    return [flow.seconds for flow in flows if flow.whole and flow.undisturbed]


def _times(flows):
    times = _good(flows)
    brief = {f"p{round(share * 100)}_ms": round(percentile(times, share) * 1e3, 1) for share in (0.5, 0.95, 0.99)}
    return {**brief, "mean_ms": round(sum(times) / len(times) * 1e3, 1), "flows": len(flows)}


def _gain(off, on):
    """FCT without and with the shim, and the one divided by the other."""
    without, helped = _times(off), _times(on)
    return {"without": without, "with": helped, "control": halves_apart(_good(off)),
            "ratio": {key: round(without[key] / helped[key], 2) for key in without if key != "flows"}}


def _blocks(block):
    """A bench after BLOCKS blocks without and with the shim in turns, in both directions, and the stalls meanwhile."""
    _build_netstack()
    with Lab([LINK], lans={"client": LAN, "server": LAN}) as lab, contextlib.closing(Stalls()) as stalls:
        lab.start_gateways()
        bench = _Bench(lab, stalls)
        for number in range(BLOCKS):
            for shim in (False, True) if number % 2 == 0 else (True, False):
                for direction in DIRECTIONS:
                    block(bench, number, shim, direction)
    return bench, stalls


def _faults(flows, served_resets=0):
    counts = {fault: sum(flow.fault == fault for flow in flows) for fault in FAULTS}
    counts["resets"] += served_resets
    return counts


@target("shim.3", "stalls, resets and wrong streams of lwIP and gVisor netstack endpoints with the ack shim", "flows",
        at_most=0, programs=["braidd", "braidctl", "linkemu", "lwip_peer"])
def stacks():
    bench, stalls = _blocks(_Bench.block)
    everything = {shim: [flow for key, flows in bench.flows.items() if key[0] == shim for flow in flows]
                  for shim in (False, True)}
    faults = {shim: _faults(flows, bench.served_resets[shim]) for shim, flows in everything.items()}
    detail = {"flows": len(everything[True]), "with_shim": faults[True], "without_shim": faults[False],
              "bad": [{**flow.report, "fault": flow.fault} for flow in everything[True] if flow.fault][:20],
              "longest_gap_s": {"without": round(max(flow.report["gap"] for flow in everything[False]), 2),
                                "with": round(max(flow.report["gap"] for flow in everything[True]), 2)},
              "left_out_of_percentiles": stalls.left_out, "shim": bench.actuators, "packages": _versions(),
              "kernel": os.uname().release}
    for name in SERIES:
        for size, large in (("14.6 KB", False), ("1 MB", True)):
            off, on = ([flow for direction in DIRECTIONS for flow in bench.flows[shim, direction, name]
                        if flow.large == large]
                       for shim in (False, True))
            detail[f"{name}, {size}"] = _gain(off, on)
    return sum(faults[True].values()), detail


def large_flows_alone():
    """({series: what shim.3 says of its flows of 1 MB}, flows with a fault): kernels and netstack, never two flows at
    once."""
    bench, _ = _blocks(_Bench.large_alone)
    table, faults = {}, 0
    for name in LARGE_SERIES:
        off, on = ([flow for direction in DIRECTIONS for flow in bench.flows[shim, direction, name]]
                   for shim in (False, True))
        table[name] = _gain(off, on)
        faults += sum(_faults(on).values())
    return table, faults + bench.served_resets[True]


def _versions():
    form = "${Package} ${Version}\\n"
    out = subprocess.run(["dpkg-query", "-W", "-f", form, *PACKAGES], capture_output=True, text=True,
                         check=False).stdout
    return dict(line.split(" ", 1) for line in out.splitlines())
