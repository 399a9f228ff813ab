"""Targets of rate control on Internet paths, in virtual time by braid-sim rate (evaluation/internet.md). The values
are those of `wan`; the details also have other controllers."""

from statistics import mean

from . import require, target
from ._simulate import simulate

PROGRAMS = ["braid-sim"]
OURS, RIVALS = "wan", ["bbr", "cubic"]
CONTROLLERS = [OURS, *RIVALS]


def _simulate(runs):
    return simulate("braid-sim rate", runs)


def _spread(values, digits=3):
    """Smallest, mean and largest."""
    return [round(value, digits) for value in (min(values), mean(values), max(values))]


def bulk_in_virtual_time(seeds=(1, 2, 3)):
    """The companion of the lab's rate.2 (rate_lab.py): goodput shares and queueing delays by loss of WiFi, source and
    controller."""
    runs = _simulate({(loss, source, name, seed):
                      ["bulk", "--loss", loss, "--controller", name, "--seed", seed, *flags]
                      for loss in (0.01, 0.02) for source, flags in (("inner TCP", []), ("saturated", ["--saturate"]))
                      for name in CONTROLLERS for seed in seeds})
    detail = {}
    for loss, source, name in dict.fromkeys(key[:3] for key in runs):
        each = [runs[loss, source, name, seed] for seed in seeds]
        waits = {f"{link} {field}": round(mean(run["links"][link][field] for run in each), 1)
                 for link in ("wifi", "lte") for field in ("p50_ms", "p95_ms")}
        detail.setdefault(f"{loss:.0%} loss on WiFi, {source}", {})[name] = {
            "share": _spread([run["share"] for run in each]), "share with the start":
            round(mean(run["share_with_start"] for run in each), 3), **waits}
    return detail


TRACE_SEEDS, LONGEST_WAIT = range(1, 6), 100  # ms


@target("rate.3", "a path of 50 ms whose capacity walks between 1 and 50 Mbit/s by the second, 1 MB of queue: "
        "utilisation by wan, smallest of 5 traces of 300 s; 0 when a trace's p95 queueing delay is not below "
        f"{LONGEST_WAIT} ms", "share", at_least=0.85, programs=PROGRAMS)
def changing_capacity():
    runs = _simulate({(name, seed): ["trace", "--seconds", 300, "--controller", name, "--seed", seed]
                      for name in CONTROLLERS for seed in TRACE_SEEDS})

    def of(name, figure):
        return [round(figure(runs[name, seed]), 3) for seed in TRACE_SEEDS]

    detail = {"mean_mbit": of(OURS, lambda run: run["mean_mbit"]),
              **{name: {"utilisation": of(name, lambda run: run["utilisation"]),
                        "p50_ms": of(name, lambda run: run["links"]["4g"]["p50_ms"]),
                        "p95_ms": of(name, lambda run: run["links"]["4g"]["p95_ms"]),
                        "goodput_share": of(name, lambda run: run["goodput_share"])} for name in CONTROLLERS}}
    return min(run["utilisation"] if run["links"]["4g"]["p95_ms"] < LONGEST_WAIT else 0
               for (name, _), run in runs.items() if name == OURS), detail


SHARES, BUFFERS, ORDERS, SHARE_SEEDS = [1, 2, 8], [1, 4], ["together", "first", "last"], [1, 2, 3]


@target("rate.4", "one subflow of wan beside 1, 2, 8 CUBIC flows at 50 Mbit/s and 40 ms, 1 and 4 BDP of drop-tail "
        "queue, begun together, before or after them: share / fair share as a ratio <= 1, mean of 3 seeds, the "
        "smallest", "ratio", at_least=0.5, programs=PROGRAMS)
def beside_cubic():
    points = [(n, buffer, order) for n in SHARES for buffer in BUFFERS for order in ORDERS]

    def share(name, n, buffer, order, seed):
        return ["cubic-share", "--controller", name, "--rivals", n, "--buffer", buffer, "--order", order,
                "--seed", seed]

    def converge(buffer, seed):
        return ["converge", "--controller", OURS, "--buffer", buffer, "--seed", seed]

    runs = _simulate({(name, *point, seed): share(name, *point, seed) for name in CONTROLLERS for point in points
                      for seed in SHARE_SEEDS
                      if name == OURS or point[2] == "together"} |
                     {("converge", buffer, seed): converge(buffer, seed) for buffer in BUFFERS
                      for seed in SHARE_SEEDS})
    shares, table = {}, {}
    for name, *point in dict.fromkeys(key[:4] for key in runs if key[0] != "converge"):
        each = [runs[name, *point, seed] for seed in SHARE_SEEDS]
        n, buffer, order = point
        if name == OURS:
            # Applied before the mean, so that a surplus with one seed does not compensate for a deficit with another.
            shares[f"{n} CUBIC, {buffer} BDP, {order}"] = mean(
                min(run["share"], 1 / run["share"]) if run["share"] else 0 for run in each)
        table.setdefault(name, {})[f"{n} CUBIC, {buffer} BDP, {order}"] = {
            "share / fair share": _spread([run["share"] for run in each]),
            "jain": round(min(run["jain"] for run in each), 3),
            "utilisation": round(min(run["link"]["utilisation"] for run in each), 3),
            "p95_ms": round(max(run["link"]["p95_ms"] for run in each), 1),
            "loss": round(max(run["link"]["loss"] for run in each), 4)}
    worst = min(shares, key=shares.get)
    detail = {"worst": worst, "two tunnels of wan, the second 10 s later: smallest Jain index of the last 20 s":
              {f"{buffer} BDP": round(min(runs["converge", buffer, seed]["jain"] for seed in SHARE_SEEDS), 3)
               for buffer in BUFFERS},
              "their p95_ms": {f"{buffer} BDP": round(max(runs["converge", buffer, seed]["link"]["p95_ms"]
                                                          for seed in SHARE_SEEDS), 1)
                               for buffer in BUFFERS},
              "share / fair share: smallest, mean, largest of the seeds": table}
    return shares[worst], detail


BURSTS = {"25 KB (10 ms)": 25_000, "64 KiB": 65_536, "250 KB (100 ms)": 250_000}
POLICER_SEEDS = [1, 2, 3]


@target("rate.5", "a policer of 20 Mbit/s (buckets of 25, 64, 250 KB) on a path of 100 Mbit/s and 40 ms: share of "
        "packets that it drops of wan's from the 10th second on, largest of 3 seeds and all buckets", "share",
        at_most=0.03, programs=PROGRAMS)
def policer():
    runs = _simulate({(name, burst, seed): ["policer", "--burst", size, "--controller", name, "--seed", seed]
                      for name in CONTROLLERS for burst, size in BURSTS.items() for seed in POLICER_SEEDS})

    def of(name, field, worst):
        return {burst: round(worst(runs[name, burst, seed][field] for seed in POLICER_SEEDS), 4) for burst in BURSTS}

    detail = {name: {"loss": of(name, "loss", max), "loss in the first 10 s": of(name, "loss_before", max),
                     "utilisation": of(name, "utilisation", min),
                     "goodput / policed rate": of(name, "goodput_share", min)}
              for name in CONTROLLERS}
    return max(run["loss"] for (name, *_), run in runs.items() if name == OURS), detail


EXCHANGE_SEEDS = [1, 2, 3]


@target("rate.6", "100-byte request and response every 100 ms beside a download that fills WiFi 50 Mbit/s 20 ms and "
        "LTE 30 Mbit/s 60 ms by wan: p99 above the smallest RTT, largest of 3 seeds of 120 s", "ms", at_most=15,
        programs=PROGRAMS)
def interactive():
    downloads = {"no loss": [], "1 % loss on WiFi": ["--loss", 0.01], "no loss, saturated": ["--saturate"],
                 "1 % loss on WiFi, saturated": ["--saturate", "--loss", 0.01]}
    runs = _simulate({(name, download, seed): ["interactive", "--controller", name, "--seed", seed, *flags]
                      for name in CONTROLLERS for download, flags in downloads.items()
                      for seed in (EXCHANGE_SEEDS if name == OURS else EXCHANGE_SEEDS[:1])})

    def brief(each):
        return {**{field: round(max(run[field] for run in each), 2)
                   for field in ("p50_ms", "p95_ms", "p99_ms", "max_ms")},
                "incomplete": sum(run["incomplete"] for run in each),
                "download_mbit": round(mean(run["goodput_mbit"] for run in each), 1),
                **{f"p95_ms of the queue of {link}": round(max(run["links"][link]["p95_ms"] for run in each), 1)
                   for link in ("wifi", "lte")}}

    detail = {name: {download: brief([run for key, run in runs.items() if key[:2] == (name, download)])
                     for download in downloads}
              for name in CONTROLLERS}
    return max(runs[OURS, "no loss", seed]["p99_ms"] for seed in EXCHANGE_SEEDS), detail


SMALL_BUFFERS, SMALL_SEEDS, MOST_OVERFLOW = [15_000, 30_000, 60_000, 90_000], [1, 2, 3], 0.03


@target("rate.7", "a path of 100 Mbit/s and 20 ms, 15 to 90 KB of buffer: goodput of wan in 20 s from the start on / "
        f"the rate, smallest of 3 seeds; packets lost at most {MOST_OVERFLOW}", "share", at_least=0.80,
        programs=PROGRAMS)
def small_buffers():
    runs = _simulate({(name, size, seed): ["shallow", "--queue-bytes", size, "--controller", name, "--seed", seed]
                      for name in CONTROLLERS for size in SMALL_BUFFERS for seed in SMALL_SEEDS})
    detail = {name: {size: {field: _spread([runs[name, size, seed][field] for seed in SMALL_SEEDS], 4)
                            for field in ("goodput_share", "loss")} for size in SMALL_BUFFERS}
              for name in CONTROLLERS}
    lost = max(run["loss"] for (name, *_), run in runs.items() if name == OURS)
    require(detail, lost <= MOST_OVERFLOW, f"{lost:.3f} of the packets lost, at most {MOST_OVERFLOW} may be")
    return min(run["goodput_share"] for (name, *_), run in runs.items() if name == OURS), detail
