"""Targets of the daemon other than speed: its memory when idle and after load, and which flows wait when it is
overloaded."""

import math
import threading
import time

from lab import percentile
from lab.measure import iperf3, resident_bytes, round_trips

from . import at_least, option, require, target
from ._duel import OPTIONS, PROGRAMS, SERVER, Duel, datagrams, rounded
from .speed import SMALL

MB = 1e6
SETTLE = 10  # seconds after the start until a daemon is idle
MOST_AFTER, MINUTE = 24, 60  # at most this many MB, this many seconds after the load
LOAD_MINUTES, QUICK_MINUTES = 60, 0.1
PINGS, QUICK_PINGS, PAUSE, LATEST = 1000, 100, 0.02, 1  # `LATEST`: seconds after which an answer counts as missing
LEAD = 1  # seconds of load before the first ping and after the last


def _resident(contender):
    """Resident memory of the larger daemon, MB."""
    return max(resident_bytes(pid) for pid in contender.pids()) / MB


@target("speed.10", "resident memory of an idle daemon with one peer; after an hour of one TCP stream over an "
        f"unlimited link at most {MOST_AFTER} MB within a minute; the larger of both daemons", "MB", at_most=10,
        programs=PROGRAMS,
        options=[*OPTIONS, option("--minutes", at_least(LOAD_MINUTES), type=float, default=LOAD_MINUTES,
                                  help="of load")])
def memory(quick, settings, minutes):
    if quick:
        minutes = min(minutes, QUICK_MINUTES)
    with Duel(quick, settings, rival=False) as duel, duel.running(duel.contenders[0]) as braid:
        time.sleep(SETTLE)
        idle = _resident(braid)
        report = iperf3(duel.lab, SERVER, seconds=round(60 * minutes))
        loaded, ended = _resident(braid), time.monotonic()
        while (after := _resident(braid)) > MOST_AFTER and time.monotonic() < ended + MINUTE:
            time.sleep(1)
        detail = {"idle MB": rounded(idle), "at the end of the load MB": rounded(loaded),
                  "after it MB": rounded(after),
                  "seconds after it": round(time.monotonic() - ended, 1), "minutes of load": minutes,
                  "Gbit/s": rounded(report["end"]["sum_received"]["bits_per_second"] / 1e9)}
    require(detail, after <= MOST_AFTER, f"{after:.1f} MB a minute after the load, at most {MOST_AFTER} may be")
    return idle, detail


class _Pings(threading.Thread):
    """Pings to the server while something else goes on."""

    def __init__(self, duel):
        super().__init__(daemon=True)
        self._duel = duel
        self.times = []
        self.start()

    def run(self):
        time.sleep(LEAD)
        self.times = round_trips(self._duel.lab.client, SERVER, _count(self._duel), PAUSE, LATEST)

    def finish(self):
        self.join()
        if not self.times:
            raise RuntimeError("the pings failed")
        return self.times


def _count(duel):
    return QUICK_PINGS if duel.quick else PINGS


def _p99(times):
    """Milliseconds; a ping without an answer counts with the time waited."""
    return min(percentile(times, 0.99), LATEST * 1e3)


@target("speed.11", f"p99 of a ping above idle while {SMALL}-byte UDP comes faster than the processor carries it, and "
        "while four TCP streams saturate it, the worse", "ms", at_most=10, programs=PROGRAMS, options=OPTIONS)
def overload(quick, settings):
    with Duel(quick, settings, rival=False) as duel, duel.running(duel.contenders[0]) as braid:
        idle = round_trips(duel.lab.client, SERVER, _count(duel), PAUSE, LATEST)
        duel.seconds = math.ceil(_count(duel) * PAUSE) + 2 * LEAD
        pings = _Pings(duel)
        flood = datagrams(duel, braid, SMALL, 0)
        small = pings.finish()
        pings = _Pings(duel)
        began = braid.cpu()
        streams = iperf3(duel.lab, SERVER, "-P", 4, seconds=duel.seconds)["end"]["sum_received"]
        large = pings.finish()
        busy = (braid.cpu() - began) / duel.seconds
    if _p99(idle) >= LATEST * 1e3:
        raise RuntimeError(f"{idle.count(math.inf)} of {len(idle)} pings had no answer when idle")
    value = max(_p99(small), _p99(large)) - _p99(idle)
    detail = {"pings of a run": len(idle), "idle p99 ms": _p99(idle), "UDP p99 ms": _p99(small),
              "TCP p99 ms": _p99(large),
              "without an answer": {"idle": idle.count(math.inf), "UDP": small.count(math.inf),
                                    "TCP": large.count(math.inf)},
              "UDP": {key: rounded(each) for key, each in flood.items()},
              "TCP": {"Gbit/s": rounded(streams["bits_per_second"] / 1e9), "CPUs of both daemons": rounded(busy)}}
    require(detail, flood["lost"] > 0.01, "a flood that the processor cannot carry: nearly all of it arrived")
    return value, detail
