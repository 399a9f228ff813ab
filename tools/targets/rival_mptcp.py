"""Braid beside the kernel's own Multipath TCP (RFC 8684), which both hosts of a connection must speak.

MPTCP has the easier task: curl runs on the edge itself, which has both uplinks, and both programs are started by
mptcpize(8). Braid's client is an unmodified host behind the edge. "WiFi alone" is TCP over the first uplink.
"""

import platform

from lab import Lab, median
from lab.measure import Download
from lab.services import Nginx

from . import require, target
from ._builds import dependencies
from ._duel import rounded
from .order import QUICK, ROUNDS
from .pair import LTE, PROGRAMS, WIFI, Pair
from .streams import streams, wait_taking

SECONDS = 5  # of a download at the sum of both links' rates: 46 MB
TUNNELLED, DIRECT = Lab.server_addresses()[0], Lab.server_addresses(0)[0]  # the latter over WiFi, without Braid
SENDERS = ("cubic", "bbr")
SECOND_TABLE, SUBFLOWS = 100, 2
JOINED = "kernel MPTCP's joined subflows"


class _Rivals(Pair):
    """Both gateways with port 80 in the stream lane, and the edge as a host of MPTCP with two uplinks."""

    def __init__(self, seed=1):
        super().__init__([WIFI, LTE], seed=seed, edge=streams(80), concentrator=streams(80))

    def __enter__(self):
        dependencies("mptcp")
        super().__enter__()
        try:
            wait_taking(self.lab)
            self._speak_mptcp()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def serve(self):
        return Nginx(self.lab, wrapper=("mptcpize", "run"))

    def _speak_mptcp(self):
        """The second uplink's address becomes a subflow of every connection and leaves by that uplink."""
        site = self.lab.sites[0]
        (near, far), _ = site.link_addresses(1)
        for space in (site.edge, self.lab.server):
            space.ip("mptcp", "limits", "set", "subflow", SUBFLOWS, "add_addr_accepted", SUBFLOWS)
        site.edge.ip("mptcp", "endpoint", "add", near, "dev", site.device(1), "subflow")
        site.edge.ip("rule", "add", "from", near, "lookup", SECOND_TABLE)
        site.edge.ip("route", "add", "default", "via", far, "dev", site.device(1), "table", SECOND_TABLE)

    def fetch(self, name, path):
        """Starts the download of a contender."""
        edge = self.lab.sites[0].edge
        if name == "Braid":
            return Download(self.lab, f"http://{TUNNELLED}{path}")
        return Download(self.lab, f"http://{DIRECT}{path}", namespace=edge,
                        wrapper=("mptcpize", "run") if name == "kernel MPTCP" else ())

    def second_subflows(self):
        """Subflows that joined a connection of the server (RFC 8684, MP_JOIN) since it was made."""
        return self.lab.server.counters().get("MPTcpExt.MPJoinAckRx", 0)


CONTENDERS = ("WiFi alone", "kernel MPTCP", "Braid")


@target("rival.1", "WiFi 50 Mbit/s 20 ms 1 % + LTE 30 Mbit/s 60 ms 0.1 %, downloads of 46 MB, start included: "
        "goodput through Braid in the stream lane / by kernel MPTCP between two hosts that speak it, median of 3 in "
        "turns; the smaller of cubic and bbr senders", "ratio", at_least=1.0, programs=PROGRAMS, options=[QUICK])
def download(quick):
    rounds, detail, joined, ratios = 1 if quick else ROUNDS, {}, 0, []
    with _Rivals() as pair:
        path = pair.file(SECONDS)
        before = pair.second_subflows()
        for sender in SENDERS:
            pair.lab.server.set_congestion_control(sender)
            rates = {name: [] for name in CONTENDERS}
            for _ in range(rounds):
                for name in CONTENDERS:
                    done = pair.fetch(name, path).finish(300)
                    pair.verify(done)
                    rates[name].append(done.goodput_mbit())
            ratios.append(median(a / b for a, b in zip(rates["Braid"], rates["kernel MPTCP"])))
            detail[sender] = {f"{name}, Mbit/s": [rounded(rate) for rate in each] for name, each in rates.items()}
        joined = pair.second_subflows() - before
    detail[JOINED], detail["kernel"] = joined, platform.release()
    require(detail, joined == rounds * len(SENDERS), f"{joined} second subflows of {rounds * len(SENDERS)} connections")
    return min(ratios), detail


@target("rival.2", "the same links and a cubic sender, WiFi silently dead in mid-download: longest stall at the "
        "receiver through Braid / by kernel MPTCP, the worst of 3 each", "ratio", at_most=1.0, programs=PROGRAMS,
        options=[QUICK])
def death(quick):
    stalls, joined, rounds = {name: [] for name in CONTENDERS[1:]}, [], 1 if quick else ROUNDS
    for seed in range(1, 1 + rounds):
        for name, each in stalls.items():
            with _Rivals(seed) as pair:
                pair.lab.server.set_congestion_control(SENDERS[0])
                path, before = pair.file(SECONDS), pair.second_subflows()
                done = pair.fetch(name, path)
                done.wait_for_size(int(path[1:]) // 3)
                if name == "kernel MPTCP":
                    joined.append(pair.second_subflows() - before)
                at = done.elapsed()
                pair.lab.links.set(WIFI.name, down=True)
                done.finish()
                pair.verify(done)
                each.append(done.longest_stall(begin=at))
    detail = {"s": {name: [rounded(stall) for stall in each] for name, each in stalls.items()},
              JOINED: joined, "kernel": platform.release()}
    require(detail, joined == [1] * rounds, f"second subflows of the {rounds} runs before WiFi died: {joined}")
    return max(stalls["Braid"]) / max(stalls["kernel MPTCP"]), detail
