"""The cases that run with Braid's TCP model and with the kernel's TCP."""

from .cases import Case

# The lossy paths, and the port of incasts. They are slow enough for emulated links: a packet takes 1.2 and 0.6 ms.
PATH = ("--rate", 10e6, "--rtt", 40_000, "--queue", 100)
PORT = ("--rate", 20e6, "--rtt", 5_000, "--queue", 100, "--spread", 10_000)
LINUX, RACK = (("--recovery", name) for name in ("linux", "rack"))  # "rack": without tail loss probes


def _lossy(control, loss):
    return Case(f"lossy path, {control}, {loss:.1%} lost", "lossy-path",
                ("--control", control, "--loss", loss, *PATH, "--seconds", 60), ("goodput_mbps",), ours=LINUX)


def _timeouts(recovery, size, loss):
    return Case(f"timeouts, {recovery[1]}, {size // 1000} KB, {loss:.0%} lost", "timeouts",
                ("--bytes", size, "--loss", loss, *PATH, "--flows", 800), ("timeout_share",), ours=recovery)


def _incast(control, senders):
    return Case(f"incast, {control}, {senders} senders", "incast",
                ("--control", control, "--senders", senders, "--bytes", 1 << 16, *PORT), ("completion_ms",), seeds=20,
                ours=(*LINUX, "--rounds", 1))


CASES = [*(_lossy(control, loss) for control in ("newreno", "cubic") for loss in (0.001, 0.01, 0.03)),
         *(_lossy("cubic-8312", loss) for loss in (0.001, 0.01, 0.03)),
         _timeouts(RACK, 10_000, 0.05), _timeouts(RACK, 100_000, 0.02),
         _timeouts(LINUX, 10_000, 0.10), _timeouts(LINUX, 100_000, 0.05),
         *(_incast("newreno", senders) for senders in (10, 20, 40)), _incast("cubic", 20)]

# Figures that differ for a known reason; see cases.EXPLAINED.
EXPLAINED = {
    ("lossy path, cubic, ", "goodput_mbps"):
        "Linux's CUBIC has RFC 8312's Reno-friendly window; \"cubic-8312\" has that in Braid's model, too",
}
