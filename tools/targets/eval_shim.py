"""The worst cost of the ack shim: its worst ratio in all experiments."""

from statistics import median

from . import always, option, require, target
from ._builds import ROOT, build
from ._duel import rounded
from ._shim_lab import LAB_PROGRAMS
from ._shim_ratios import lab_rows, rack_ratios
from .eval import QUICK, RECORDED, run_says

MOST = 1.02
SHIM, WITHOUT = "shim", "off"  # the variants of evaluation/experiments/tracks-*.yaml
SHARES = ("p50", "p99")
LAB = option("--lab", always, action="store_true",
             help="with shim.2 and shim.3, of real kernels: more than an hour, as root")


def share_of(report):
    """Which of SHARES a report is about, by its name: p99 and p99_small are about the p99."""
    return next((share for share in SHARES if report.split("_")[0] == share), None)


def experiments_rows(found, names):
    """({share: {row: (on / off, its interval)}} of what `evaluation/run ratios` found, what `names` lack of it)."""
    rows, seen, lacking = {share: {} for share in SHARES}, set(), []
    for entry in found:
        share = share_of(entry["report"])
        if entry["experiment"] not in names or (entry["variant"], entry["against"]) != (SHIM, WITHOUT) or not share:
            continue
        place = ", ".join(f"{axis} {label}" for axis, label in entry["point"].items())
        row = ", ".join(filter(None, [entry["experiment"], place, entry["report"]]))
        seen.add((entry["experiment"], share))
        if entry["ratio"] is None:
            lacking.append(f"{row} is not defined")
        else:
            rows[share][row] = entry["ratio"], entry["interval"]
    lacking += [f"{name} has no {share}" for name in names for share in SHARES if (name, share) not in seen]
    return rows, lacking


def judged(rows):
    """(the worst ratio of all, detail) of {share: {row: (ratio, interval or None)}}."""
    detail, worst = {}, {}
    for share, each in rows.items():
        ordered = sorted(each.items(), key=lambda item: item[1][0], reverse=True)
        told = {row: {"ratio": rounded(ratio), **({"95 % interval": rounded(half)} if half is not None else {})}
                for row, (ratio, half) in ordered}
        above = {row: told[row] for row, (ratio, _) in ordered if ratio > MOST}
        sure = [row for row, (ratio, half) in ordered if half is not None and ratio - half > MOST]
        detail[share] = {"rows": len(each), "worst": dict(list(told.items())[:1]), f"above {MOST}": above,
                         f"surely above {MOST}, with the whole interval": sure}
        if ordered:
            worst[share] = ordered[0][1][0]
    return max(worst.values()), {"worst by share": {share: rounded(ratio) for share, ratio in worst.items()}, **detail}


def _lab_shares(rows):
    """{share: {row: (ratio, None)}} of rows whose names end with their share, "p99_ms"."""
    return {share: {row: (ratio, None) for row, ratio in rows.items() if row.endswith(f"{share}_ms")}
            for share in SHARES}


@target("eval.6", "with the shim on / off: the worst ratio of the p50 or p99 of flows, over every point of every "
        "experiment of T-RACKs (mean of seeds in pairs) and the rows of shim.4 (of all seeds), shim.2 and shim.3 "
        "(median of 3)", "ratio", at_most=MOST, options=[*QUICK, RECORDED, LAB])
def harmless(quick, recorded, lab):
    names = sorted(file.stem for file in (ROOT / "evaluation" / "experiments").glob("tracks-*.yaml"))
    found, detail = run_says(["ratios"], names, quick, recorded)
    rows, lacking = experiments_rows(found, names)
    if recorded:
        detail["measured now"] = "the rows of shim.4" + (", shim.2 and shim.3" if lab else "")
    for what in lacking:
        require(detail, False, what)
    if lab:
        build(ROOT, [*LAB_PROGRAMS, "lwip_peer"])
        runs, control, failed = lab_rows(quick)
        others = {row: median(each) for row, each in runs.items()}
        detail["two halves of the flows without the shim differ by, worst first"] = [
            rounded(each) for each in sorted((median(each) for each in control.values()), reverse=True)[:5]]
    else:
        others, faults = rack_ratios()
        failed = {"shim.4": [faults]}
    for share, each in _lab_shares(others).items():
        rows[share] |= each
    require(detail, not any(map(any, failed.values())), f"flows that failed: {failed}")
    require(detail, lab, "without shim.2 and shim.3, of real kernels: --lab")
    value, told = judged(rows)
    return value, told | detail
