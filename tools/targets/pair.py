"""Targets of a pair of gateways: aggregation, fail-over, order, robustness."""

import json
import subprocess

from lab import Download, Lab, Link, binary, median
from lab.gateway import shares
from lab.measure import cpu_seconds, difference
from lab.services import Nginx

from . import require, target
from ._strangers import strangers

PROGRAMS = ["braidd", "braidctl", "linkemu"]
WIFI, LTE = Link("wifi", 50, 20, 0.01), Link("lte", 30, 60, 0.001)
PAYLOAD_SHARE = 1448 / 1500  # TCP payload of a full packet with time stamps


class Pair:
    """A lab with both gateways and nginx running."""

    def __init__(self, links, seed=1, **gateways):
        self.lab = Lab(links, seed=seed)
        self._gateways = gateways

    def __enter__(self):
        self.lab.__enter__()
        try:
            self.nginx = self.serve()
            self.lab.start_gateways(**self._gateways)
        except BaseException:
            self.lab.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *error):
        self.lab.__exit__(*error)

    def serve(self):
        """The server's nginx; called before the gateways start."""
        return Nginx(self.lab)

    def file(self, seconds):
        """A file whose download takes about `seconds` when all links are full."""
        megabits = sum(link.rate_mbit for link in self.lab.sites[0].links)
        size = int(seconds * megabits * 1e6 / 8 * 0.92)
        return self.nginx.add(f"{size}", size)

    def download(self, path):
        return Download(self.lab, f"http://{Lab.server_addresses()[0]}{path}")

    def verify(self, download):
        """The file is whole and came over one TCP connection."""
        if download.sha256 != self.nginx.sha256["/" + download.url.rpartition("/")[2]]:
            raise RuntimeError("the downloaded file differs from the served one")
        if download.report["num_connects"] != 1:
            raise RuntimeError(f"{download.report['num_connects']} TCP connections instead of one")


DOWNLOAD_SECONDS = 15
FAILURE_SECONDS = 3  # for the detail: stalls that begin within this time of the failure


@target("pair.1", "goodput of one TCP download through the pair / (sum of link rates x 1448/1500); the smallest of "
        "50+30 and 100+100 Mbit/s, cubic and bbr, each the median of 3", "ratio", at_least=0.90, programs=PROGRAMS)
def aggregation():
    detail = {"download_s": DOWNLOAD_SECONDS, "measured": "whole download, TCP handshake and slow start included"}
    worst = float("inf")
    for links in ([Link("wifi", 50, 20), Link("lte", 30, 60)], [Link("wifi", 100, 20), Link("lte", 100, 20)]):
        rate = sum(link.rate_mbit for link in links)
        title = "+".join(f"{link.rate_mbit}/{link.rtt_ms}ms" for link in links)
        with Pair(links) as pair:
            path = pair.file(DOWNLOAD_SECONDS)
            for sender in ("cubic", "bbr"):
                pair.lab.server.set_congestion_control(sender)
                ratios = []
                for _ in range(3):
                    processor = cpu_seconds(pair.lab.gateway.process.pid)
                    done = pair.download(path).finish()
                    pair.verify(done)
                    ratios.append(done.goodput_mbit() / (rate * PAYLOAD_SHARE))
                    processor = (cpu_seconds(pair.lab.gateway.process.pid) - processor) / done.seconds
                detail[f"{title} {sender}"] = [round(ratio, 4) for ratio in ratios]
                detail[f"{title} {sender} cpu of the sending gateway"] = round(processor, 2)
                worst = min(worst, median(ratios))
    return worst, detail


def stalls_of(runs, fail, restore):
    """The longest stall of a download during which a link fails, for each of `runs` runs in fresh labs."""
    stalls, near = [], []
    for run in range(runs):
        with Pair([WIFI, LTE], seed=run + 1) as pair:
            path = pair.file(6)
            done = pair.download(path)
            done.wait_for_size(int(path[1:]) // 3)
            at = done.elapsed()
            fail(pair.lab)
            done.finish()
            restore(pair.lab)
            pair.verify(done)
            stalls.append(done.longest_stall(begin=at))
            near.append(done.longest_stall(begin=at, end=at + FAILURE_SECONDS))
    return max(stalls), {"runs": [round(stall, 3) for stall in stalls], "links": "50/20ms/1% + 30/60ms/0.1%",
                         f"within {FAILURE_SECONDS} s of the failure": [round(stall, 3) for stall in near]}


@target("pair.2", "WiFi silently dead in mid-download: longest stall at the receiver, worst of 5", "s", at_most=0.28,
        programs=PROGRAMS)
def silent_death():
    return stalls_of(5, lambda lab: lab.links.set("wifi", down=True), lambda lab: lab.links.set("wifi", down=False))


@target("pair.3", "uplink interface set down at the edge in mid-download: longest stall at the receiver, worst of 5",
        "s", at_most=0.11, programs=PROGRAMS)
def interface_down():
    return stalls_of(5, lambda lab: lab.edge.ip("link", "set", "wifi0", "down"), lambda lab: None)


@target("pair.4", "failed runs of 10,000 randomised virtual-time runs", "runs", at_most=0, programs=["sim_chaos"])
def chaos():
    runs = 10_000
    done = subprocess.run([binary("sim_chaos"), "--runs", str(runs), "--seed", "1"], stdout=subprocess.PIPE, text=True)
    result = json.loads(done.stdout.strip().splitlines()[-1])
    if result["runs"] != runs:
        raise RuntimeError(f"sim_chaos made {result['runs']} runs of {runs}")
    return result["failed"], result


# Least share of the bytes on each of two links, because on a single link there would be no reordering
LEAST_SHARE = 0.2

target("pair.5", "crashes, answers larger than the question, unbounded growth and uncounted drops under 1,000,000 "
       "datagrams from strangers, with a transfer going on", "faults", at_most=0, programs=PROGRAMS)(strangers)


@target("pair.6", "out-of-order segments that the client's kernel counts (TCPOFOQueue) in a 30 s download, WiFi "
        "50/20ms/1% + LTE 30/60ms/0.1%; the larger of a cubic and a bbr sender", "segments", at_most=0,
        programs=PROGRAMS)
def order():
    detail = {}
    worst = 0
    for sender in ("cubic", "bbr"):
        with Pair([WIFI, LTE]) as pair:
            pair.lab.server.set_congestion_control(sender)
            path = pair.file(30)
            client, server = pair.lab.client.counters(), pair.lab.server.counters()
            paths, drops = pair.lab.edge_gateway.paths(), pair.lab.gateway.drops()
            done = pair.download(path).finish()
            pair.verify(done)
            client = difference(pair.lab.client.counters(), client)
            server = difference(pair.lab.server.counters(), server)
            used = shares(paths, pair.lab.edge_gateway.paths())
            detail[sender] = {"out_of_order": client["TcpExt.TCPOFOQueue"],
                              "goodput_mbit": round(done.goodput_mbit(), 1),
                              "download_s": round(done.seconds, 1),
                              "retransmitted_by_server": server["Tcp.RetransSegs"],
                              "aqm_drops": pair.lab.gateway.drops()["aqm"] - drops["aqm"],
                              "shares": {name: round(share, 3) for name, share in used.items()}}
            require(detail, min(used.values()) >= LEAST_SHARE, f"{sender}: both links, which carried {used}")
            worst = max(worst, client["TcpExt.TCPOFOQueue"])
    return worst, detail
