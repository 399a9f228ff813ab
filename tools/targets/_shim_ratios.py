"""The effect of the ack shim on the p50 and the p99 of flow times, as ratios with / without it: rows of shim.2, shim.3
and shim.4."""

from lab import percentile

from .order import ROUNDS
from .shim import SENDERS, lossy_hop
from .shim_racks import rounds_of_all
from .shim_stacks import stacks

QUICK_FLOWS = 150
SHARES = {"p50_ms": 0.5, "p99_ms": 0.99}


def _columns(rows):
    return ({name: each[index] for name, each in rows.items()} for index in (0, 1))


def lossy_hop_ratios(*arguments):
    """({row: on / off}, {row: off / off}, flows that failed) of shim.2 with these arguments of lossy_hop()."""
    _, detail = lossy_hop(*arguments)
    rows = {f"shim.2, {name}, {since}, {key}": (each[key][1] / each[key][0], each["control"][key])
            for name, row in detail["without and with"].items() for since, each in row.items() for key in SHARES}
    return *_columns(rows), detail["failed"]


def stack_ratios():
    """({row: on / off}, {row: off / off}, flows with a fault) of shim.3."""
    faults, detail = stacks()
    rows = {f"shim.3, {name}, {key}": (row["with"][key] / row["without"][key], row["control"][key])
            for name, row in detail.items() if isinstance(row, dict) and "ratio" in row for key in SHARES}
    return *_columns(rows), faults


def rack_ratios():
    """({row: on / off}, flows that did not end) of shim.4, flows of all seeds pooled; its handshakes in the round and
    its jitter, too."""
    done = rounds_of_all()
    ratios, incomplete = {}, 0
    for (case, flows, name, shim), runs in done.items():
        if shim != "sender":
            continue
        incomplete += sum(run["incomplete"] for run in runs)
        off, on = ([t for run in each for t in run["times"]] for each in (done[case, flows, name, "off"], runs))
        ratios |= {f"shim.4, {case}, {flows} flows, {name}, {key}": percentile(on, share) / percentile(off, share)
                   for key, share in SHARES.items()}
    return ratios, incomplete


def add(table, ratios):
    """Appends {row: ratio} to {row: [ratio]}."""
    for row, ratio in ratios.items():
        table.setdefault(row, []).append(ratio)


def lab_rows(quick):
    """({row: [on / off of each round]}, {row: [off / off]}, {target: [flows that failed]}) of shim.2 and shim.3, and
    of shim.4 once. `quick`: one round, one kind of sender, without shim.3."""
    runs, control, failed = {}, {}, {"shim.2": [], "shim.3": [], "shim.4": []}
    ratios, faults = rack_ratios()
    failed["shim.4"].append(faults)
    add(runs, ratios)
    for _ in range(1 if quick else ROUNDS):
        measured = {"shim.2": lossy_hop_ratios(QUICK_FLOWS, SENDERS[:1]) if quick else lossy_hop_ratios()}
        if not quick:
            measured["shim.3"] = stack_ratios()
        for name, (ratios, halves, faults) in measured.items():
            failed[name].append(faults)
            add(runs, ratios)
            add(control, halves)
    return runs, control, failed
