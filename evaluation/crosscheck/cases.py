"""The cases that run in both programs."""

import dataclasses

# For Braid's program alone. RULES: what ns-3 has of TCP's repairs (evaluation/ns3/README.md); RFC: without ns-3's
# growth at the end of a recovery, which no RFC has. One round of an incast is what ns-3 runs.
RULES = ("--recovery", "ns-3", "--rounds", 1)
RFC = ("--recovery", "rfc6675")


@dataclasses.dataclass(frozen=True)
class Case:
    """One setting of an experiment. `figures`: those whose means are compared. `seeds`: as many are run."""

    name: str
    experiment: str
    arguments: tuple
    figures: tuple
    seeds: int = 5
    ours: tuple = RULES  # for Braid's program alone
    theirs: tuple = ()  # for ns3_check alone

    def command(self, seed, more=()):
        """The arguments of a run."""
        return [self.experiment, *map(str, self.arguments), "--seed", str(seed), *map(str, more)]

    @property
    def has_routes(self):
        """True when braid-sim draws the flows' paths through the network, and ns-3 uses the same."""
        return self.experiment == "permutation"


def _lossy(control, loss, name="", ours=RULES):
    return Case(f"lossy path, {control}{name}, {loss:.1%} lost", "lossy-path",
                ("--control", control, "--loss", loss), ("goodput_mbps",), ours=ours)


# An ACK must not be delayed longer than the sender waits for it.
DATA_CENTRE = ("--min-rto", 10, "--ack-delay", 1)


# Flows begin within 10 ms and are measured from a quarter of the time on: with 0.1 s, a late flow's slow start is in
# the figures of some seeds. Both are kept: what missed stays.
SHORT, STEADY = 0.1, 0.4


def _named(name, seconds):
    return name if seconds == SHORT else f"{name}, {seconds} s"


def is_settled(name):
    """True when there is no case with the same settings that is measured for longer."""
    return not any(case.name == _named(name, STEADY) for case in CASES)


def _queue(senders, threshold, seconds):
    return Case(_named(f"queue, {senders} flows, K = {threshold}", seconds), "dctcp-queue",
                ("--control", "dctcp", "--senders", senders, "--threshold", threshold, "--seconds", seconds,
                 *DATA_CENTRE), ("queue_mean", "queue_p95", "throughput_mbps"))


# Within the default 10 us all seeds lose the same packets.
def _incast(control, senders, name="", theirs=()):
    return Case(f"incast, {control}{name}, {senders} senders", "incast",
                ("--control", control, "--senders", senders, "--spread", 500, *DATA_CENTRE), ("completion_ms",),
                seeds=20, theirs=theirs)


def _permutation(control, seconds):
    return Case(_named(f"permutation, {control}", seconds), "permutation",
                ("--control", control, "--seconds", seconds, *DATA_CENTRE), ("goodput_mean_mbps", "jain"))


CASES = [*(_lossy(control, loss) for control in ("newreno", "cubic") for loss in (0.001, 0.01, 0.03)),
         *(_lossy("newreno", loss, " by the RFCs", RFC) for loss in (0.001, 0.01, 0.03)),
         *(_queue(senders, threshold, seconds) for seconds in (SHORT, STEADY) for senders in (2, 10)
           for threshold in (10, 20, 65)),
         *(_incast(control, senders) for control in ("dctcp", "newreno") for senders in (10, 20, 30, 40)),
         *(_incast("dctcp", senders, " with two segments", ("--least-window",)) for senders in (10, 20, 30, 40)),
         *(_permutation(control, seconds) for seconds in (SHORT, STEADY) for control in ("dctcp", "newreno"))]

# Figures that differ for a known reason: (how the case's name begins, figure) -> the reason. They are reported, and do
# not count for the worst difference. "dctcp, " with its comma is not "dctcp with two segments".
EXPLAINED = {
    ("lossy path, cubic", "goodput_mbps"):
        "TcpCubic of ns-3 3.37 has no Reno-friendly region (RFC 9438 section 4.3), which rules at windows so small",
    ("lossy path, newreno by the RFCs", "goodput_mbps"):
        "the ACK that ends a recovery grows ns-3's window by all that it covers, two segments; the case without \"by "
        "the RFCs\" has that in Braid's model, too",
    ("incast, dctcp, ", "completion_ms"):
        "ns-3's window may fall below one segment, which then waits for the timer; the case \"with two segments\" is "
        "without that",
}
