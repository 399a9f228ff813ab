"""Targets of several threads and daemons: by how much two threads reduce the work of the busiest one.

On a machine of two cores, which also runs the hosts, both daemons and the load, threads cannot have cores of their own.
So this compares CPU time, which does not depend on what else runs: with two workers and a core for each, the busiest
thread limits the daemon's speed.

    gain of a daemon = CPU time of its one thread for a byte of payload / that of its busiest thread, with two workers

Payload is what the hosts received, both directions together. The result includes the effects of the threads, and of
other programs, on the CPU caches. With two daemons, payload is that of both.
"""

import concurrent.futures
import copy
import json

from lab import Lab, Wire, median
from lab.machine import wait_for_calm
from lab.measure import iperf3, thread_nanoseconds
from lab.shards import Shards

from . import require, target
from ._duel import OPTIONS, QUICK_SECONDS, SECONDS, SERVER, Braid, Duel, ratio, rounded

PEERS, QUICK_PEERS = 20, 4
MANY_AT_LEAST = 1.6
ROUNDS, QUICK_ROUNDS = 5, 1  # of many peers
FIRST_PORT = 5300
ONE, TWO = "workers 1", "workers 2"
WORKERS = {ONE: 1, TWO: 2}
ONE_DAEMON, TWO_DAEMONS = "one daemon", "two daemons"
DAEMONS = {ONE_DAEMON: 1, TWO_DAEMONS: 2}


class Threads(Braid):
    """Both gateways with `workers` worker threads."""

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
    """The peers of a concentrator. Each has its own TCP stream in each direction."""

    def __init__(self, lab, settings, seconds):
        self._lab = lab
        self._seconds = seconds
        lab.make_gateways(edge=copy.deepcopy(settings), concentrator=copy.deepcopy(settings))
        for number in range(len(lab.sites)):
            lab.start(lab.server, f"iperf3-{number}", ["iperf3", "-s", "-p", FIRST_PORT + number])

    def start(self):
        for site in self._lab.sites:
            site.gateway.start()

    def stop(self):
        for site in self._lab.sites:
            site.gateway.stop()

    def measure(self, daemons):
        """Measures these daemons, to which all peers are connected. Ends them afterwards."""
        try:
            for gateway in daemons:
                gateway.wait_up(subflows=len(gateway.config["peers"]), timeout=60)
            wait_for_calm()
            before = [thread_nanoseconds(gateway.process.pid) for gateway in daemons]
            with concurrent.futures.ThreadPoolExecutor(len(self._lab.sites)) as pool:
                got = sum(pool.map(self._transfer, range(len(self._lab.sites))))
            used = [_used(old, thread_nanoseconds(gateway.process.pid)) for old, gateway in zip(before, daemons)]
        finally:
            for gateway in daemons:
                gateway.stop()
        return {"Gbit/s": got * 8 / self._seconds / 1e9, "busiest, ns per byte": max(each for each, _ in used) / got,
                "all threads, ns per byte": sum(each for _, each in used) / got}

    def _transfer(self, number):
        out = self._lab.sites[number].client.run("iperf3", "-c", SERVER, "-p", FIRST_PORT + number, "-J", "--bidir",
                                                 "-t", self._seconds, timeout=self._seconds + 60)
        return _received(json.loads(out))


def _in_turns(quick, names, measure):
    """{name: [results of measure(name), one per round]}. The order changes from round to round."""
    results = {name: [] for name in names}
    for number in range(QUICK_ROUNDS if quick else ROUNDS):
        for name in names[::-1 if number % 2 else 1]:
            results[name].append(measure(name))
    return results


def _peers_lab(quick):
    return Lab([Wire("wire0")], sites=QUICK_PEERS if quick else PEERS, offloads=True)


def _many(quick, settings, seconds):
    """{ONE or TWO: [results]}"""
    with _peers_lab(quick) as lab:
        peers = _Peers(lab, json.loads(settings), seconds)
        peers.start()

        def measure(name):
            lab.gateway.config["workers"] = WORKERS[name]
            lab.gateway.start()
            return peers.measure([lab.gateway])

        return _in_turns(quick, [ONE, TWO], measure)


def _dealt(quick, settings, seconds):
    """{ONE_DAEMON or TWO_DAEMONS: [results]}"""
    with _peers_lab(quick) as lab:
        peers = _Peers(lab, json.loads(settings), seconds)
        shards = Shards(lab, max(DAEMONS.values()))

        def measure(name):
            daemons = shards.deal(DAEMONS[name])
            for gateway in daemons:
                gateway.start()
            peers.start()
            try:
                return peers.measure(daemons)
            finally:
                peers.stop()

        return _in_turns(quick, [ONE_DAEMON, TWO_DAEMONS], measure)


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
    many = _many(quick, settings, duel.seconds)
    gain = ratio(many, "busiest, ns per byte", ONE, TWO)
    detail["many peers"] = {"peers": QUICK_PEERS if quick else PEERS, "gain of the concentrator": rounded(gain),
                            "throughput, two workers / one": rounded(ratio(many, "Gbit/s", TWO, ONE)),
                            **_medians(many)}
    require(detail, gain >= MANY_AT_LEAST, f"many peers: {gain:.2f}, at least {MANY_AT_LEAST} it should be")
    return min(gains.values()), detail


@target("speed.9b", f"{PEERS} peers with a TCP stream each way: CPU time of the one thread of a daemon that has all "
        "of them, for a byte of payload / that of the busier one of two daemons on the machine that have half of them "
        "each, for a byte of the payload of both; median of runs in turns", "ratio", at_least=MANY_AT_LEAST,
        programs=["braidd", "braidctl"], options=OPTIONS)
def second_daemon(quick, settings):
    seconds = QUICK_SECONDS if quick else SECONDS
    results = _dealt(quick, settings, seconds)
    detail = {"peers": QUICK_PEERS if quick else PEERS, "rounds": QUICK_ROUNDS if quick else ROUNDS,
              "seconds of a run": seconds, "settings": json.loads(settings) or "as shipped",
              "throughput, two daemons / one": rounded(ratio(results, "Gbit/s", TWO_DAEMONS, ONE_DAEMON)),
              **_medians(results)}
    return ratio(results, "busiest, ns per byte", ONE_DAEMON, TWO_DAEMONS), detail
