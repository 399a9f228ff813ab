"""Targets of order and protection by traffic: QUIC, VPNs, calls and games on WiFi and LTE, and a path that dies."""

import concurrent.futures
import copy
import json
import math
import pathlib
import time

from lab import Lab, Link, median
from lab.datagrams import DRAIN, p99
from lab.measure import iperf3
from lab.quic import stacks
from lab.services import Dnsmasq, Iperf3
from lab.wireguard import WireGuard, keys, program

from . import option, require, target
from ._duel import rounded
from .pair import LTE, PROGRAMS, WIFI

TOOLS = pathlib.Path(__file__).resolve().parents[1]
SERVER = Lab.server_addresses()[0]
LINKS = [WIFI, LTE]
PATH = Link("path", 80, 40)
ROUNDS, SECONDS, QUICK_SECONDS = 3, 20, 5
QUICK = option("--quick", action="store_true", help="one short look, without a verdict")
SETTINGS = option("--settings", metavar="JSON", default="{}", help="changes of both gateways' configuration")
OPTIONS = [QUICK, SETTINGS]
TAIL = 12  # ms by which a p99 may exceed that when idle
LOST_SHARE = 0.0005  # share of a steady flow's packets, beside a download
START = 1  # seconds of downloads before something else is measured beside them


def extent(quick, seconds=SECONDS):
    """(rounds, seconds of a run)"""
    return (1, min(seconds, QUICK_SECONDS)) if quick else (ROUNDS, seconds)


def opened(links, settings):
    """A lab, not yet entered, and what to start its gateways with."""
    changes = json.loads(settings)
    return Lab(links), {"edge": copy.deepcopy(changes), "concentrator": copy.deepcopy(changes)}


def tcp_download(lab, seconds, parallel=1, address=SERVER):
    """Mbit/s of payload of TCP downloads, one or several at once, all together."""
    return iperf3(lab, address, "-R", "-P", parallel, seconds=seconds)["end"]["sum_received"]["bits_per_second"] / 1e6


def _downloads(links, settings, rounds, seconds):
    """{"TCP" or a stack: Mbit/s of each round}, in turns."""
    lab, changes = opened(links, settings)
    with lab:
        lab.start_gateways(**changes)
        Iperf3(lab)
        ways = {"TCP": lambda length: tcp_download(lab, length)}
        rate = sum(link.rate_mbit for link in links)
        ways |= {stack.name: stack.download for stack in stacks(lab, SERVER, rate, seconds)}
        results = {name: [] for name in ways}
        for number in range(rounds):
            for name in list(ways)[::-1 if number % 2 else 1]:
                results[name].append(ways[name](seconds))
    return results


def quic_value(over_links, over_path):
    """(value, stack): of each stack its goodput over the links, against TCP there or against itself on one path where
    that is less; the smaller value of both stacks. Arguments: {"TCP" or stack: Mbit/s}."""
    values = {name: goodput / min(over_links["TCP"], over_path[name]) for name, goodput in over_links.items()
              if name != "TCP"}
    worst = min(values, key=values.get)
    return values[worst], worst


@target("order.1", f"QUIC download of {SECONDS} s, WiFi 50/20ms/1% + LTE 30/60ms/0.1%: goodput / TCP's there, or / "
        "the same stack's on one loss-free path of 80 Mbit/s and 40 ms where that is less; medians of 3, the worse of "
        "ngtcp2 and quic-go", "ratio", at_least=0.90, programs=PROGRAMS, options=OPTIONS)
def quic(quick, settings):
    rounds, seconds = extent(quick)
    over_links, over_path = (_downloads(links, settings, rounds, seconds) for links in (LINKS, [PATH]))
    value, stack = quic_value(*({name: median(runs) for name, runs in each.items()}
                                for each in (over_links, over_path)))
    detail = {"Mbit/s over both links": over_links, "Mbit/s over one path": over_path, "worse stack": stack,
              "seconds of a run": seconds}
    return value, detail


def _steady(lab, flows, seconds, dns=None):
    """The results of lab.datagrams for flows between client and server."""
    path = lab.directory / "datagrams.json"
    path.write_text(json.dumps({"near": lab.client.name, "far": lab.server.name, "address": SERVER,
                                "seconds": seconds, "flows": flows, "dns": dns}), encoding="ascii")
    out = lab.directory / "datagrams.out"
    with open(out, "wb") as file:
        process = lab.start(None, "datagrams", ["env", f"PYTHONPATH={TOOLS}", "python3", "-m", "lab.datagrams", path],
                            stdout=file)
    if process.wait(seconds + 60) != 0:
        raise RuntimeError(lab.log_tail("datagrams"))
    return json.loads(out.read_text(encoding="ascii"))


def above_idle(idle, busy):
    """{"flow way": {"sent", "lost", "idle p99 ms", "p99 ms", "above ms", "sent late"}} of two results of
    lab.datagrams. Idle, so few may be lost that the p99 is of one that came: it is what the other is judged by."""
    table = {}
    for flow, ways in busy.items():
        for way, each in ways.items():
            before, during = p99(idle[flow][way]), p99(each)
            if before >= DRAIN * 1e3:
                raise RuntimeError(f"{flow} {way}: {idle[flow][way]['lost']} of {idle[flow][way]['sent']} lost "
                                   "when idle")
            table[f"{flow} {way}"] = {"sent": each["sent"], "lost": each["lost"], "idle p99 ms": before,
                                      "p99 ms": during, "above ms": during - before, "sent late": each["late"],
                                      "lost when idle": idle[flow][way]["lost"]}
    return table


CALL = [{"name": "call", "port": 4600, "rate": 50, "size": 172}]
CALL_SECONDS, MOST_LOST, KEPT = 300, 8, 0.97
IDLE_SECONDS = 100  # of what a flow beside a download is compared with: 100 questions and thousands of packets
ALONE_SECONDS = 120


def call_beside(settings, seconds, parallel=1):
    """One round in a fresh lab: the call alone, then `downloads` downloads alone, each for a part of the time, then
    both."""
    lab, changes = opened(LINKS, settings)
    with lab, concurrent.futures.ThreadPoolExecutor() as pool:
        lab.start_gateways(**changes)
        Iperf3(lab)
        idle = _steady(lab, CALL, min(seconds, IDLE_SECONDS))
        alone = tcp_download(lab, min(seconds, ALONE_SECONDS), parallel)
        download = pool.submit(tcp_download, lab, seconds + 2 * START + 2, parallel)
        time.sleep(START)
        busy = _steady(lab, CALL, seconds)
        beside = download.result()
    table = above_idle(idle, busy)
    return {"lost": max(row["lost"] for row in table.values()),
            "above ms": max(row["above ms"] for row in table.values()),
            "kept": beside / alone, "Mbit/s alone": alone, "Mbit/s beside": beside, **table}


@target("order.2", "a call (50 packets/s of 172 bytes, each way, five minutes) beside a download, WiFi + LTE: lost of "
        f"15,000, the worse way; p99 one-way delay at most {TAIL} ms above idle, the download keeps {KEPT} of its "
        "goodput; medians of 3", "packets", at_most=MOST_LOST, programs=PROGRAMS, options=OPTIONS)
def call(quick, settings):
    rounds, seconds = extent(quick, CALL_SECONDS)
    runs = [call_beside(settings, seconds) for _ in range(rounds)]
    lost, above, kept = (median(run[key] for run in runs) for key in ("lost", "above ms", "kept"))
    detail = {"p99 above idle ms": above, "download kept": rounded(kept), "seconds of a run": seconds, "runs": runs}
    require(detail, above <= TAIL, f"p99 {above:.1f} ms above idle, at most {TAIL} may be")
    require(detail, kept >= KEPT, f"the download keeps {kept:.3f}, at least {KEPT} must be")
    return lost, detail


ONE_WAY_RATES = [10, 50, 200]  # packets a second of a call
ONE_WAY_SECONDS = 50
ONE_WAY_PACKETS = 5000  # of a variant, at least: by several calls at once where one would take long
AHEAD = 3  # seconds by which the first one starts before the other
WAYS = ["up", "down"]


def one_way_flows(rate, to):
    """Enough calls to that address to send ONE_WAY_PACKETS in ONE_WAY_SECONDS."""
    count = math.ceil(ONE_WAY_PACKETS / (rate * ONE_WAY_SECONDS))
    return [{"name": f"call {i}", "port": 4700 + i, "rate": rate, "size": CALL[0]["size"], "to": to}
            for i in range(count)]


def pooled(result, way):
    """One direction of all flows of a result of lab.datagrams, as of one flow."""
    ways = [each[way] for each in result.values()]
    return {**{key: sum(each[key] for each in ways) for key in ("sent", "late", "lost")},
            "delays": [delay for each in ways for delay in each["delays"]]}


def one_way_beside(settings, seconds, rate, way, call_first):
    """One variant in a fresh lab: calls alone, the download alone, then both."""
    lab, changes = opened(LINKS, settings)
    with lab, concurrent.futures.ThreadPoolExecutor() as pool:
        lab.start_gateways(**changes)
        Iperf3(lab)
        flows = one_way_flows(rate, SERVER if way == "up" else lab.sites[0].client_address[0])
        idle = _steady(lab, flows, seconds / 5)
        alone = tcp_download(lab, round(seconds * 0.4))
        if call_first:
            calls = pool.submit(_steady, lab, flows, seconds)
            time.sleep(AHEAD)
            beside = tcp_download(lab, seconds - AHEAD)
            busy = calls.result()
        else:
            download = pool.submit(tcp_download, lab, seconds + AHEAD + 2)
            time.sleep(AHEAD)
            busy = _steady(lab, flows, seconds)
            beside = download.result()
    row = above_idle({"calls": {way: pooled(idle, way)}}, {"calls": {way: pooled(busy, way)}})[f"calls {way}"]
    return {**row, "calls": len(flows), "kept": beside / alone}


@target("order.2b", "calls of one way (172 bytes; 10, 50 and 200 packets/s; in each direction, begun 3 s before and "
        f"3 s after) beside a download, WiFi + LTE, {ONE_WAY_PACKETS} packets of each variant: share lost, the worst "
        f"variant; p99 one-way delay at most {TAIL} ms above idle, the download keeps {KEPT} of its goodput (median)",
        "share", at_most=LOST_SHARE, programs=PROGRAMS, options=OPTIONS)
def one_way_call(quick, settings):
    seconds = QUICK_SECONDS if quick else ONE_WAY_SECONDS
    rows = {f"{rate}/s {way}, {'call' if call_first else 'download'} first":
            one_way_beside(settings, seconds, rate, way, call_first)
            for rate in ONE_WAY_RATES for way in WAYS for call_first in (True, False)}
    return one_way_value(rows)


def one_way_value(rows):
    """(value, detail) of {variant: what one_way_beside() returns}."""
    lost = {variant: row["lost"] / row["sent"] for variant, row in rows.items()}
    above = {variant: row["above ms"] for variant, row in rows.items()}
    worst, slowest = max(lost, key=lost.get), max(above, key=above.get)
    kept = median(row["kept"] for row in rows.values())
    detail = {"worst variant": worst, "p99 above idle ms": above[slowest], "of": slowest,
              "download kept": rounded(kept), "variants": rows}
    require(detail, above[slowest] <= TAIL, f"{slowest}: p99 {above[slowest]:.1f} ms above idle")
    require(detail, kept >= KEPT, f"the download keeps {kept:.3f}, at least {KEPT} must be")
    fewest = min(row["sent"] for row in rows.values())
    require(detail, fewest >= ONE_WAY_PACKETS, f"{fewest} packets of a variant, {ONE_WAY_PACKETS} must be")
    return lost[worst], detail


INNER = {"client": "10.99.0.1", "server": "10.99.0.2"}
DEVICE, MOST_AROUND = "braid0", 80  # bytes that WireGuard adds over IPv6, the larger ones


def _wireguard(lab, mtu):
    """wireguard-go at client and server, one through Braid to the other. Returns its version."""
    executable, version, _ = program()
    near, far = keys(), keys()
    ends = [(lab.server, far[0], near[1], "server", "client", None),
            (lab.client, near[0], far[1], "client", "server", SERVER)]
    for space, private, public, own, other, endpoint in ends:
        daemon = WireGuard(lab, space, private)
        daemon.start(executable, public, [f"{INNER[other]}/32"], endpoint=endpoint, mtu=mtu, own=f"{INNER[own]}/32")
    lab.wait_for(lambda: " 0% packet loss" in lab.client.run("ping", "-n", "-c", 1, "-W", 1, INNER["server"],
                                                             check=False), "WireGuard to carry a ping")
    return version


def _inside(quick, settings, mtu):
    """(ratio, detail) of a TCP download through WireGuard against one beside it. `mtu`: of WireGuard's device; None:
    what is left of the tunnel's."""
    rounds, seconds = extent(quick)
    lab, changes = opened(LINKS, settings)
    runs = []
    with lab:
        lab.start_gateways(**changes)
        Iperf3(lab)
        if mtu is None:
            mtu = int(lab.concentrator.run("cat", f"/sys/class/net/{DEVICE}/mtu")) - MOST_AROUND
        version = _wireguard(lab, mtu)
        for number in range(rounds):
            rates = {address: tcp_download(lab, seconds, address=address)
                     for address in (SERVER, INNER["server"])[::-1 if number % 2 else 1]}
            plain, inside = rates[SERVER], rates[INNER["server"]]
            runs.append({"plain Mbit/s": plain, "inside Mbit/s": inside, "ratio": inside / plain})
    detail = {"runs": runs, "wireguard-go": version, "MTU inside": mtu, "seconds of a run": seconds}
    return median(run["ratio"] for run in runs), detail


@target("order.3", "one TCP download through wireguard-go through Braid / through Braid, WiFi + LTE, median of 3 in "
        "turns", "ratio", at_least=0.85, programs=PROGRAMS,
        options=[*OPTIONS, option("--mtu", type=int, default=1420, help="of WireGuard's device; 1420 is its default")])
def vpn(quick, settings, mtu):
    return _inside(quick, settings, mtu)


# wireguard-go gives the kernel batches to split (UDP GSO). The kernel refuses a batch of datagrams
# larger than the path's MTU ("sendmmsg: message too long" in its log), so nothing of it reaches the
# tunnel.
@target("order.3b", "the same with the MTU that WireGuard is given where the path's is known (wg-quick(8)): 80 bytes "
        "less", "ratio", at_least=0.85, programs=PROGRAMS, options=OPTIONS)
def fitting_vpn(quick, settings):
    return _inside(quick, settings, None)


GAME = [{"name": "game", "port": 4601, "rate": 30, "size": 100}]
NAME = "game.test"
GAME_SECONDS = 300


def _game(settings, seconds):
    """One round in a fresh lab: idle, then beside downloads by TCP and by both QUIC stacks."""
    lab, changes = opened(LINKS, settings)
    with lab, concurrent.futures.ThreadPoolExecutor() as pool:
        lab.start_gateways(**changes)
        Iperf3(lab)
        Dnsmasq(lab, {NAME: SERVER})
        length = seconds + 2 * START + 2
        sources = stacks(lab, SERVER, sum(link.rate_mbit for link in LINKS), length)
        idle = _steady(lab, GAME, min(seconds, IDLE_SECONDS), NAME)
        downloads = {"TCP": pool.submit(tcp_download, lab, length),
                     **{stack.name: pool.submit(stack.download, length) for stack in sources}}
        time.sleep(START)
        busy = _steady(lab, GAME, seconds, NAME)
        rates = {name: done.result() for name, done in downloads.items()}
    table = above_idle(idle, busy)
    return {"lost": max(row["lost"] / row["sent"] for row in table.values()),
            "above ms": max(row["above ms"] for row in table.values()), "Mbit/s": rates, **table}


@target("order.5", "a game (30 packets/s of 100 bytes each way) and DNS (1 question/s) beside TCP and QUIC downloads, "
        f"WiFi + LTE, five minutes: p99 above idle, the worst way; lost at most {LOST_SHARE:.2%}; medians of 3", "ms",
        at_most=TAIL, programs=PROGRAMS, options=OPTIONS)
def game(quick, settings):
    rounds, seconds = extent(quick, GAME_SECONDS)
    runs = [_game(settings, seconds) for _ in range(rounds)]
    above, lost = (median(run[key] for run in runs) for key in ("above ms", "lost"))
    detail = {"lost": rounded(lost), "seconds of a run": seconds, "runs": runs}
    require(detail, lost <= LOST_SHARE, f"{lost:.3%} lost, at most {LOST_SHARE:.2%} may be")
    return above, detail
