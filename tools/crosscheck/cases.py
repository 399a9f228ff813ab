"""What is run in both programs."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    """One setting of a scenario. `keys`: the figures whose means are compared."""

    name: str
    scenario: str
    arguments: tuple
    keys: tuple

    def command(self, seed, paths=None):
        """The arguments of a run. `paths`: a file with the ways of the flows."""
        words = [self.scenario, *map(str, self.arguments), "--seed", str(seed)]
        return words + ["--paths", str(paths)] if paths else words

    @property
    def has_paths(self):
        return self.scenario == "permutation"


QUEUE_KEYS = ("queue_mean", "queue_p50", "queue_p95", "queue_p99", "throughput_mbps")


def _lossy(control, loss):
    return Case(f"lossy path, {control}, {loss:.1%}", "lossy-path",
                ("--control", control, "--loss", loss, "--rate", 100, "--rtt", 20, "--seconds", 60),
                ("goodput_mbps",))


def _queue(senders, threshold):
    return Case(f"queue, {senders} senders, K = {threshold}", "dctcp-queue",
                ("--senders", senders, "--threshold", threshold, "--rate", 1000, "--rtt", 100), QUEUE_KEYS)


def _incast(control, senders):
    return Case(f"incast, {control}, {senders} senders", "incast",
                ("--control", control, "--senders", senders, "--bytes", 65536, "--queue", 100, "--min-rto", 10),
                ("completion_ms",))


def _permutation(control):
    return Case(f"permutation, {control}", "permutation",
                ("--control", control, "--rate", 1000, "--delay", 20, "--queue", 100, "--threshold", 10),
                ("mean", "jain"))


CASES = [*(_lossy(control, loss) for control in ("newreno", "cubic") for loss in (0.001, 0.01, 0.03)),
         *(_queue(senders, threshold) for senders in (2, 10) for threshold in (10, 20, 40)),
         *(_incast(control, senders) for control in ("dctcp", "newreno") for senders in (10, 20, 30, 40)),
         *(_permutation(control) for control in ("dctcp", "newreno"))]

# Figures that differ for a known reason: (how the case's name begins, figure) -> the reason. They are reported, and do
# not count for the worst difference.
EXPLAINED = {
    ("lossy path, cubic", "goodput_mbps"):
        "ns-3 3.37's CUBIC never grows as Reno would (RFC 9438 section 4.3), which is what rules at windows so small",
}
