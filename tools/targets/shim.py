"""Targets of the ack shim in the lab, with real kernels (docs/performance.md)."""

import itertools
import json
import math
from statistics import median

from lab import binary, percentile
from lab.netns import run

from . import require, target
from ._flows import Completion
from ._shim_lab import LAB_PROGRAMS, RTT, ShimLab
from ._syn_flood import syn_flood

SEGMENT = 1385  # bytes of data in a full segment, with timestamps, in the lab's tunnel
REPEATS = 15
# The rows of T-RACKs on today's stacks: segments of a flow, and which of them are lost.
ROWS = {
    "the last of 10": (10, [9]),
    "the last 3 of 10": (10, [7, 8, 9]),
    "the last of 2": (2, [1]),
    "the only segment": (1, [0]),
    "all 4 of 4": (4, [0, 1, 2, 3]),
    "one in the middle of 10": (10, [4]),
}
DIRECTIONS = ["down", "up"]


def _ms(seconds):
    return round(seconds * 1000, 1)


def halves_apart(times):
    """{percentile: that of every second time / that of the others}: by how much a ratio of two such series differs from
    1 by chance."""
    return {name: percentile(times[::2], share) / percentile(times[1::2], share)
            for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99))}


def require_lost(detail, row, dropped, lost):
    """Checks that every flow of a row lost its segments. Without loss the shim has nothing to do, and every time is
    short."""
    wanted = REPEATS * len(lost)
    require(detail, dropped >= wanted, f"{row}: {dropped} segments were lost, not {wanted}")


@target("shim.1", "the worst of six patterns of loss beyond the far gateway, both directions: median FCT, connection "
        "included, in round trips of the whole path (10 ms)", "RTT", at_most=5, programs=LAB_PROGRAMS)
def lost_segments():
    worst, table, detail = 0, {}, {"flows per row": REPEATS}
    for direction in DIRECTIONS:
        with ShimLab(direction) as lab:
            for (name, (segments, lost)), enabled in itertools.product(ROWS.items(), [False, True]):
                lab.lab.switch_ack_shim(enabled)
                lab.lose_segments(lost)
                done, failed = lab.run(segments * SEGMENT, REPEATS)
                if failed:
                    raise RuntimeError(f"{failed} flows did not end well: {direction}, {name}, shim {enabled}")
                require_lost(detail, f"{direction}, {name}, shim {enabled}", lab.lost_segments(), lost)
                times = [flow.from_connect for flow in done]
                row = table.setdefault(f"{direction}: {name}", {})
                row["with" if enabled else "without"] = [_ms(median(times)), _ms(max(times))]
                if enabled:
                    row["fired"] = {key: value["fired"] for key, value in lab.actuators().items()}
                    worst = max(worst, median(times) / RTT)
    return worst, detail | {"median and largest FCT, ms": table}


JITTER, JITTER_FLOWS, JITTER_BYTES = 0.2, 1000, 14_600


@target("shim.1b", "flows of 14.6 KB on a loss-free path with 20 % RTT jitter: retransmissions by senders and by the "
        "shim, per flow, worse direction", "share", at_most=0.01, programs=LAB_PROGRAMS)
def jitter():
    worst, detail = 0, {}
    for direction in DIRECTIONS:
        with ShimLab(direction, JITTER, parallel=4) as lab:
            for enabled in (False, True):
                lab.lab.switch_ack_shim(enabled)
                before = lab.repeated()
                done, failed = lab.run(JITTER_BYTES, JITTER_FLOWS)
                actuators = lab.actuators() if enabled else {}
                spurious = sum(counts["fired"] for counts in actuators.values())
                share = (lab.repeated() - before + spurious + failed) / JITTER_FLOWS
                times = [flow.from_connect for flow in done]
                detail[f"{direction}, shim {'on' if enabled else 'off'}"] = {
                    "share": share, "p50_ms": _ms(median(times)), "p99_ms": _ms(percentile(times, 0.99)),
                    "actuators": actuators}
                if enabled:
                    worst = max(worst, share)
    return worst, {"flows": JITTER_FLOWS, **detail}


LOSS, LOSSY_FLOWS, BLOCKS, PARALLEL = 0.02, 1500, 3, 16  # flows in each direction
SENDERS = [dict(zip(("congestion_control", "sack", "timestamps", "tlp"), values))
           for values in itertools.product(("cubic", "bbr"), (True, False), (True, False), (True, False))]


def _name(sender):
    marks = ["sack", "timestamps", "tlp"]
    return " ".join([sender["congestion_control"], *[("+" if sender[mark] else "-") + mark for mark in marks]])


def _lossy_flows(lab, sender, flows=LOSSY_FLOWS):
    """{shim on: flows with and without the shim, in turns}. One that failed never ends."""
    lab.use(**sender)
    runs = {False: [], True: []}
    for enabled in [False, True] * BLOCKS:
        lab.lose(0)
        lab.lab.switch_ack_shim(enabled)
        if lab.run(1400, 5)[1]:
            raise RuntimeError("a flow failed without any loss")
        lab.lose(LOSS)
        done, failed = lab.run(JITTER_BYTES, flows // BLOCKS)
        runs[enabled] += done + [Completion(math.inf, math.inf)] * failed
    return runs


@target("shim.2", "flows of 14.6 KB with 2 % loss each way on the hop to the receiver: reduction of the p99 FCT of "
        "the data (the connection is open), smallest of 16 kinds of Linux senders and both directions", "share",
        at_least=0.8, programs=LAB_PROGRAMS)
def lossy_hop(flows=LOSSY_FLOWS, senders=None, parallel=PARALLEL):
    smallest, failures, table = 1, 0, {}
    for direction in DIRECTIONS:
        with ShimLab(direction, parallel=parallel) as lab:
            for sender in senders or SENDERS:
                runs = _lossy_flows(lab, sender, flows)
                failed = {enabled: sum(math.isinf(flow.from_send) for flow in runs[enabled]) for enabled in runs}
                failures += sum(failed.values())
                name, row = f"{direction}: {_name(sender)}", {}
                for what in ("from_send", "from_connect"):
                    times = {enabled: [getattr(flow, what) for flow in runs[enabled]] for enabled in (False, True)}
                    p50, p99 = ([percentile(times[enabled], share) for enabled in (False, True)]
                                for share in (0.5, 0.99))
                    if math.inf in p99:
                        raise RuntimeError(f"{name}: no p99, so many flows failed: {failed[False]} without the shim, "
                                           f"{failed[True]} with it")
                    row[what] = {"p50_ms": list(map(_ms, p50)), "p99_ms": list(map(_ms, p99)),
                                 "reduction": round(1 - p99[1] / p99[0], 4),
                                 "control": halves_apart(list(filter(math.isfinite, times[False])))}
                    if what == "from_send":
                        smallest = min(smallest, 1 - p99[1] / p99[0])
                table[name] = row
    detail = {"flows": f"{len(DIRECTIONS) * flows} of each sender, half in each direction, without and as many with",
              "failed": failures, "without and with": table}
    require(detail, not failures, f"{failures} flows failed")
    return smallest, detail


def _costs():
    """({benchmark: median of its runs, ns}, bytes of a flow's record) of bench/ackshim_bench.cc."""
    done = json.loads(run(binary("bench_ackshim"), "--benchmark_format=json", "--benchmark_repetitions=5",
                          "--benchmark_enable_random_interleaving=true", timeout=600))
    costs, flow_bytes = {}, 0
    for entry in done["benchmarks"]:
        if entry.get("run_type") == "iteration":
            cost = entry.get("nsPerPacket", entry["cpu_time"])
            costs.setdefault(entry["name"].removesuffix("/manual_time"), []).append(cost)
            flow_bytes = max(flow_bytes, int(entry.get("bytesPerFlow", 0)))
    return {name: round(median(values), 1) for name, values in costs.items()}, flow_bytes


@target("shim.5", "cost of the shim per packet with 100,000 flows, popular and rare ones mixed, one packet at a time "
        "as the daemon gives them: median of 5 runs", "ns", at_most=150, programs=["bench_ackshim"])
def cost():
    medians, flow_bytes = _costs()
    return medians["Mix"], {"bytes per flow": flow_bytes, "flows": 100_000,
                            "all, ns (see bench/ackshim_bench.cc)": medians}


@target("shim.5b", "the same in cache misses, each of which waits for the one before, in as much memory as the flows "
        "take: medians of 5 runs that take turns", "ratio", at_most=2.0, programs=["bench_ackshim"])
def cost_in_misses():
    medians, flow_bytes = _costs()
    return medians["Mix"] / medians["Miss"], {
        "bytes per flow": flow_bytes, "flows": 100_000, "all, ns (see bench/ackshim_bench.cc)": medians}


target("shim.6", "live flows lost, or forgotten by a shim, under 1,000,000 SYNs of made-up sources through both "
       "gateways, plus gateways that grow by more than 16 MiB", "flows", at_most=0, programs=LAB_PROGRAMS)(syn_flood)
