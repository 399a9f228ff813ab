"""Compares tunnels: between the same hosts, one at a time and in turn, by the same functions.

    client --veth-- edge ==veth== concentrator --veth-- server      all in one kernel, super-packets pass the veths

A contender consists of two daemons. Their CPU time is that of their processes (proc(5), all threads). It includes
kernel time of their system calls, and of interrupts that happen while they run.
"""

import contextlib
import copy
import json

from lab import Lab, Wire, median
from lab.machine import wait_for_calm
from lab.measure import cpu_seconds, difference, iperf3
from lab.services import Iperf3
from lab.site import PUBLIC, SERVER_LAN
from lab.wireguard import WireGuard, keys, program

from . import option, require

PROGRAMS = ["braidd", "braidctl"]
SERVER = Lab.server_addresses()[0]
DIRECT = Lab.server_addresses(0)[0]  # over the first link, without a tunnel
ROUNDS, SECONDS = 7, 10  # runs of each contender, and the length of one
QUICK_ROUNDS, QUICK_SECONDS = 1, 2
OPTIONS = [option("--quick", action="store_true", help="one short look, without a verdict"),
           option("--settings", metavar="JSON", default="{}",
                  help="changes of both gateways' configuration, for comparisons")]


class Contender:
    """A kind of tunnel with its two daemons. Subclasses start and stop the daemons and name them."""

    name = version = None

    def start(self):
        raise NotImplementedError

    def stop(self):
        raise NotImplementedError

    def pids(self):
        raise NotImplementedError

    def cpu(self):
        """CPU seconds that both daemons have used."""
        return sum(cpu_seconds(pid) for pid in self.pids())


class Braid(Contender):
    """Both gateways with default settings and the edge's first `uplinks`. `settings`: changes for comparisons."""

    def __init__(self, lab, settings, uplinks=1):
        self._lab = lab
        self._uplinks = uplinks
        self.name = "braid" if uplinks == 1 else f"braid, {uplinks} links"
        if not lab.gateway:
            lab.make_gateways(edge=copy.deepcopy(settings), concentrator=copy.deepcopy(settings))

    def start(self):
        edge = self._lab.edge_gateway
        every = [{"name": link.name, "interface": self._lab.sites[0].device(index)}
                 for index, link in enumerate(self._lab.sites[0].links)]
        edge.config["uplinks"] = every[:self._uplinks]
        for gateway in self._lab.gateways():
            gateway.start()
        edge.wait_up(subflows=self._uplinks)

    def stop(self):
        codes = [gateway.stop() for gateway in self._lab.gateways()]
        if any(codes):
            raise RuntimeError(f"{self.name}: the daemons ended with {codes}\n" + self._lab.log_tail())

    def pids(self):
        return [gateway.process.pid for gateway in self._lab.gateways()]


class Rival(Contender):
    """wireguard-go at both ends, with its defaults."""

    name = "wireguard-go"

    def __init__(self, lab):
        self._lab = lab
        self._program, self.version, self.current = program()
        near, far = keys(), keys()
        self._public = near[1], far[1]
        self._near = WireGuard(lab, lab.edge, near[0])
        self._far = WireGuard(lab, lab.concentrator, far[0])

    def start(self):
        self._far.start(self._program, self._public[0], self._lab.sites[0].lan)
        self._near.start(self._program, self._public[1], SERVER_LAN, endpoint=PUBLIC[0])

    def stop(self):
        self._near.stop()
        self._far.stop()

    def pids(self):
        return [self._near.process.pid, self._far.process.pid]


class Duel:
    """A lab and its contenders. None of these runs outside of running() and rounds(). Use as a context manager."""

    def __init__(self, quick, settings, uplinks=(1,), rival=True):
        self.quick = quick
        self.rounds_wanted, self.seconds = (QUICK_ROUNDS, QUICK_SECONDS) if quick else (ROUNDS, SECONDS)
        self._settings = json.loads(settings)
        self._uplinks = uplinks
        self._with_rival = rival
        self.lab = Lab([Wire(f"wire{index}") for index in range(max(uplinks))], offloads=True)

    def __enter__(self):
        self.lab.__enter__()
        try:
            self.contenders = [Braid(self.lab, self._settings, count) for count in self._uplinks]
            if self._with_rival:
                self.contenders.append(Rival(self.lab))
            Iperf3(self.lab)
        except BaseException:
            self.lab.close()
            raise
        return self

    def __exit__(self, *error):
        self.lab.__exit__(*error)

    @contextlib.contextmanager
    def running(self, contender):
        """The contender's daemons run inside the block, and packets cross it."""
        for host in (self.lab.client, self.lab.server):
            host.ip("route", "flush", "cache")  # what is known of the last one's MTU
        contender.start()
        try:
            self.lab.wait_for(self._crosses, f"{contender.name} to carry a ping")
            yield contender
        finally:
            contender.stop()

    def _crosses(self):
        return " 0% packet loss" in self.lab.client.run("ping", "-n", "-c", 1, "-W", 1, SERVER, check=False)

    def rounds(self, measure):
        """{contender's name: [results of measure(duel, contender), one per round]}. The order changes from round to
        round, so that changes of the machine's speed affect all contenders alike."""
        results = {contender.name: [] for contender in self.contenders}
        for number in range(self.rounds_wanted):
            for contender in self.contenders[::-1 if number % 2 else 1]:
                wait_for_calm()
                with self.running(contender):
                    results[contender.name].append(measure(self, contender))
        return results

    def detail(self, results):
        """The result of a target from its rounds; without a verdict where none is possible."""
        out = {"rounds": self.rounds_wanted, "seconds of a run": self.seconds,
               "settings": self._settings or "as shipped"}
        for name, rounds in results.items():
            out[name] = {key: rounded(median(each[key] for each in rounds)) for key in rounds[0]}
        for contender in self.contenders:
            if isinstance(contender, Rival):
                out["rival"] = f"wireguard-go {contender.version}"
                require(out, contender.current,
                        "the current wireguard-go, which has offloads: it needs a newer Go toolchain")
        return out


def stream(duel, contender, parallel=1):
    """One iperf3 run with `parallel` TCP streams from client to server: Gbit/s of payload that the server got, and CPU
    nanoseconds of both daemons for each byte of it."""
    before, kernel = contender.cpu(), duel.lab.server.counters()
    got = iperf3(duel.lab, SERVER, "-P", parallel, seconds=duel.seconds)["end"]["sum_received"]
    spent = contender.cpu() - before
    kernel = difference(duel.lab.server.counters(), kernel)
    return {"Gbit/s": got["bits_per_second"] / 1e9, "ns per byte": spent * 1e9 / got["bytes"],
            "out of order": kernel["TcpExt.TCPOFOQueue"]}


def datagrams(duel, contender, size, rate):
    """UDP datagrams of `size` bytes from client to server, `rate` per second (0: as fast as the client can): the number
    that left the client's kernel, the share that the tunnel lost, and CPU microseconds of both daemons for each
    datagram that arrived. A datagram that the server's kernel dropped because its program was late counts as
    arrived."""
    before, counters = contender.cpu(), _udp(duel.lab)
    iperf3(duel.lab, SERVER, "-u", "-l", size, "-b", rate * size * 8, seconds=duel.seconds)
    spent = contender.cpu() - before
    sent, read, late = (after - earlier for after, earlier in zip(_udp(duel.lab), counters))
    arrived = read + late
    if not arrived:
        raise RuntimeError(f"{contender.name}: none of {sent} datagrams arrived")
    return {"sent a second": sent / duel.seconds, "arrived a second": arrived / duel.seconds,
            "lost": 1 - arrived / sent, "us per packet": spent * 1e6 / arrived,
            "late at the server": late / sent}


def _udp(lab):
    """(sent by the client, read at the server, dropped at the server for lack of room)"""
    server = lab.server.counters()
    return lab.client.counters()["Udp.OutDatagrams"], server["Udp.InDatagrams"], server["Udp.RcvbufErrors"]


def ratio(results, key, one, other):
    """The median of the rounds' ratios; the two values of a round were measured one after the other."""
    return median(a[key] / b[key] for a, b in zip(results[one], results[other]))


def rounded(value):
    return float(f"{value:.4g}")
