"""python3 -m crosscheck.linux [OPTION...]: see evaluation/linux/compare."""

import os
import random
import sys

from targets._builds import ROOT, build
from targets._simulate import simulate

from . import linux_lab as lab
from .command import parse, report
from .compare import compare
from .linux_cases import CASES, EXPLAINED

DOCUMENT = ROOT / "evaluation" / "linux" / "README.md"
PATHS = 40  # at a time


def options_of(case):
    """{"loss": 0.01, ...} of a case's arguments for both programs and for Braid's alone."""
    words = [*case.arguments, *case.ours]
    return {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2])}


def _lossy_paths(cases, seeds):
    """All flows of all cases at once, each on a path of its own."""
    plan = [(case, seed, options_of(case)) for case in cases for seed in range(1, 1 + (seeds or case.seeds))]
    if not plan:
        return {}
    first = plan[0][2]
    if any(options[name] != first[name] for _, _, options in plan for name in ("rate", "rtt", "queue", "seconds")):
        raise ValueError("the lossy paths of one run are alike but for their loss")
    with lab.Paths(len(plan), first["rate"], first["rtt"], first["queue"]) as paths:
        pairs = []
        for i, (_, _, options) in enumerate(plan):
            paths.use(options["control"])
            pairs += paths.connect(i)
        for i, (_, _, options) in enumerate(plan):
            paths.lose(i, options["loss"])
        arrived = lab.bulk(pairs, first["seconds"])
        runs = {case.name: [] for case in cases}
        for (case, seed, _), (sender, _), size in zip(plan, pairs, arrived):
            runs[case.name].append({"seed": seed, "goodput_mbps": size * 8e-6 / first["seconds"],
                                    "timeouts": lab.timeouts_of(sender)})
        lab.close(pairs)
    return runs


def _timeouts(case, seeds):
    """The flows of all seeds, one after the other on each of many paths. Connections are opened before any loss."""
    options, seeds = options_of(case), seeds or case.seeds
    flows = options["flows"] * seeds
    if flows % PATHS:
        raise ValueError(f"{case.name}: {flows} flows are not shared evenly by {PATHS} paths")
    with lab.Paths(PATHS, options["rate"], options["rtt"], options["queue"]) as paths:
        paths.use(recovery=options["recovery"])
        pairs = lab.in_threads(lambda i: paths.connect(i, flows // PATHS), range(PATHS))
        for i in range(PATHS):
            paths.lose(i, options["loss"])
        late = lab.in_threads(lambda own: [lab.flow_times_out(pair, options["bytes"]) for pair in own], pairs)
        for own in pairs:
            lab.close(own)
    every = [flow for own in late for flow in own]
    parts = [every[i::seeds] for i in range(seeds)]
    return [{"seed": seed, "timeout_share": sum(part) / len(part), "timeouts": sum(part)}
            for seed, part in enumerate(parts, 1)]


def _incasts(case, seeds):
    options, runs = options_of(case), []
    with lab.Port(options["senders"], options["rate"], options["rtt"], options["queue"]) as port:
        port.use(options["control"])
        for seed in range(1, 1 + (seeds or case.seeds)):
            draw = random.Random(seed)
            pairs = [pair for i in range(options["senders"]) for pair in port.connect(i)]
            offsets = [draw.uniform(0, options["spread"] * 1e-6) for _ in pairs]
            seconds, timeouts = lab.incast(pairs, options["bytes"], offsets)
            lab.close(pairs)
            runs.append({"seed": seed, "completion_ms": seconds * 1e3, "timeouts": timeouts})
    return runs


def run_kernel(cases, seeds=None):
    """{case's name: its runs by seed}."""
    with lab.without_hystart():
        runs = _lossy_paths([case for case in cases if case.experiment == "lossy-path"], seeds)
        for case in cases:
            if case.experiment == "timeouts":
                runs[case.name] = _timeouts(case, seeds)
            elif case.experiment == "incast":
                runs[case.name] = _incasts(case, seeds)
    return runs


def run_model(cases, seeds=None):
    """{case's name: its runs by seed} of braid-sim tcp."""
    keys = {case.name: [(case.name, seed) for seed in range(1, 1 + (seeds or case.seeds))] for case in cases}
    runs = simulate("braid-sim tcp", {(case.name, seed): case.command(seed, case.ours) for case in cases
                                      for _, seed in keys[case.name]})
    return {name: [runs[key] for key in keys[name]] for name in keys}


def main():
    options, cases = parse("evaluation/linux/compare", "Runs the same experiments with Braid's model of TCP and with "
                           "this machine's kernel.", CASES, DOCUMENT)
    if "BRAID_BIN" not in os.environ:
        build(ROOT, ["braid-sim", "linkemu"])
    kernel = run_kernel(cases, options.seeds)
    result = compare(cases, run_model(cases, options.seeds), kernel, EXPLAINED)
    report(result, "Linux", DOCUMENT, options.write)


if __name__ == "__main__":
    sys.exit(main())
