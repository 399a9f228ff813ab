"""Targets of the core alone: instructions per packet, which other programs do not influence, and the cost of many
peers."""

import json
import os
import pathlib
import re
import subprocess

from lab import binary, median
from lab.netns import run

from . import MISSING, option, require, target
from ._builds import ROOT
from ._duel import rounded
from .house import CPU, REPETITIONS

RECORD = ROOT / "bench" / "instructions.json"
WARM, ALL = 4_000, 12_000  # packets of two runs; their difference counts, in which the windows have grown
# OpenSSL's for a processor with AES-NI and AVX, whatever more this one has. ipsec-mb asks the processor, which is the
# one that valgrind shows.
CIPHERS = {"OPENSSL_ia32cap": ":0"}
MOST_OF_A_PEER, MOST_OF_A_FLOW = 16 * 1024, 1024  # bytes


def _instructions(packets):
    """(instructions executed when `packets` packets are sent through both cores, packets that arrive, kind of build)"""
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", binary("instructions"), str(packets)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, **CIPHERS})
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not collected:
        raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr[-2000:]}")
    arrived, build = done.stdout.split()
    return int(collected.group(1)), int(arrived), build


def _tools():
    """Versions outside the project on which the count depends."""
    fast = re.search(r"libIPSec_MB\S+ => (\S+)", run("ldd", binary("instructions")))
    return {"compiler": run("c++", "--version").splitlines()[0], "openssl": run("openssl", "version").strip(),
            "ipsec-mb": pathlib.Path(fast[1]).resolve().name if fast else "none",
            "valgrind": run("valgrind", "--version").strip()}


@target("speed.7", "instructions of a 1,400-byte packet through both cores: by how much they differ from the value "
        f"that {RECORD.relative_to(ROOT)} records", "ratio", at_most=0.03, programs=["instructions"],
        options=[option("--record", action="store_true", help="makes this the recorded value")])
def instructions(record):
    (few, first, build), (many, last, _) = _instructions(WARM), _instructions(ALL)
    if last - first != ALL - WARM:
        raise RuntimeError(f"{last - first} of {ALL - WARM} packets arrived")
    value = (many - few) / (ALL - WARM)
    detail = {"instructions": round(value), **_tools()}
    records = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    if record:
        records[build] = detail
        RECORD.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    if build not in records:
        detail[MISSING] = f"a recorded value of a program that is {build}: scripts/target speed.7 --record"
        return None, detail
    detail = {"build": build, **detail, "recorded": records[build]}
    recorded = records[build]
    require(detail, detail["ipsec-mb"] == recorded["ipsec-mb"], "the cipher's library of which the value was recorded")
    return abs(value / recorded["instructions"] - 1), detail


def _of_peers(wanted, repetitions):
    """The output of bench_peers for a kind of measurement."""
    entries = json.loads(run("taskset", "--cpu-list", CPU, binary("bench_peers"), "--benchmark_format=json",
                             f"--benchmark_filter=^{wanted}", f"--benchmark_repetitions={repetitions}",
                             "--benchmark_enable_random_interleaving=true", "--benchmark_min_time=0.2",
                             timeout=1800))["benchmarks"]
    for entry in entries:
        if entry.get("error_occurred"):
            raise RuntimeError(f"{entry['run_name']}: {entry['error_message']}")
    return [entry for entry in entries if entry["run_type"] == "iteration"]


def _growth(wanted, few, repetitions):
    """{direction: {"ratio", "ns"}} of a packet's cost with 1,000 peers of 100 flows against `few`: (peers, flows)."""
    costs = {}
    for entry in _of_peers(wanted, repetitions):
        costs.setdefault(entry["run_name"], []).append(entry["ns/packet"])
    table = {}
    for direction in ("down", "up"):
        less, many = (median(costs[f"{wanted}/{direction}/peers:{peers}/flows:{flows}/manual_time"])
                      for peers, flows in (few, (1000, 100)))
        table[direction] = {"ratio": round(many / less, 6), f"{few[0]} of {few[1]} flows_ns": round(less, 1),
                            "1,000 peers_ns": round(many, 1)}
    return table


@target("speed.8", "cost of a packet at a concentrator that carries 100 flows of each of 1,000 peers, 8 packets of a "
        f"flow in turn / one flow of one: median of {REPETITIONS} repetitions in random order, the larger of both "
        f"directions; an idle peer takes at most {MOST_OF_A_PEER // 1024} KiB, a flow {MOST_OF_A_FLOW // 1024}",
        "ratio", at_most=1.15,
        programs=["bench_peers"], options=[option("--quick", action="store_true", help="one look, without a verdict")])
def many_flows(quick):
    table = _growth("spread", (1, 1), 1 if quick else REPETITIONS)
    memory = _of_peers("memory", 1)[0]
    bytes_of = {each: memory[f"bytes/{each}"] for each in ("peer", "flow")}
    detail = {"bytes": {each: rounded(size) for each, size in bytes_of.items()}, **table}
    for each, most in (("peer", MOST_OF_A_PEER), ("flow", MOST_OF_A_FLOW)):
        require(detail, bytes_of[each] <= most, f"{bytes_of[each]:.0f} bytes a {each}, at most {most} may be")
    return max(each["ratio"] for each in table.values()), detail


# speed.8 compares bursts with a stream. Each burst has its own ACK, tail protection and timers, a stream has these once
# for the data of many bursts. Here both sides carry the same bursts, and only the number of peers and flows differs.
@target("speed.8b", "the same for bursts of 8 packets, one in 200 ms of each peer, on the next of its 100 flows: cost "
        f"of a packet with 1,000 peers / with 10; median of {REPETITIONS} repetitions", "ratio", at_most=1.15,
        programs=["bench_peers"], options=[option("--quick", action="store_true", help="one look, without a verdict")])
def many_peers(quick):
    table = _growth("bursts", (10, 100), 1 if quick else REPETITIONS)
    return max(each["ratio"] for each in table.values()), table
