"""Rate control in the lab, with real kernels at both ends: the utilisation of lossy WiFi and LTE."""

import threading
import time

from lab import Link, median

from . import target
from .pair import PAYLOAD_SHARE, PROGRAMS, Pair
from .rate_wan import bulk_in_virtual_time

DOWNLOAD_SECONDS = 60
SAMPLE_SECONDS = 0.02
LTE_BUFFER_SECONDS = 0.2


def _links(wifi_loss, lte_loss):
    lte = Link("lte", 30, 60, lte_loss)
    lte.more["queue_bytes"] = int(lte.rate_mbit * 1e6 / 8 * LTE_BUFFER_SECONDS)
    return [Link("wifi", 50, 20, wifi_loss), lte]


class _Queues(threading.Thread):
    """Samples the links' queues towards the client until stopped: delays in ms, one list per link."""

    def __init__(self, lab):
        super().__init__(daemon=True)
        self._lab = lab
        self._over = threading.Event()
        self.delays = {link.name: [] for link in lab.sites[0].links}
        self.start()

    def run(self):
        rates = {link.name: link.rate_mbit * 1e6 / 8 for link in self._lab.sites[0].links}
        while not self._over.wait(SAMPLE_SECONDS):
            for name, link in self._lab.links.stats()["links"].items():
                if name in self.delays:
                    self.delays[name].append(link["ba"]["queue_bytes"] / rates[name] * 1000)

    def finish(self, percentile=0.95):
        self._over.set()
        self.join()
        return {name: round(sorted(delays)[int(percentile * (len(delays) - 1))], 1)
                for name, delays in self.delays.items() if delays}


def _download(wifi_loss, lte_loss, sender, seed, changes):
    """Goodput over (sum of link rates x 1448/1500), the p95 of the links' queues in ms, and both links' shares."""
    with Pair(_links(wifi_loss, lte_loss), seed=seed, edge=changes, concentrator=changes) as pair:
        pair.lab.server.set_congestion_control(sender)
        path = pair.file(DOWNLOAD_SECONDS)
        queues = _Queues(pair.lab)
        done = pair.download(path).finish()
        delays = queues.finish()
        pair.verify(done)
        rate = sum(link.rate_mbit for link in pair.lab.sites[0].links) * PAYLOAD_SHARE
        after = done.rate_mbit(3, done.seconds) / rate
        return done.goodput_mbit() / rate, delays, after


@target("rate.2", "goodput of one download over WiFi 50 Mbit/s 20 ms 1 % loss + LTE 30 Mbit/s 60 ms 0.1 % loss (200 "
        "ms of buffer) / (sum of link rates x 1448/1500); the smaller of a cubic and a bbr sender, each the median of "
        "3", "ratio", at_least=0.92, programs=[*PROGRAMS, "braid-sim"])
def lossy_download():
    value, detail = measure(3)
    detail["in virtual time: smallest, mean, largest share of 3 seeds"] = bulk_in_virtual_time()
    return value, detail


def measure(runs, changes=None):
    """The measurement of rate.2. `changes`: of both gateways' configuration, for comparisons."""
    began = time.monotonic()
    detail = {"download_s": DOWNLOAD_SECONDS, "measured": "whole download, TCP handshake and slow start included"}
    values = []
    for sender in ("cubic", "bbr"):
        for title, wifi_loss, lte_loss, count in (("1 %", 0.01, 0.001, runs), ("2 %", 0.02, 0.001, 1),
                                                  ("no loss", 0, 0, 1)):
            results = [_download(wifi_loss, lte_loss, sender, seed + 1, changes or {}) for seed in range(count)]
            ratios = [ratio for ratio, _, _ in results]
            detail[f"{sender}, WiFi {title}"] = [round(ratio, 4) for ratio in ratios]
            detail[f"{sender}, WiFi {title}, without the first 3 s"] = [round(after, 4) for _, _, after in results]
            detail[f"{sender}, WiFi {title}, p95 of the queues in ms"] = [delays for _, delays, _ in results]
            if title == "1 %":
                values.append(median(ratios))
    detail["measuring_s"] = round(time.monotonic() - began)
    return min(values), detail
