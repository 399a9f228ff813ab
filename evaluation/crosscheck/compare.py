"""Computes the differences between the results of both programs."""

import math
from statistics import fmean

from runner.samples import interval

from .cases import EXPLAINED


def reason_for(case, figure, explained=None):
    """The known reason why that figure of a case differs, if any."""
    for (beginning, name), reason in (EXPLAINED if explained is None else explained).items():
        if case.name.startswith(beginning) and name == figure:
            return reason
    return None


def difference(ours, theirs):
    """The difference of two means, relative to them."""
    if ours == theirs:
        return 0.0
    return ours / theirs - 1 if theirs else math.inf


def pair_of(case, figure, ours, theirs, explained=None):
    """One figure of a case: the means over the seeds with half the widths of their 95 % intervals, the difference."""
    values = [[run[figure] for run in runs] for runs in (ours, theirs)]
    means = [fmean(each) for each in values]
    pair = {"case": case.name, "figure": figure, "seeds": len(ours), "ours": means[0], "theirs": means[1],
            "ours_interval": interval(values[0]), "theirs_interval": interval(values[1]),
            "difference": difference(*means)}
    reason = reason_for(case, figure, explained)
    return {**pair, "explained": reason} if reason else pair


def flow_by_flow(ours, theirs):
    """The mean distance of one flow's goodput in both programs, as a share of the mean goodput."""
    both = [(a, b) for one, other in zip(ours, theirs) for a, b in zip(one["goodput_mbps"], other["goodput_mbps"])]
    return fmean(abs(a - b) for a, b in both) / fmean(b for _, b in both)


def compare(cases, ours, theirs, explained=None):
    """{"worst", "pairs", ...} of {case's name: its runs by seed} from each program. `worst` is over the pairs that
    nothing explains; None without any. Throws ValueError for runs that are no result."""
    pairs, flows, timeouts = [], {}, {}
    for case in cases:
        runs = ours[case.name], theirs[case.name]
        if len(runs[0]) != len(runs[1]) or not runs[0]:
            raise ValueError(f"{case.name}: {len(runs[0])} runs of ours, {len(runs[1])} of the other's")
        for run in (*runs[0], *runs[1]):
            if run.get("incomplete"):
                raise ValueError(f"{case.name}: flows that never ended: {run}")
        pairs += [pair_of(case, figure, *runs, explained) for figure in case.figures]
        if case.has_routes:
            flows[case.name] = flow_by_flow(*runs)
        timeouts[case.name] = [sum(run.get("timeouts", 0) for run in each) for each in runs]
    counted = [abs(pair["difference"]) for pair in pairs if "explained" not in pair]
    return {"worst": max(counted, default=None), "pairs": pairs, "flow_by_flow": flows, "timeouts": timeouts}
