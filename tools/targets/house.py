"""Targets of a rebuilding that changes nothing outside: the same datagrams, at the same cost, however many peers."""

import concurrent.futures
import json
import pathlib
import re
import subprocess

from lab import binary, median
from lab.netns import run

from . import at_least, option, target
from ._builds import build, clone_of, full_hash

# The last commit before the rooms of the core were rebuilt: what leaves the gateways must stay as it was there. A
# change that is meant to alter it names its own baseline.
BASELINE = "0e360d4cd8076b9b86061880edbde7cc61514dac"
# The last commit before names, folders and comments were made the field's.
BEFORE_RENAMING = "cb4d03a00fc09a27efc2fb6e2a3bb2042fe707a1"
PROCESSES = 2
CHAOS_SEEDS, CHAOS_CHUNK = 300, 15  # seeds in all, and of one process
MOST_NAMED = 40  # differing runs that the detail names
PAIRS, LEAST_PAIRS = 9, 7  # runs of each side of a comparison of costs
REPETITIONS = 9
CPU = 0  # that both sides of a comparison of costs run on


class Group:
    """A group of braid-sim's experiments, the option that names their variants, and the arguments of a short run of any
    of them."""

    def __init__(self, name, flag, variants, arguments):
        self.name = name
        self._flag = flag
        self._variants = variants
        self._arguments = arguments

    def experiments(self, folder):
        """The names of its experiments, as its help lists them."""
        text = subprocess.run([*self._program(folder), "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        return re.findall(r"^\s+([a-z][a-z-]*): ", text.partition("one of:")[2].partition("\n\n")[0], re.MULTILINE)

    def runs(self, folder):
        """{(group, experiment, variant): words of the command line} with the programs of that folder."""
        return {(self.name, experiment, variant):
                [*self._program(folder), experiment, "--seed", "7", self._flag, variant, *self._arguments.split()]
                for experiment in self.experiments(folder) for variant in self._variants}

    def _program(self, folder):
        """The words with which its command lines begin."""
        program = folder / "braid-sim"
        return [program, self.name] if program.exists() else [folder / f"sim_{self.name}"]


GROUPS = [
    Group("recovery", "--policy",
          ["none", "fuso", "cofuso", "redundant", "proactive", "reactive", "corrective", "adaptive"],
          "--flows 2 --senders 6"),
    Group("rate", "--controller",
          ["amp", "auto", "bbr", "cubic", "dcm", "dctcp", "lia", "newreno", "wan", "xmp"],
          "--rounds 1 --senders 3 --time 2 --seconds 2"),
    Group("racks", "--shim", ["off", "sender", "both"],
          "--rounds 1 --flows 20 --large --scheme dctcp --seconds 1"),
]
SIM_PROGRAMS = ["sim_chaos", "braid-sim"]


def _chaos(folder, first):
    """{("sim_chaos", seed): hash} of a chunk of seeds. A seed whose run did not come to an end is not in it."""
    words = [folder / "sim_chaos", "--verbose", "--seed", str(first), "--runs", str(CHAOS_CHUNK)]
    text = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    hashes = re.findall(r"^hash (\S+)$", text, re.MULTILINE)
    return {("sim_chaos", first + index): value for index, value in enumerate(hashes)}


def _experiment(key, words):
    """{key: hash}, or {} when the run fails or states no hash."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
    try:
        return {key: str(json.loads(done.stdout)["hash"])} if done.returncode == 0 else {}
    except (ValueError, KeyError):
        return {}


def _begin(pool, folder):
    """Begins every run of the programs in that folder. Returns the runs, and the futures of {run: hash}."""
    words = {key: words for group in GROUPS for key, words in group.runs(folder).items()}
    seeds = range(1, CHAOS_SEEDS + 1)
    futures = [pool.submit(_chaos, folder, first) for first in seeds[::CHAOS_CHUNK]]
    futures += [pool.submit(_experiment, key, each) for key, each in words.items()]
    return {*words, *(("sim_chaos", seed) for seed in seeds)}, futures


def _sim_programs(checkout):
    """SIM_PROGRAMS as that checkout has them: before there was braid-sim, each group was a program of its own."""
    if (checkout / "evaluation").is_dir():
        return SIM_PROGRAMS
    return ["sim_chaos", *[f"sim_{group.name}" for group in GROUPS]]


def _folder_of(program):
    """Where this checkout's programs are."""
    return pathlib.Path(binary(program)).parent


COMMIT_OPTION = option("--baseline", metavar="COMMIT", default=BASELINE,
                       help="what to compare with; by default the last commit before the rooms were rebuilt")
RENAMING_OPTION = option("--baseline", metavar="COMMIT", default=BEFORE_RENAMING,
                         help="what to compare with; by default the last commit before the renaming")
PAIRS_OPTION = option("--pairs", at_least(LEAST_PAIRS), type=int, default=PAIRS, help="how many runs of each side")


@target("house.1", "virtual runs whose hash of all datagrams differs from the baseline's, or that fail: "
        f"{CHAOS_SEEDS} chaos seeds, and each experiment of braid-sim with each policy, controller or shim", "runs",
        at_most=0, programs=SIM_PROGRAMS, options=[COMMIT_OPTION])
def same_datagrams(baseline):
    return _differing(baseline)


@target("house.1b", "the same since names, folders and comments were made the field's", "runs", at_most=0,
        programs=SIM_PROGRAMS, options=[RENAMING_OPTION])
def same_datagrams_after_renaming(baseline):
    return _differing(baseline)


def _differing(baseline):
    """How many runs differ from those of that commit, and the detail."""
    clone = clone_of(baseline)
    sides = {"baseline": build(clone, _sim_programs(clone)), "here": _folder_of("sim_chaos")}
    wanted, hashes = set(), {}
    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        begun = {side: _begin(pool, folder) for side, folder in sides.items()}
        for side, (runs, futures) in begun.items():
            wanted |= runs
            hashes[side] = {key: value for future in futures for key, value in future.result().items()}
    before, after = hashes["baseline"], hashes["here"]
    differing = sorted((key for key in wanted if key not in before or before[key] != after.get(key)), key=str)
    return len(differing), {
        "baseline": full_hash(baseline), "runs": len(wanted),
        "without a result": {side: sum(key not in found for key in wanted) for side, found in hashes.items()},
        "differing": [" ".join(map(str, key)) for key in differing[:MOST_NAMED]]}


def _packet_costs(program):
    """{case: CPU nanoseconds a packet} of one run of bench_dataplane on one CPU."""
    out = run("taskset", "--cpu-list", CPU, program, "--benchmark_filter=^throughput", "--benchmark_format=json",
              timeout=300)
    costs = {}
    for entry in json.loads(out)["benchmarks"]:
        # The benchmark's own figure is of real time, in which other programs run, too.
        costs[entry["run_name"]] = entry["ns/packet"] * entry["cpu_time"] / entry["real_time"]
    return costs


@target("house.2", "data-plane cost of a packet / the baseline's, CPU time: median of pairs of runs in turns, "
        "the largest of the cases of bench_dataplane", "ratio", at_most=1.02, programs=["bench_dataplane"],
        options=[COMMIT_OPTION, PAIRS_OPTION])
def packet_cost(baseline, pairs):
    return _cost_ratio(baseline, pairs)


@target("house.2b", "the same since names, folders and comments were made the field's", "ratio", at_most=1.01,
        programs=["bench_dataplane"], options=[RENAMING_OPTION, PAIRS_OPTION])
def packet_cost_after_renaming(baseline, pairs):
    return _cost_ratio(baseline, pairs)


def _cost_ratio(baseline, pairs):
    """The largest ratio of costs to those of that commit, and the detail."""
    sides = {"baseline": build(clone_of(baseline), ["bench_dataplane"]), "here": _folder_of("bench_dataplane")}
    costs = {side: [] for side in sides}
    for number in range(pairs):
        # Who begins changes, so that a machine which slows down or speeds up does so for both.
        for side in sorted(sides, reverse=number % 2 == 1):
            costs[side].append(_packet_costs(sides[side] / "bench_dataplane"))
    detail, ratios = {"baseline": full_hash(baseline), "pairs": pairs}, {}
    for case in costs["baseline"][0]:
        columns = {side: [each[case] for each in every] for side, every in costs.items()}
        each = [here / there for here, there in zip(columns["here"], columns["baseline"])]
        ratios[case] = median(each)
        detail[case] = {"ratio": round(ratios[case], 4),
                        "smallest and largest": [round(min(each), 3), round(max(each), 3)],
                        **{f"{side}_ns": round(median(column), 1) for side, column in columns.items()}}
    return max(ratios.values()), detail


@target("house.3", "cost of a packet at a concentrator with 1,000 peers up, 999 of them idle / with one peer: median "
        f"of {REPETITIONS} repetitions in random order, the larger of both directions", "ratio", at_most=1.10,
        programs=["bench_peers"])
def many_peers():
    done = json.loads(run("taskset", "--cpu-list", CPU, binary("bench_peers"), "--benchmark_format=json",
                          "--benchmark_filter=^carry",
                          f"--benchmark_repetitions={REPETITIONS}", "--benchmark_enable_random_interleaving=true",
                          "--benchmark_min_time=0.2", timeout=1200))
    costs = {}
    for entry in done["benchmarks"]:
        if entry.get("error_occurred"):
            raise RuntimeError(f"{entry['run_name']}: {entry['error_message']}")
        if entry["run_type"] == "iteration":
            costs.setdefault(entry["run_name"], []).append(entry["ns/packet"])
    detail, ratios = {}, []
    for direction in ("down", "up"):
        one, many = (median(costs[f"carry/{direction}/peers:{peers}/manual_time"]) for peers in (1, 1000))
        ratios.append(many / one)
        detail[direction] = {"ratio": round(many / one, 3), "one peer_ns": round(one, 1),
                             "1,000 peers_ns": round(many, 1)}
    return max(ratios), detail
