"""Targets of the stream lane, in which TCP connections end at the gateways; on real kernels."""

import concurrent.futures
import itertools
import random
import time

from lab import Lab, Link, median, percentile
from lab.requests import ask, connect

from . import require, target
from ._duel import OPTIONS as DUEL_OPTIONS
from ._duel import PROGRAMS as DUEL_PROGRAMS
from ._duel import Duel, rounded, stream
from ._shim_lab import LAB_PROGRAMS, ShimLab
from .order import QUICK, ROUNDS, TOOLS
from .order_shim import ANSWERS, QUICK_ANSWERS, TO_CLIENT, ask_persistently, serve_answers
from .order_shim import PORT as ANSWER_PORT
from .pair import LTE, PAYLOAD_SHARE, PROGRAMS, WIFI, Pair
from .shim import LOSS

WEB_PORT, IPERF_PORT = 8080, 5201
TUNNELLED, DIRECT = Lab.server_addresses()[0], Lab.server_addresses(0)[0]  # the latter over the first link, alone


def streams(*ports):
    """A gateway's configuration with these ports in the stream lane."""
    return {"streams": {"enabled": "on", "match": [{"ports": port} for port in ports]}}


def wait_taking(lab):
    for gateway in lab.gateways():
        lab.wait_for(lambda gateway=gateway: gateway.status()["streams"]["intercepting"],
                     f"{gateway.name} to take connections over")


def _taken(lab):
    """Connections that the edge has taken over."""
    return lab.edge_gateway.status()["streams"]["accepted"]


# ---- stream.1

WEB_LINKS = [Link("clean", 100, 50), Link("lossy", 100, 50, 0.02)]
FETCHES, QUICK_FETCHES, AT_ONCE = 400, 60, 4  # cold connections of a run
SMALLEST, LARGEST = 4_000, 200_000  # bytes of an answer


def _fetch(lab, address, seed, count):
    """Seconds from connect() to the last byte of answers on new connections. Raises when anything goes wrong."""
    source, room, times = random.Random(seed), bytearray(LARGEST), []
    for _ in range(count):
        time.sleep(source.uniform(0, 0.1))
        began = time.monotonic()
        with lab.client.inside(connect, address, WEB_PORT) as handle:
            ask(handle, source.randint(SMALLEST, LARGEST), room)
        times.append(time.monotonic() - began)
    return times


def _fetch_all(lab, address, seed, count):
    for host in (lab.client, lab.server):
        host.ip("tcp_metrics", "flush", "all")  # what the kernels remember of each other
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = [pool.submit(_fetch, lab, address, f"{seed}.{number}", count // AT_ONCE) for number in range(AT_ONCE)]
        return [each for one in done for each in one.result()]


@target("stream.1", "web: two paths of 100 Mbit/s and 50 ms, 2 % loss on one, cold connections of 4 to 200 KB, "
        "connect() included: p99 of the flow completion time / the same over the loss-free path alone without Braid, "
        "median of 3 in turns", "ratio", at_most=0.45, programs=PROGRAMS, options=[QUICK])
def web(quick):
    rounds, count = (1, QUICK_FETCHES) if quick else (ROUNDS, FETCHES)
    with Lab(WEB_LINKS) as lab:
        lab.start_gateways(streams(WEB_PORT), streams(WEB_PORT))
        wait_taking(lab)
        for address in (TUNNELLED, DIRECT):
            lab.start(lab.server, f"requests {address}",
                      ["env", f"PYTHONPATH={TOOLS}", "python3", "-m", "lab.requests", address, WEB_PORT])
            lab.wait_for_line(f"requests {address}", "ready")
        before, runs = _taken(lab), []
        for number in range(rounds):
            alone, through = (_fetch_all(lab, address, number, count) for address in (DIRECT, TUNNELLED))
            runs.append({f"{name} {key} ms": rounded(percentile(times, share) * 1e3)
                         for name, times in (("without Braid", alone), ("streams", through))
                         for key, share in (("p50", 0.5), ("p99", 0.99))}
                        | {"ratio": percentile(through, 0.99) / percentile(alone, 0.99)})
        taken = _taken(lab) - before
    detail = {"runs": runs, "connections of a run": count, "connections in the stream lane": taken}
    require(detail, taken == rounds * count, f"{taken} of {rounds * count} connections were in the stream lane")
    return median(run["ratio"] for run in runs), detail


# ---- stream.2

SECONDS, QUICK_SECONDS = 20, 5
FAR = [Link("west", 50, 180, 0.01), Link("east", 50, 220, 0.01)]
SHALLOW = [Link(name, 100, 20, more={"queue_bytes": 30_000}) for name in ("left", "right")]
SENDERS, LEAST_FAR, LEAST_SHALLOW = ("cubic", "bbr", "reno"), 0.80, 0.85


def _goodputs(links, senders, rounds, seconds):
    """{sender: goodput of each round / (sum of the links' rates x 1448/1500)}, start included."""
    rate, results = sum(link.rate_mbit for link in links) * PAYLOAD_SHARE, {}
    with Pair(links, edge=streams(80), concentrator=streams(80)) as pair:
        wait_taking(pair.lab)
        path, before = pair.file(seconds), _taken(pair.lab)
        for _ in range(rounds):
            for sender in senders:
                pair.lab.server.set_congestion_control(sender)
                done = pair.download(path).finish()
                pair.verify(done)
                results.setdefault(sender, []).append(done.goodput_mbit() / rate)
        taken = _taken(pair.lab) - before
    if taken != rounds * len(senders):
        raise RuntimeError(f"{taken} of {rounds * len(senders)} downloads were in the stream lane")
    return results


@target("stream.2", "WiFi 50 Mbit/s 20 ms 1 % + LTE 30 Mbit/s 60 ms 0.1 %: goodput of a 20 s download in the stream "
        "lane, start included, smallest of cubic, bbr and reno senders, each the median of 3 / (80 Mbit/s x 1448/1500)"
        f"; two paths of 50 Mbit/s at 180 and 220 ms, 1 %: at least {LEAST_FAR}, two of 100 Mbit/s with 30 KB of "
        f"buffer: at least {LEAST_SHALLOW}", "ratio", at_least=0.94, programs=PROGRAMS, options=[QUICK])
def bulk(quick):
    rounds, seconds = (1, QUICK_SECONDS) if quick else (ROUNDS, SECONDS)
    near, far, shallow = (_goodputs(links, SENDERS, rounds, seconds) for links in ([WIFI, LTE], FAR, SHALLOW))
    least = {name: min(median(runs) for runs in each.values())
             for name, each in (("near", near), ("far", far), ("shallow", shallow))}
    detail = {"WiFi + LTE": near, "far": far, "shallow": shallow, "least": least, "seconds of a run": seconds}
    require(detail, least["far"] >= LEAST_FAR, f"far: {least['far']:.3f}, at least {LEAST_FAR} must be")
    require(detail, least["shallow"] >= LEAST_SHALLOW,
            f"shallow: {least['shallow']:.3f}, at least {LEAST_SHALLOW} must be")
    return least["near"], detail


# ---- stream.3

LANES = {"packets": {"streams": {"enabled": "off"}}, "streams": streams(IPERF_PORT)}


@target("stream.3", "one TCP stream over an unlimited path: CPU of both daemons for a byte of payload through the "
        "stream lane / through the packet lane, median of runs in turns", "ratio", at_most=0.6, programs=DUEL_PROGRAMS,
        options=DUEL_OPTIONS)
def cost_of_a_byte(quick, settings):
    with Duel(quick, settings, rival=False) as duel:
        braid, results, taken = duel.contenders[0], {name: [] for name in LANES}, 0
        for number in range(duel.rounds_wanted):
            for name in list(LANES)[::-1 if number % 2 else 1]:
                for gateway in duel.lab.gateways():
                    gateway.config |= LANES[name]
                with duel.running(braid):
                    if name == "streams":
                        wait_taking(duel.lab)
                    results[name].append(stream(duel, braid))
                    taken += _taken(duel.lab) > 0 if name == "streams" else 0
        detail = {"rounds": duel.rounds_wanted, "seconds of a run": duel.seconds,
                  **{name: {key: rounded(median(each[key] for each in runs)) for key in runs[0]}
                     for name, runs in results.items()}}
        require(detail, taken == duel.rounds_wanted, f"{taken} of {duel.rounds_wanted} runs were in the stream lane")
        return median(a["ns per byte"] / b["ns per byte"]
                      for a, b in zip(results["streams"], results["packets"])), detail


# ---- stream.7

def _lossy_lan(quick, way):
    """(ratio, detail) of answers to persistent connections. `way`: of ShimLab.lose()."""
    rounds, count = (1, QUICK_ANSWERS) if quick else (ROUNDS, ANSWERS)
    times = {"packets": [], "streams": []}
    with ShimLab("down") as lab:
        serve_answers(lab)
        lab.lab.switch_ack_shim(False)
        for number, name in itertools.product(range(rounds), times):
            lab.lose(0)
            for gateway in lab.lab.gateways():
                gateway.config |= streams(ANSWER_PORT) if name == "streams" else LANES["packets"]
                gateway.stop()
                gateway.start()
            lab.lab.edge_gateway.wait_up(subflows=1)
            if name == "streams":
                wait_taking(lab.lab)
            lab.lose(LOSS, way)
            times[name].append(percentile(ask_persistently(lab, number, count), 0.99))
            if name == "streams" and not _taken(lab.lab):
                raise RuntimeError("no connection was in the stream lane")
    ratios = [through / without for through, without in zip(times["streams"], times["packets"])]
    detail = {"p99 ms": {name: [rounded(each * 1e3) for each in runs] for name, runs in times.items()},
              "ratios": list(map(rounded, ratios)), "answers of a run": 8 * count}
    return median(ratios), detail


@target("stream.7", "2 % loss in the client's LAN, eight persistent connections, answers of 3 to 40 KB: p99 through "
        "the stream lane / in the packet lane without the shim, median of 3 in turns", "ratio", at_most=0.45,
        programs=LAB_PROGRAMS, options=[QUICK])
def lossy_lan(quick):
    return _lossy_lan(quick, None)


# See order.4b: the client itself must resend a lost question.
@target("stream.7b", "the same with loss on the way to the client alone", "ratio", at_most=0.45,
        programs=LAB_PROGRAMS, options=[QUICK])
def answers_in_a_lossy_lan(quick):
    return _lossy_lan(quick, TO_CLIENT)
