"""Target of several threads: how much less the busiest one has to do where there are two.

"Cores to themselves" cannot be had on a machine of two cores, on which the hosts, both daemons and the load run, too.
So this compares CPU time, which a thread has used whoever else runs: with two workers a daemon is as fast as its
busiest thread lets it be, given a core for each.

    gain of a daemon = CPU time of its one thread for a byte of payload / that of its busiest thread, with two workers

Payload is what the hosts received, of both directions together. What the threads do to each other's caches is in it,
and so is what the other programs on the machine do to them.
"""

import concurrent.futures
import contextlib
import copy
import json

from lab import Lab, Wire, median
from lab.machine import wait_for_calm
from lab.measure import iperf3, thread_nanoseconds

from . import target
from ._duel import OPTIONS, SERVER, SHORT, Braid, Duel, ratio, require, rounded

PEERS, QUICK_PEERS = 20, 4
MANY_AT_LEAST = 1.6
ROUNDS, QUICK_ROUNDS = 5, 1  # of many peers
FIRST_PORT = 5300
ONE, TWO = "workers 1", "workers 2"


class Threads(Braid):
    """Both gateways with so many workers."""

    def __init__(self, lab, settings, workers):
        super().__init__(lab, settings)
        self._workers = workers
        self.name = f"workers {workers}"

    def start(self):
        for gateway in self._lab.gateways():
            gateway.config["workers"] = self._workers
        super().start()


def _used(before, after):
    """(of the busiest thread, of all) in nanoseconds."""
    spent = [ns - before.get(thread, 0) for thread, ns in after.items()]
    return max(spent), sum(spent)


def _received(report):
    """Bytes that both ends of an iperf3 run with --bidir got."""
    return sum(report["end"][key]["bytes"] for key in ("sum_received", "sum_received_bidir_reverse"))


def _both_ways(duel, contender):
    before = {pid: thread_nanoseconds(pid) for pid in contender.pids()}
    got = _received(iperf3(duel.lab, SERVER, "--bidir", seconds=duel.seconds))
    result = {"Gbit/s": got * 8 / duel.seconds / 1e9}
    for name, pid in zip(("concentrator", "edge"), contender.pids()):
        busiest, everything = _used(before[pid], thread_nanoseconds(pid))
        result[f"{name}, busiest, ns per byte"] = busiest / got
        result[f"{name}, all threads, ns per byte"] = everything / got
    return result


class _Peers:
    """A concentrator and its peers, each of which has a TCP stream of its own in each direction."""

    def __init__(self, lab, settings, seconds):
        self._lab = lab
        self._seconds = seconds
        lab.make_gateways(edge=copy.deepcopy(settings), concentrator=copy.deepcopy(settings))
        for number, site in enumerate(lab.sites):
            lab.start(lab.server, f"iperf3-{number}", ["iperf3", "-s", "-p", FIRST_PORT + number])
            site.gateway.start()

    @contextlib.contextmanager
    def _concentrator(self, workers):
        gateway = self._lab.gateway
        gateway.config["workers"] = workers
        gateway.start()
        try:
            gateway.wait_up(subflows=len(self._lab.sites), timeout=60)
            yield gateway.process.pid
        finally:
            gateway.stop()

    def measure(self, workers):
        with self._concentrator(workers) as pid:
            before = thread_nanoseconds(pid)
            with concurrent.futures.ThreadPoolExecutor(len(self._lab.sites)) as pool:
                got = sum(pool.map(self._transfer, range(len(self._lab.sites))))
            busiest, everything = _used(before, thread_nanoseconds(pid))
        return {"Gbit/s": got * 8 / self._seconds / 1e9, "busiest, ns per byte": busiest / got,
                "all threads, ns per byte": everything / got}

    def _transfer(self, number):
        out = self._lab.sites[number].client.run("iperf3", "-c", SERVER, "-p", FIRST_PORT + number, "-J", "--bidir",
                                                 "-t", self._seconds, timeout=self._seconds + 60)
        return _received(json.loads(out))


def _many(quick, settings, seconds):
    """{workers: [results]}, of rounds in turns."""
    count = QUICK_PEERS if quick else PEERS
    results = {ONE: [], TWO: []}
    with Lab([Wire("wire0")], sites=count, offloads=True) as lab:
        peers = _Peers(lab, json.loads(settings), seconds)
        for number in range(QUICK_ROUNDS if quick else ROUNDS):
            for name in (ONE, TWO)[::-1 if number % 2 else 1]:
                wait_for_calm()
                results[name].append(peers.measure(int(name.split()[1])))
    return count, results


def _medians(results):
    return {name: {key: rounded(median(each[key] for each in rounds)) for key in rounds[0]}
            for name, rounds in results.items()}


@target("speed.9", "CPU time of a daemon's one thread for a byte of payload / that of its busiest thread with two "
        "workers, one peer with a TCP stream each way, the worse daemon, median of runs in turns; "
        f"the concentrator of {PEERS} peers: at least {MANY_AT_LEAST}", "ratio", at_least=1.4,
        programs=["braidd", "braidctl"], options=OPTIONS)
def second_worker(quick, settings):
    with Duel(quick, settings, rival=False) as duel:
        duel.contenders = [Threads(duel.lab, json.loads(settings), workers) for workers in (1, 2)]
        results = duel.rounds(_both_ways)
        detail = duel.detail(results)
    gains = {name: ratio(results, f"{name}, busiest, ns per byte", ONE, TWO) for name in ("concentrator", "edge")}
    detail["value"] = "CPU time for a byte: one thread's / the busiest one's of two; no cores to themselves here"
    detail["gain"] = {name: rounded(each) for name, each in gains.items()}
    detail["throughput, two workers / one"] = rounded(ratio(results, "Gbit/s", TWO, ONE))
    peers, many = _many(quick, settings, duel.seconds)
    gain = ratio(many, "busiest, ns per byte", ONE, TWO)
    detail["many peers"] = {"peers": peers, "gain of the concentrator": rounded(gain),
                            "throughput, two workers / one": rounded(ratio(many, "Gbit/s", TWO, ONE)),
                            **_medians(many)}
    require(detail, gain >= MANY_AT_LEAST, f"many peers: {gain:.2f}, at least {MANY_AT_LEAST} it should be")
    require(detail, not quick, SHORT)
    return min(gains.values()), detail
