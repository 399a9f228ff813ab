"""Targets of proactive recovery: the experiments of FUSO and CoFUSO, rerun in virtual time (evaluation/README.md)."""

from . import _recovery_lab as lab
from . import target
from ._simulate import by_seed, require_complete, simulate

PROGRAMS = ["braid-sim"]
WITH_LAB = [*PROGRAMS, *lab.LAB_PROGRAMS]
POLICIES = ["none", "fuso", "cofuso", "adaptive", "redundant", "proactive", "reactive", "corrective"]
# In the paper, the testbed used only XOR, the simulations up to three parities (CoFUSO section 6.2.4).
TESTBED = ["--testbed"]
ONE_PARITY = ["--m-max", "1"]
LOSS_FREE = ["--loss", "0"]
# CoFUSO's hosts: a Linux sender does not retransmit before RTT + 200 ms. Braid's own timeout (RFC 9002) is shorter.
LINUX_RTO = ["--min-rto", "200"]
# Controllers of the warm tunnels (which are not in the papers): the product's and the papers'.
CONTROLLERS = {"default": [], "newreno": ["--controller", "newreno"]}


def _simulate(runs):
    return simulate("braid-sim recovery", runs)


def _by_seed(detail, runs, wanted, names, figure):
    """The value of a target: `figure` of its runs. The detail has the values with other seeds."""
    values = by_seed("braid-sim recovery", runs, {name: wanted[name] for name in names}, figure)
    require_complete(detail, {name: runs[name] for name in names})
    detail["the value by seed"] = [round(value, 4) for value in values]
    return values[0]


def _p99_ratio(one, other):
    """A function of runs."""
    return lambda runs: runs[one]["p99"] / runs[other]["p99"]


def _brief(figures):
    """The figures that belong in every detail; times in milliseconds."""
    brief = {f"{name}_ms": round(figures[name] * 1000, 2) for name in ("p50", "p95", "p99", "p999", "max", "mean")}
    for name in ("timeout_share", "recovery_share", "recovered_share", "useful_share", "extra_load", "incomplete"):
        if figures.get(name):
            brief[name] = round(figures[name], 4)
    return brief


def _briefs(runs):
    return {name: _brief(figures) for name, figures in runs.items()}


def _policies(experiment, *arguments, policies=POLICIES):
    return {policy: [experiment, "--policy", policy, *arguments] for policy in policies}


@target("recovery.1", "29 packets over 3 subflows of 50 ms RTT and windows of 10, each packet of the first subflow "
        "lost in turn: the worst FCT of cofuso / (RTT + serialisation)", "ratio", at_most=1.25, programs=PROGRAMS)
def targeted():
    wanted = _policies("targeted", *TESTBED)
    runs = _simulate(wanted)
    detail = {"fct / (RTT + serialisation), by the lost packet":
              {name: [round(value, 3) for value in run["fct_by_packet"]] for name, run in runs.items()},
              "loss_free": round(runs["cofuso"]["loss_free"], 4)}
    return _by_seed(detail, runs, wanted, ["cofuso"], lambda runs: max(runs["cofuso"]["fct_by_packet"])), detail


@target("recovery.1b", "the same, one of the 29 packets lost at random: share of adaptive's flows within 1.25 (RTT + "
        "serialisation)", "share", at_least=0.95, programs=PROGRAMS)
def targeted_random():
    wanted = _policies("targeted-random", "--flows", 1000, *TESTBED)
    runs = _simulate(wanted)
    detail = {"share, 1000 flows": {name: run["share_within_1.25"] for name, run in runs.items()}}
    return _by_seed(detail, runs, wanted, ["adaptive"], lambda runs: runs["adaptive"]["share_within_1.25"]), detail


@target("recovery.2", "web responses, each in a fresh tunnel of 3 subflows over two 50 ms paths with 2 % loss on one: "
        "p99 FCT of cofuso / p99 of none", "ratio", at_most=0.41, programs=WITH_LAB)
def responses():
    flows = ["--flows", 3000, *LINUX_RTO]
    wanted = _policies("responses", *flows)
    wanted["cofuso"] += TESTBED
    wanted["cofuso, up to 3 parities"] = ["responses", "--policy", "cofuso", *flows]
    wanted["none, loss-free"] = ["responses", "--policy", "none", *flows, *LOSS_FREE]
    wanted["none, Braid's own timeout"] = ["responses", "--policy", "none", "--flows", 3000]
    wanted["cofuso, Braid's own timeout"] = ["responses", "--policy", "cofuso", "--flows", 3000, *TESTBED]
    others = {"web servers' sizes": ["--sizes", "web_server", "--max-bytes", 1_000_000],
              "within the initial windows": ["--max-bytes", 40_000]}
    for title, arguments in others.items():
        for policy in ("none", "cofuso", "adaptive"):
            wanted[f"{policy}, {title}"] = ["responses", "--policy", policy, *flows, *arguments]
        wanted[f"none, loss-free, {title}"] = ["responses", "--policy", "none", *flows, *arguments, *LOSS_FREE]
    runs = _simulate(wanted)

    def against_none(title):
        return {policy: round(runs[policy + title]["p99"] / runs["none" + title]["p99"], 3)
                for policy in ("none, loss-free", "cofuso", "adaptive")}

    detail = {"flows": runs["cofuso"]["flows"], "sizes": "web search up to 100 KB (the paper's are not public)",
              "p99 / p99 of none (loss-free: the best that is possible)":
              {"web search up to 100 KB": against_none(""), **{title: against_none(f", {title}") for title in others}}}
    own = [runs[f"{policy}, Braid's own timeout"]["p99"] for policy in ("cofuso", "none")]
    detail["ratio with Braid's own timeout"] = round(own[0] / own[1], 3)
    detail.update(_briefs(runs))
    value = _by_seed(detail, runs, wanted, ["cofuso", "none"], _p99_ratio("cofuso", "none"))
    return lab.beside(value, detail, lab.responses, ["none", "cofuso", "adaptive"], warm_rounds=5, cold_rounds=5)


@target("recovery.2b", "the same responses one after the other in one warm tunnel: p99 of adaptive / its p99 without "
        "loss", "ratio", at_most=1.15, programs=WITH_LAB)
def responses_warm():
    warm = ["--warm", "--flows", 10_000]
    wanted, runs, ratios = {}, {}, {}
    for controller, named in CONTROLLERS.items():
        shared = [*warm, *named]
        wanted[controller] = {**_policies("responses", *shared),
                              "adaptive, loss-free": ["responses", "--policy", "adaptive", *shared, *LOSS_FREE]}
        runs[controller] = _simulate(wanted[controller])
        clean = runs[controller]["adaptive, loss-free"]["p99"]
        ratios[controller] = {name: round(run["p99"] / clean, 3) for name, run in runs[controller].items()}
    detail = {"flows": 10_000, "p99 / loss-free p99 of adaptive": ratios,
              **{controller: _briefs(each) for controller, each in runs.items()}}
    compared = ["adaptive", "adaptive, loss-free"]
    value = _by_seed(detail, runs["default"], wanted["default"], compared, _p99_ratio(*compared))
    return lab.beside(value, detail, lab.responses, ["none", "cofuso", "adaptive"], warm_rounds=10)


@target("recovery.3", "three 1 Gbit/s paths of 280 us RTT, flows up to 100 KB over 4 subflows: p99 of fuso with 4 % "
        "loss on one path / p99 without loss", "ratio", at_most=1.5, programs=PROGRAMS)
def fabric():
    flows = ["--flows", 15_000]
    wanted = {"loss-free": ["fabric", "--policy", "fuso", *flows, *LOSS_FREE],
              **_policies("fabric", *flows, "--loss", 0.04)}
    runs = _simulate(wanted)
    detail = {"flows": runs["fuso"]["flows"], "timeout_share of fuso": runs["fuso"]["timeout_share"],
              "timeout_share wanted": 0.001, **_briefs({name: runs[name] for name in ["loss-free", *POLICIES]})}
    compared = ["fuso", "loss-free"]
    return _by_seed(detail, runs, wanted, compared, _p99_ratio(*compared)), detail


@target("recovery.4", "web responses, each in a fresh tunnel of 5 subflows over a mesh of routers with 4 lossy links, "
        "5-25 % loss: the largest p99 ratio of adaptive/cofuso and cofuso/fuso", "ratio", at_most=1.0,
        programs=PROGRAMS)
def routers():
    losses = [0.05, 0.10, 0.15, 0.20, 0.25]
    ranked, others = ["fuso", "cofuso", "adaptive"], ["none", "redundant", "proactive", "reactive", "corrective"]
    flows, few = 15_000, 2000

    def wanted(flows, policies):
        return {f"{loss} {policy}": ["routers", "--policy", policy, "--loss", loss, *LINUX_RTO, "--flows", flows]
                for loss in losses for policy in policies}

    def ratios_of(runs):
        out = {}
        for loss in losses:
            fuso, cofuso, adaptive = (runs[f"{loss} {policy}"]["p99"] for policy in ranked)
            out[str(loss)] = {"adaptive/cofuso": adaptive / cofuso, "cofuso/fuso": cofuso / fuso}
        return out

    runs = _simulate({**wanted(flows, ranked), **wanted(1000, others)})
    ratios, *elsewhere = by_seed("braid-sim recovery", runs, wanted(few, ranked), ratios_of)

    def shown(each):
        return {loss: {pair: round(ratio, 5) for pair, ratio in pairs.items()} for loss, pairs in each.items()}

    detail = {"flows": f"{flows}, 1000 of {', '.join(others)}", "p99 ratios": shown(ratios),
              f"with other lossy links (the seeds from 2 on), {few} flows": list(map(shown, elsewhere)),
              **{str(loss): {policy: _brief(runs[f"{loss} {policy}"]) for policy in ranked + others}
                 for loss in losses}}
    require_complete(detail, {f"{loss} {policy}": runs[f"{loss} {policy}"] for loss in losses for policy in ranked})
    return max(value for pair in ratios.values() for value in pair.values()), detail


@target("recovery.5", "web responses, each in a fresh tunnel over two 50 ms paths, Gilbert-Elliott bursts of 4 "
        "packets, 2 % in all, on one: p99 of adaptive / p99 of the best policy with at most one parity", "ratio",
        at_most=0.9999, programs=PROGRAMS)
def bursts():
    single = [policy for policy in POLICIES if policy not in ("none", "adaptive")]
    detail, value = {}, None

    def against_best(runs):
        return runs["adaptive"]["p99"] / min(runs[policy]["p99"] for policy in single)

    for name, more in (("each in a fresh tunnel", ["--flows", 6000, *LINUX_RTO]),
                       *((f"one warm tunnel, {controller}", ["--flows", 6000, "--warm", *named])
                         for controller, named in CONTROLLERS.items())):
        shared = ["--burst", 4, *more]
        wanted = _policies("responses", *shared, *ONE_PARITY, policies=single)
        for policy in ("none", "cofuso", "adaptive"):
            wanted[policy if policy not in single else f"{policy}, up to 3 parities"] = ["responses", "--policy",
                                                                                         policy, *shared]
        for policy in ("cofuso", "adaptive"):
            wanted[f"{policy}, loss-free"] = ["responses", "--policy", policy, *shared, *LOSS_FREE]
        runs = _simulate(wanted)
        best = min(single, key=lambda policy: runs[policy]["p99"])
        detail[name] = {"best with one parity": best, "ratio": round(against_best(runs), 4), **_briefs(runs)}
        if value is None:
            value = _by_seed(detail, runs, wanted, ["adaptive", *single], against_best)
    return value, detail


# The start of a download largely determines its goodput, and one in eight starts badly. So a few runs would not be
# representative.
BULK_SEEDS = {"none": 8, "adaptive": 8, "fuso": 2, "cofuso": 2, "redundant": 2}


@target("recovery.6", "share of a download's goodput lost to protection while WiFi 50 Mbit/s and LTE 30 Mbit/s are "
        "full: 1 - adaptive / none, mean of 8 seeds", "share", at_most=0.02, programs=WITH_LAB)
def bulk():
    runs = _simulate({f"{loss} {policy} {seed}": ["bulk", "--policy", policy, "--loss", loss, "--seed", seed,
                                                  "--flows", 15]
                      for loss in (0, 0.01) for policy, seeds in BULK_SEEDS.items() for seed in range(1, seeds + 1)})

    def mean(loss, policy, field):
        seeds = BULK_SEEDS[policy]
        return sum(runs[f"{loss} {policy} {seed}"][field] for seed in range(1, seeds + 1)) / seeds

    detail = {f"{loss:.0%} loss on WiFi": {policy: {"goodput_mbit": round(mean(loss, policy, "goodput_mbit"), 2),
                                                    "extra_load": round(mean(loss, policy, "extra_load"), 4),
                                                    "goodputs by seed": [
                                                        round(runs[f"{loss} {policy} {seed}"]["goodput_mbit"], 2)
                                                        for seed in range(1, seeds + 1)]}
                                           for policy, seeds in BULK_SEEDS.items()} for loss in (0, 0.01)}
    return lab.beside(1 - mean(0, "adaptive", "goodput_mbit") / mean(0, "none", "goodput_mbit"), detail, lab.bulk,
                      ["none", "adaptive"], rounds=3)


@target("recovery.8", "16 KB flows beside an elephant on full WiFi 50 Mbit/s (2 % loss) and LTE 30 Mbit/s: p99 of "
        "adaptive / p99 without the elephant", "ratio", at_most=1.5, programs=WITH_LAB)
def mice():
    wanted = {}
    for policy in ("none", "fuso", "cofuso", "adaptive"):
        wanted[policy] = ["mice", "--policy", policy]
        wanted[f"{policy}, no elephant"] = ["mice", "--policy", policy, "--alone"]
    runs = _simulate(wanted)
    detail = {"flows": runs["adaptive"]["flows"],
              "elephant_mbit": {name: round(run["elephant_mbit"], 2) for name, run in runs.items()
                                if run["elephant_mbit"]},
              **_briefs(runs)}
    compared = ["adaptive", "adaptive, no elephant"]
    value = _by_seed(detail, runs, wanted, compared, _p99_ratio(*compared))
    return lab.beside(value, detail, lab.mice, ["none", "cofuso", "adaptive"], rounds=2)
