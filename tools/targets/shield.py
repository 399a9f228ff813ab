"""Targets of a gateway on the open Internet: what strangers cost it, and what they learn from
it."""

import json
import time

from lab import Download, Lab, Link, binary, median
from lab.gateway import PORT
from lab.measure import Echoes, longest_gap, resident_bytes
from lab.site import PUBLIC
from lab.services import Nginx

from . import MISSING, require, target
from ._strangers import CAUSES, COUNT, strangers

PROGRAMS = ["braidd", "braidctl", "linkemu", "flood"]
LINKS = [Link("wifi", 50, 20), Link("lte", 30, 60)]
ADDRESSES = 32  # source addresses of a flood
FLOOD_SECONDS = 60
HANDSHAKES = 200  # handshakes that begin per second, each with 100 early records
FAST = 50_000  # datagrams per second
KINDS = {"noise": FAST, "strangers": FAST, "hellos": FAST, "handshakes": HANDSHAKES}
KEPT = 0.9  # the flood must have been sent at least at this share of its rate
# Share of it that the handshake limiter refused, or for which the socket had no room; the rest may get an answer
REACHED = 0.5
MIB = 1 << 20


class Flood:
    """A flood of one kind at the concentrator, from the server's place."""

    def __init__(self, lab, mode, seconds):
        self._lab = lab
        sources = [f"192.168.100.{100 + number}" for number in range(ADDRESSES)]
        for address in sources:
            lab.server.run("ip", "address", "replace", f"{address}/24", "dev", "lan0")
        pin = lab.edge_gateway.config["peers"][0]["pin"]
        self._process = lab.server.popen(
            binary("flood"), mode, "--to", f"{PUBLIC[0]}:{PORT}", "--pin", pin, "--from", *sources, "--ports", "16",
            "--rate", str(KINDS[mode]), "--seconds", str(seconds), stdout=-1, text=True)
        self._gateway, self._mode = lab.gateway, mode
        self._began, self._before = time.monotonic(), _refused(lab.gateway)

    def running(self):
        return self._process.poll() is None

    def report(self):
        out, _ = self._process.communicate(timeout=FLOOD_SECONDS + 60)
        if self._process.returncode != 0:
            raise RuntimeError(f"flood ended with {self._process.returncode}")
        return json.loads(out)

    def stop(self):
        """Ends the flood. Raises when it had already ended, because the measurement was then not under the flood."""
        code = self._process.poll()
        self._process.kill()
        self._process.wait()
        if code is not None:
            raise RuntimeError(f"flood {self._mode} ended with {code} before it was stopped")

    def require_reached(self, detail):
        """Checks that the flood reached the gateway. A running process might still send to nobody."""
        refused = (_refused(self._gateway) - self._before) / (time.monotonic() - self._began)
        require(detail, refused >= REACHED * KINDS[self._mode],
                f"{self._mode}: the concentrator refused {refused:.0f} datagrams a second of {KINDS[self._mode]}")


def _refused(gateway):
    """Datagrams that the handshake limiter refused, or for which the socket had no room. Does not include peers'
    data."""
    status = gateway.status()
    return sum(status["drops"][cause] for cause in CAUSES) + status["host_drops"]["socket_overflow"]


def require_sent(detail, mode, report):
    """A flood that ran to its end must have reached its rate. Its own kernel drops nothing, since each socket sends
    little and a veth accepts everything."""
    pace = report["handshakes"] / FLOOD_SECONDS if mode == "handshakes" else report["per_second"]
    require(detail, pace >= KEPT * KINDS[mode], f"{mode}: {pace:.0f} a second of {KINDS[mode]}")
    require(detail, report["refused"] == 0, f"{mode}: its kernel refused {report['refused']} datagrams")


def _counted(before, after):
    return {cause: after[cause] - before[cause] for cause in after if after[cause] != before[cause]}


@target("shield.1", f"growth of the concentrator's resident memory under the worst flood of {FLOOD_SECONDS} s from "
        f"{ADDRESSES} addresses: noise, hellos, handshakes with early records", "MiB", at_most=16, programs=PROGRAMS)
def memory_under_floods():
    kinds, detail = {}, {}
    for mode in KINDS:
        with Lab(LINKS) as lab:
            lab.start_gateways()
            lab.edge_gateway.wait_up(subflows=2)
            gateway = lab.gateway
            before, drops = resident_bytes(gateway.process.pid), gateway.drops()
            flood, peak = Flood(lab, mode, FLOOD_SECONDS), before
            while flood.running():
                peak = max(peak, resident_bytes(gateway.process.pid))
                time.sleep(0.1)
            report = flood.report()
            require_sent(detail, mode, report)
            flood.require_reached(detail)
            kinds[mode] = {"growth_mib": round((peak - before) / MIB, 6), "before_mib": round(before / MIB, 2),
                           **report, "drops": _counted(drops, gateway.drops())}
            if not lab.edge_gateway.up():
                raise RuntimeError(f"the peer is down after {mode}")
    return max(each["growth_mib"] for each in kinds.values()), kinds | detail


RESTARTS = 10
PATIENCE = 20  # seconds: an edge that is not up by then counts with this time


def _time_until_data(lab):
    """Seconds from the start of the edge's daemon until a host behind it gets an answer."""
    lab.edge_gateway.stop(9)
    time.sleep(0.5)
    begun = time.monotonic()
    lab.edge_gateway.start()
    while time.monotonic() - begun < PATIENCE:
        ping = lab.client.run("ping", "-n", "-c", "1", "-W", "0.2", lab.server_addresses()[0], check=False)
        if " 0% packet loss" in str(ping):
            return time.monotonic() - begun
    return float(PATIENCE)


@target("shield.2", f"time until a restarted edge carries data under a flood, from the start of its daemon: the worst "
        f"of {RESTARTS} under each kind", "s", at_most=1.0, programs=PROGRAMS)
def restart_under_floods():
    detail = {}
    for mode in [None, *KINDS]:
        with Lab(LINKS) as lab:
            lab.start_gateways()
            lab.edge_gateway.wait_up(subflows=2)
            flood = Flood(lab, mode, RESTARTS * (PATIENCE + 2)) if mode else None
            time.sleep(2)
            detail[mode or "no flood"] = [round(_time_until_data(lab), 6) for _ in range(RESTARTS)]
            if flood:
                flood.require_reached(detail)
                flood.stop()
    return max(max(detail[mode]) for mode in KINDS), detail


GOODPUT_SECONDS = 8
ROUNDS = 3


def _goodputs(lab, nginx, modes, detail):
    """{mode: Mbit/s} of a download each, one after the other."""
    out, drops = {}, {}
    for mode in modes:
        flood = Flood(lab, mode, GOODPUT_SECONDS * 4) if mode else None
        time.sleep(1)
        before = lab.gateway.drops()
        path = nginx.add(f"file-{mode}-{time.monotonic_ns()}", int(GOODPUT_SECONDS * 70e6 / 8))
        download = Download(lab, f"http://{Lab.server_addresses()[0]}{path}").finish()
        if download.sha256 != nginx.sha256[path]:
            raise RuntimeError("the downloaded file differs from the served one")
        out[mode or "no flood"] = download.goodput_mbit()
        drops[mode or "no flood"] = _counted(before, lab.gateway.drops())
        if flood:
            flood.require_reached(detail)
            flood.stop()
    return out, drops


@target("shield.3", f"goodput of a download under {FAST} datagrams a second of noise, of strangers' hellos, of hellos "
        f"of who knows the pin / without: the least, each the median of {ROUNDS}", "ratio", at_least=0.95,
        programs=PROGRAMS)
def goodput_under_floods():
    modes = [mode for mode, rate in KINDS.items() if rate == FAST]
    rounds, drops, detail = [], {}, {}
    with Lab(LINKS) as lab:
        nginx = Nginx(lab)
        lab.start_gateways()
        lab.edge_gateway.wait_up(subflows=2)
        for _ in range(ROUNDS):
            each, drops = _goodputs(lab, nginx, [None, *modes], detail)
            rounds.append(each)
    ratios = {mode: [round(each[mode] / each["no flood"], 6) for each in rounds] for mode in modes}
    return min(median(values) for values in ratios.values()), detail | {
        "ratios": ratios, "mbit": [{mode: round(value, 1) for mode, value in each.items()} for each in rounds],
        "drops in the last round": drops}


KILLS = 5
KILL_STALL, KILL_IDLE = 0.6, 1.0  # seconds
KILL_SECONDS = 6  # duration of a download, seconds
SETTLED = 3  # seconds: a gateway saves its list of known initiators at most every 2 s


def _stall_of_a_kill(lab, nginx, gateway):
    """The longest pause of a download in whose middle a daemon is killed and started by its supervisor."""
    size = int(KILL_SECONDS * 70e6 / 8)
    path = nginx.add(str(size), size)
    download = Download(lab, f"http://{Lab.server_addresses()[0]}{path}")
    download.wait_for_size(size // 3)
    at = download.elapsed()
    gateway.kill_and_supervise()
    download.finish()
    if download.sha256 != nginx.sha256[path] or download.report["num_connects"] != 1:
        raise RuntimeError("the download did not survive whole over its one connection")
    return download.longest_stall(begin=at)


def _idle_gap_of_a_kill(lab, gateway):
    """Seconds from the kill until a host behind the concentrator reaches one behind the edge. Both hosts send
    nothing before, so no packet of theirs tells the edge that its session is lost."""
    time.sleep(SETTLED)
    begun = time.time()
    gateway.stop(9)
    echoes = Echoes(lab, lab.server, lab.sites[0].client_address[0])  # its packets are lost for now
    time.sleep(0.1)
    gateway.start()
    time.sleep(4)
    ended = time.time()
    return longest_gap([begun, *echoes.stop(), ended])


@target("shield.6", f"longest stall of a download, `kill -9` and restart by its supervisor, worst of {{edge, "
        f"concentrator}} x {KILLS}; a silent edge is out of reach from behind the concentrator for {KILL_IDLE} s at "
        "most", "s", at_most=KILL_STALL, programs=["braidd", "braidctl", "linkemu"])
def kills():
    detail, stalls, gaps = {}, [], []
    for name in ("edge", "concentrator"):
        with Lab(LINKS) as lab:
            nginx = Nginx(lab)
            lab.start_gateways()
            gateway = lab.edge_gateway if name == "edge" else lab.gateway
            each = {"stalls": [], "idle: unreachable for": []}
            for _ in range(KILLS):
                lab.edge_gateway.wait_up(subflows=2, timeout=30)
                time.sleep(SETTLED)
                each["stalls"].append(round(_stall_of_a_kill(lab, nginx, gateway), 6))
                lab.edge_gateway.wait_up(subflows=2, timeout=30)
                each["idle: unreachable for"].append(round(_idle_gap_of_a_kill(lab, gateway), 6))
            detail[name] = each
            stalls += each["stalls"]
            gaps += each["idle: unreachable for"]
    detail["idle: worst"] = max(gaps)
    if max(gaps) > KILL_IDLE:
        detail[MISSING] = f"idle: unreachable for {max(gaps)} s, more than {KILL_IDLE} s"
    return max(stalls), detail


@target("shield.8", f"datagrams that a stranger without the responder's pin gets in answer to {COUNT} of any kind",
        "datagrams", at_most=0, programs=["braidd", "braidctl", "linkemu"])
def silence():
    faults, detail = strangers()
    return detail["answers"] + detail["crashes"], {"faults of pair.6": faults, **detail}
