"""Target of system faults: each system call that the daemon makes, at its start and in operation, is refused once, and
so is memory."""

import shutil

from lab import Lab, Link
from lab.faults import MEMORY, OTHERS, REFUSALS, SOME, Allocations, FaultLab, spread

from . import MISSING, option, target

LINKS = [Link("wifi", 50, 20), Link("lte", 30, 60)]
STARTS, RUNNING = 60, 30  # number of failing allocations, spread over all allocations of a start, or of some work


def _refuse_running(faults, quick):
    called = {}
    for gateway in faults.lab.gateways():
        called[gateway.name] = faults.calls_of(gateway)
        for call in called[gateway.name]:
            errors = REFUSALS.get(call, OTHERS)
            for error in errors[:1] if quick else errors:
                faults.refuse(gateway, call, error)
    return called


def _refuse_starts(faults, quick):
    found = faults.start_calls()
    for call, (before, count) in sorted(found.items()):
        errors = REFUSALS.get(call, OTHERS)
        for error in errors[:1] if quick else errors:
            for number in spread(count, 1 if quick else SOME):
                faults.refuse_at_start(call, error, before + 1 + number)
    return {call: count for call, (_, count) in found.items()}


def _starve(faults, quick):
    lab, edge = faults.lab, faults.lab.edge_gateway
    allocations = Allocations(lab.directory / "allocations")
    start = faults.starve_at_start(allocations, 0)
    for number in spread(start, 6 if quick else STARTS):
        faults.starve_at_start(allocations, 1 + number)
    edge.wrapper = allocations.words
    edge.start()
    edge.wait_up(subflows=2)
    allocations.order(0)
    faults.work(edge)
    work = allocations.seen()
    if not start or not work:
        raise RuntimeError("no allocation was counted: alloc_faults.so is not loaded")
    for number in spread(work, 3 if quick else RUNNING):
        faults.starve(edge, allocations, 1 + number)
    edge.stop()
    edge.wrapper = []
    return {"allocations of a start": start, "of some work": work}


@target("shield.7", "faults injected that ended the daemon, leaked, lost accepted data or left the host changed: each "
        "system call refused once with each errno, at the start and while a download runs; allocations", "faults",
        at_most=0, programs=["braidd", "braidctl", "linkemu", "alloc_faults"],
        options=[option("--quick", action="store_true",
                        help="one errno and one place of each call: a look, and no verdict")])
def faults(quick):
    if not shutil.which("strace"):
        return None, {MISSING: "strace"}
    with Lab(LINKS) as lab, FaultLab(lab) as each:
        detail = {"calls while running": _refuse_running(each, quick)}
        # the gateways that went through all these faults must still stop cleanly
        for gateway in lab.gateways():
            if gateway.stop() != 0 or each.left(gateway.namespace):
                each.problems.append(f"{gateway.name}: no clean end, left {each.left(gateway.namespace)}")
        lab.gateway.start()
        detail["calls of a start and end"] = _refuse_starts(each, quick)
        detail.update(_starve(each, quick))
        detail.update({"injected": each.refused.total(), "memory, which may end a daemon": MEMORY,
                       "problems": each.problems[:40]})
        if lacking := each.untested():
            detail[MISSING] = lacking
        return len(each.problems), detail
