"""Target of long runs: half an hour of real daemons and days of virtual time, under full load and constant changes."""

import threading
import time
from statistics import mean

from lab import Download, Lab, Link
from lab.measure import resident_bytes
from lab.services import Nginx

from . import MISSING, at_least, option, target
from ._simulate import simulate

LINKS = [Link("wifi", 50, 20, 0.005), Link("lte", 30, 60, 0.001)]
REKEY = {"rekey-after": "60s"}
SETTLED = 300  # seconds after which memory must not grow any more
GROWTH = 0.05
EVERY = {"fail": 20, "move": 45, "reload": 30}  # seconds
FILE = 40_000_000  # bytes; some seconds
MINUTES, HOURS = 30, 72


class Load(threading.Thread):
    """Downloads, one after the other, until told to end."""

    def __init__(self, lab, nginx):
        super().__init__(daemon=True)
        self._lab = lab
        self._path = nginx.add("soak", FILE)
        self._sha256 = nginx.sha256[self._path]
        self._end = threading.Event()
        self.wrong, self.resets, self.size, self.errors = 0, 0, 0, []
        self.start()

    def run(self):
        while not self._end.is_set():
            try:
                done = Download(self._lab, f"http://{Lab.server_addresses()[0]}{self._path}").finish(120)
                self.wrong += done.sha256 != self._sha256
                self.resets += done.report["num_connects"] != 1
                self.size += done.size
            except (RuntimeError, TimeoutError) as error:
                self.resets += 1
                self.errors.append(str(error)[:300])

    def finish(self):
        """Ends the downloads. True when they were running until then."""
        worked = self.is_alive()
        self._end.set()
        self.join(130)
        return worked and not self.is_alive()


class Trouble:
    """The events during the run, one after the other."""

    def __init__(self, lab):
        self._lab = lab
        self.counts = dict.fromkeys(EVERY, 0)
        self._next = {kind: time.monotonic() + seconds for kind, seconds in EVERY.items()}

    def step(self):
        for kind, when in self._next.items():
            if time.monotonic() >= when:
                getattr(self, kind)(self.counts[kind])
                self.counts[kind] += 1
                self._next[kind] += EVERY[kind]

    def fail(self, number):
        """A link fails for a second, silently or together with its interface."""
        index = number % 2
        name, lab = LINKS[index].name, self._lab
        if number % 4 < 2:
            lab.links.set(name, down=True)
            time.sleep(1)
            lab.links.set(name, down=False)
        else:
            lab.edge.ip("link", "set", f"{name}0", "down")
            time.sleep(1)
            lab.restore_uplink(index)

    def move(self, number):
        """Changes the second uplink's address, or restores it."""
        (near, far), _ = self._lab.sites[0].link_addresses(1)
        edge = self._lab.edge
        edge.ip("-4", "address", "flush", "dev", "lte0")
        edge.address("lte0", (near if number % 2 else near[:-1] + "77") + "/24")
        edge.route("0.0.0.0/0", "via", far, "dev", "lte0", "metric", 200)

    def reload(self, number):
        for gateway in self._lab.gateways():
            gateway.config.setdefault("recovery", {})["policy"] = ("adaptive", "cofuso")[number % 2]
            gateway.reload()


def _real(minutes):
    with Lab(LINKS) as lab:
        nginx = Nginx(lab)
        lab.start_gateways(edge={"tunnel": REKEY}, concentrator={"tunnel": REKEY})
        lab.edge_gateway.wait_up(subflows=2)
        pids = {gateway.name: gateway.process.pid for gateway in lab.gateways()}
        load, trouble = Load(lab, nginx), Trouble(lab)
        begun, settled, most = time.monotonic(), {}, dict.fromkeys(pids, 0)
        least = {name: {} for name in pids}  # by window of SETTLED seconds, a rest is of the last one
        while time.monotonic() < begun + 60 * minutes:
            trouble.step()
            for name, pid in pids.items():
                resident = resident_bytes(pid)
                window = min(int((time.monotonic() - begun) / SETTLED), max(60 * minutes // SETTLED - 1, 0))
                least[name][window] = min(least[name].get(window, resident), resident)
                if time.monotonic() < begun + min(SETTLED, 60 * minutes / 2):
                    settled[name] = max(settled.get(name, 0), resident)
                else:
                    most[name] = max(most[name], resident)
            time.sleep(0.5)
        idle = not load.finish()
        generations = [peer["key_generation"] for peer in lab.gateway.status()["peers"]]
        ended = sum(gateway.process.poll() is not None for gateway in lab.gateways())
        growth = {name: round(most[name] / settled[name] - 1, 6) for name in pids}
        faults = load.wrong + load.resets + idle + ended
        detail = {"minutes": minutes, "wrong": load.wrong, "resets": load.resets, "errors": load.errors[:5],
                  "load ended early": idle, "daemons ended": ended, "growth": growth, "resident": settled,
                  "kept": {name: _kept(list(windows.values())) for name, windows in least.items()},
                  "bytes": load.size, "key generations": generations, **trouble.counts}
        if min(generations) < minutes / 2:
            detail[MISSING] = "changes of keys"
        return faults, detail


def _kept(least):
    """The growth of memory that is never freed, from the first to the second half of the windows: the difference of the
    means of each window's minimum. The first window includes the start and does not count."""
    windows = least[1:] if len(least) > 2 else least
    half = len(windows) // 2
    return round(mean(windows[half:]) / mean(windows[:half] or windows) - 1, 6)


def _virtual(hours):
    run = simulate("sim_soak", {1: ["--hours", hours, "--seed", 1]})[1]
    buffers = run.pop("kept")
    memory, least = run.pop("resident_mib"), run.pop("resident_least_mib")
    run.update({"resident_mib": [memory[0], max(memory)], "growth": {"both": round(max(memory) / memory[0] - 1, 6)},
                "kept": {"both": _kept(least)}, "kept buffers": buffers, "least_mib": least})
    faults = run["wrong_bytes"] + run["resets"] + buffers + bool(run["broken"])
    if run["rekeys"] < 30 * hours:
        run[MISSING] = "changes of keys"
    return faults, run


OPTIONS = [option("--minutes", at_least(MINUTES), type=int, default=MINUTES, help="of real time"),
           option("--hours", at_least(HOURS), type=int, default=HOURS, help="of virtual time")]
PROGRAMS = ["braidd", "braidctl", "linkemu", "sim_soak"]
LOAD = ("soak under full load, with links that fail, addresses that change, reloads and new keys every 60 s, of real "
        "daemons and in virtual time: wrong bytes + resets + ")


@target("shield.9", f"{LOAD}growth of memory beyond {GROWTH:.0%} after the first {SETTLED // 60} minutes", "faults",
        at_most=0, programs=PROGRAMS, options=OPTIONS)
def soak(minutes, hours):
    return _both(minutes, hours, "growth")


@target("shield.leak", f"{LOAD}processes that keep over {GROWTH:.0%} more in the second half than in the first: "
        f"means of the least memory of every {SETTLED // 60} minutes, in virtual time of every hour", "faults",
        at_most=0, programs=PROGRAMS, options=OPTIONS)
def leak(minutes, hours):
    return _both(minutes, hours, "kept")


def _both(minutes, hours, memory):
    virtual, days = _virtual(hours)  # runs first, so that a failure there does not cost the half hour
    real, detail = _real(minutes)
    out = {"real": detail, "virtual": days}
    grown = sum(each > GROWTH for part in out.values() for each in part[memory].values())
    lacking = [part[MISSING] for part in out.values() if MISSING in part]
    if lacking:
        out[MISSING] = lacking
    return real + virtual + grown, out
