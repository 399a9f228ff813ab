"""Targets of the ack shim's help for bursts: persistent connections, and the worst cost of the shim."""

import concurrent.futures
import itertools
import random
import time

from lab import Lab, median, percentile
from lab.measure import difference
from lab.requests import ask, connect

from . import require, target
from ._duel import rounded
from ._shim_lab import LAB_PROGRAMS, ShimLab
from ._shim_ratios import QUICK_FLOWS, add, lab_rows, lossy_hop_ratios
from .order import QUICK, ROUNDS, TOOLS
from .shim import JITTER, LOSS, SENDERS
from .shim_stacks import large_flows_alone

SERVER, PORT = Lab.server_addresses()[0], 7100
CONNECTIONS, ANSWERS, QUICK_ANSWERS = 8, 400, 50  # answers of each connection in a run
SMALLEST, LARGEST = 3_000, 40_000  # bytes of an answer
PAUSE = 0.1  # most seconds between an answer and the next question
MOST_COPIES = 0.001
TO_CLIENT = "to host"


def _asks(handle, seed, count):
    """Seconds of each answer on one connection."""
    source, room, times = random.Random(seed), bytearray(LARGEST), []
    for _ in range(count):
        time.sleep(source.uniform(0, PAUSE))
        times.append(ask(handle, source.randint(SMALLEST, LARGEST), room))
    return times


def ask_persistently(lab, seed, count):
    """Seconds of all answers on eight new connections that stay. Whatever goes wrong on one raises."""
    handles = [lab.lab.client.inside(connect, SERVER, PORT) for _ in range(CONNECTIONS)]
    try:
        with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
            done = [pool.submit(_asks, handle, f"{seed}.{number}", count) for number, handle in enumerate(handles)]
            return [each for one in done for each in one.result()]
    finally:
        for handle in handles:
            handle.close()


def serve_answers(lab):
    lab.lab.start(lab.lab.server, "requests", ["env", f"PYTHONPATH={TOOLS}", "python3", "-m", "lab.requests", SERVER,
                                               PORT])
    lab.lab.wait_for_line("requests", "ready")


def _helped(rounds, count, way=None):
    """[{"without", "with", "ratio"}] of the p99 with 2 % loss in the client's LAN. `way`: of ShimLab.lose()."""
    runs = []
    with ShimLab("down") as lab:
        serve_answers(lab)
        lab.lose(LOSS, way)
        for number in range(rounds):
            p99 = {}
            for enabled in (False, True)[::-1 if number % 2 else 1]:
                lab.lab.switch_ack_shim(enabled)
                times = ask_persistently(lab, number, count)
                p99[enabled] = percentile(times, 0.99)
                if enabled:
                    fired = lab.actuators()
            runs.append({"without ms": round(p99[False] * 1e3, 1), "with ms": round(p99[True] * 1e3, 1),
                         "ratio": p99[True] / p99[False], "fired": fired})
    return runs


def _copies(rounds, count):
    """[{"copies", "of the shim", "packets", "share"}]: packets sent twice without any loss, by the shim or (because of
    it) by a host, as a share of both hosts' packets."""
    runs = []
    with ShimLab("down", JITTER) as lab:
        serve_answers(lab)
        for number in range(rounds):
            lab.lab.switch_ack_shim(False)
            lab.lab.switch_ack_shim(True)
            before = [host.counters() for host in lab.hosts]
            ask_persistently(lab, number, count)
            grown = [difference(host.counters(), counts) for host, counts in zip(lab.hosts, before)]
            packets, repeated, refused = (sum(each[name] for each in grown) for name in (
                "Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.TCPDSACKOldSent"))
            fired = sum(counts["fired"] for counts in lab.actuators().values())
            copies = fired + repeated + refused
            runs.append({"copies": copies, "of the shim": fired, "packets": packets, "share": copies / packets})
    return runs


@target("order.4", "2 % loss in the client's LAN, eight persistent connections, answers of 3 to 40 KB: p99 with the "
        f"shim / without, median of 3 in turns; on a loss-free path with {JITTER:.0%} jitter at most {MOST_COPIES} of "
        "all packets are copies, of the shim or of a host", "ratio", at_most=0.45, programs=LAB_PROGRAMS,
        options=[QUICK])
def persistent(quick):
    rounds, count = (1, QUICK_ANSWERS) if quick else (ROUNDS, ANSWERS)
    runs, loss_free = _helped(rounds, count), _copies(rounds, count)
    copies = median(run["share"] for run in loss_free)
    detail = {"runs": runs, "loss-free with jitter": loss_free, "answers of a run": CONNECTIONS * count}
    require(detail, copies <= MOST_COPIES, f"{copies:.4f} of all packets are spurious, at most {MOST_COPIES} may be")
    return median(run["ratio"] for run in runs), detail


# 2 % of the questions are also lost. No gateway has seen these, so they wait for the client's own timer of 200 ms. So a
# p99 of both directions is never below that.
@target("order.4b", "the same with loss on the way to the client alone: p99 with the shim / without, median of 3 in "
        "turns", "ratio", at_most=0.45, programs=LAB_PROGRAMS, options=[QUICK])
def persistent_answers(quick):
    rounds, count = (1, QUICK_ANSWERS) if quick else (ROUNDS, ANSWERS)
    detail = {"runs": _helped(rounds, count, TO_CLIENT), "answers of a run": CONNECTIONS * count}
    return median(run["ratio"] for run in detail["runs"]), detail


SHOWN = 12


def _judged(runs, control, failed):
    """(largest median, detail) of {row: its ratios}, and of those of the halves without the shim."""
    medians = {name: median(each) for name, each in runs.items()}
    worst = sorted(medians, key=medians.get, reverse=True)
    off = sorted((median(each) for each in control.values()), reverse=True)
    detail = {"rows": len(medians), "above 1.05": sum(ratio > 1.05 for ratio in medians.values()), "failed": failed,
              "control, one half of the flows without the shim / the other": {
                  "rows": len(off), "above 1.05": sum(ratio > 1.05 for ratio in off),
                  "worst": list(map(rounded, off[:SHOWN]))},
              "worst": {name: {"median": rounded(medians[name]), "runs": list(map(rounded, runs[name]))}
                        for name in worst[:SHOWN]},
              "all": {name: list(map(rounded, each)) for name, each in runs.items()}}
    return medians[worst[0]], detail


@target("order.6", "the shim's worst ratio of p50 and p99, on / off, over all rows of shim.2, shim.3 and shim.4, each "
        "the median of 3 (shim.4 in virtual time: once)", "ratio", at_most=1.05,
        programs=[*LAB_PROGRAMS, "lwip_peer", "braid-sim"], options=[QUICK])
def harmless(quick):
    runs, control, failed = lab_rows(quick)
    worst, detail = _judged(runs, control, failed)
    require(detail, not any(itertools.chain(*failed.values())), f"flows that failed: {failed}")
    return worst, detail


# With 16 flows at a time the link is full, and flows that end sooner increase the load. So the medians would be worse
# with the shim because of its gains. Here the load is the same with and without the shim.
FEW, FEW_FLOWS = 2, 600
FEW_SENDERS = [sender for sender in SENDERS if sender["timestamps"] and sender["tlp"]]


@target("order.6b", f"the same where flows do not fill the link: shim.2 with {FEW} flows at a time and Linux's "
        "timestamps and TLP, median of 3; flows of 1 MB of kernels and netstack, one at a time (p50: for a p99 they "
        "are too few)", "ratio", at_most=1.05, programs=[*LAB_PROGRAMS, "lwip_peer"], options=[QUICK])
def harmless_when_few(quick):
    runs, control, failed = {}, {}, {"14.6 KB": [], "1 MB": []}
    for _ in range(1 if quick else ROUNDS):
        count, senders = (QUICK_FLOWS, FEW_SENDERS[:1]) if quick else (FEW_FLOWS, FEW_SENDERS)
        ratios, halves, faults = lossy_hop_ratios(count, senders, FEW)
        failed["14.6 KB"].append(faults)
        add(runs, ratios)
        add(control, halves)
    large = {}
    if not quick:
        large, faults = large_flows_alone()
        failed["1 MB"].append(faults)
    for name, each in large.items():
        row = f"1 MB, {name}, p50_ms"
        runs[row] = [each["with"]["p50_ms"] / each["without"]["p50_ms"]]
        control[row] = [each["control"]["p50_ms"]]
    worst, detail = _judged(runs, control, failed)
    detail["1 MB, one at a time"] = large
    require(detail, not any(itertools.chain(*failed.values())), f"flows that failed: {failed}")
    return worst, detail
