"""Recovery with real kernels, nginx and TCP in the lab, beside the same experiments in virtual time.

Responses: several sites, each with its own two links to one concentrator and so with its own tunnel, fetch at the same
time, each one response after the other. One link of each lossy site loses packets. The other sites lose none, so that
noise of the machine affects both groups alike. The policies are used in turn, by all gateways at once. Times are the
client's: from the request to the last byte, over a connection that is already open.
"""

import bisect
import concurrent.futures
import contextlib
import functools
import math
import os
import pathlib
import random
import socket
import threading
import time
import traceback

from lab import Download, Lab, Link, median, percentile
from lab.measure import cpu_seconds
from lab.services import Nginx

from . import require

LAB_PROGRAMS = ["braidd", "braidctl", "linkemu"]
SENDERS = ["cubic", "bbr"]
LOSS = 0.02
MOST_BYTES = 100_000
SITES = 10
LOSSY_SITES = 5
TIMEOUT = 10  # seconds without a byte: the connection is stuck
STALL = 5  # seconds: a fetch of at most 100 KB that takes longer has stalled; a noisy machine does not explain it
_DATA = pathlib.Path(__file__).resolve().parents[2] / "evaluation" / "data"


def beside(value, detail, measure, *arguments, **options):
    """Value and detail of a target, with the result of `measure` in the lab as "lab" (a text where it cannot run).
    A failure there fails the target: it then has no value, and its detail says what failed."""
    if os.geteuid() != 0:
        detail["lab"] = "not measured: network namespaces need root"
        return value, detail
    began = time.monotonic()
    try:
        detail["lab"] = measure(*arguments, **options)
    except Exception as error:
        traceback.print_exc()
        detail["lab"], detail["in virtual time"] = "failed", value
        require(detail, False, f"the lab failed: {type(error).__name__}: {str(error)[:1500]}")
        return None, detail
    detail["lab"]["lab_s"] = round(time.monotonic() - began, 1)
    return value, detail


@contextlib.contextmanager
def about(what):
    """Adds the subject to an error raised in the block."""
    try:
        yield
    except Exception as error:
        raise RuntimeError(f"{what}: {type(error).__name__}: {error}") from error


class Sizes:
    """Sizes drawn from a file of evaluation/data, by the rule of the simulator (evaluation/models/traffic.cc)."""

    def __init__(self, name):
        rows = [line.split() for line in (_DATA / f"{name}.txt").read_text(encoding="ascii").splitlines()]
        points = [(float(row[1]), float(row[0])) for row in rows if len(row) == 2]
        self._shares, self._bytes = zip(*points)

    def draw(self, generator, most):
        while (size := math.ceil(self._quantile(generator.random()))) > most:
            pass
        return max(size, 1)

    def _quantile(self, share):
        upper = bisect.bisect_right(self._shares, share)
        if upper in (0, len(self._shares)):
            return self._bytes[min(upper, len(self._shares) - 1)]
        part = (share - self._shares[upper - 1]) / (self._shares[upper] - self._shares[upper - 1])
        return self._bytes[upper - 1] + part * (self._bytes[upper] - self._bytes[upper - 1])


class Connection:
    """A keep-alive HTTP connection to nginx that asks for the first bytes of one file."""

    def __init__(self, path, content):
        self._path = path
        self._content = content
        self._socket = socket.create_connection((Lab.server_addresses()[0], 80), TIMEOUT)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fetch(self, size):
        """Fetches `size` bytes and returns the seconds from the request to the last of them."""
        question = f"GET {self._path} HTTP/1.1\r\nHost: lab\r\nRange: bytes=0-{size - 1}\r\n\r\n".encode()
        began = time.monotonic()
        self._socket.sendall(question)
        answer, body = b"", None
        while body is None or len(answer) - body < size:
            part = self._socket.recv(1 << 18)
            if not part:
                raise ConnectionError("nginx closed the connection")
            answer += part
            if body is None and b"\r\n\r\n" in answer:
                body = answer.index(b"\r\n\r\n") + 4
        seconds = time.monotonic() - began
        if answer[body:] != self._content[:size]:
            raise ValueError(f"a response of {size} bytes differs from the file")
        return seconds

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._socket.close()


class Stalls:
    """Detects when other work on the machine kept this process, and so the gateways, from running. Fetches in that time
    are left out for every policy, and counted."""

    SLEEP, LATE = 0.005, 0.03  # s
    AFTER = 0.3  # seconds that queues need to drain

    def __init__(self):
        self.left_out = 0
        self._stalls = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        last = time.monotonic()
        while not self._ended.is_set():
            time.sleep(self.SLEEP)
            now = time.monotonic()
            if now - last > self.SLEEP + self.LATE:
                self._stalls.append((last, now + self.AFTER))
            last = now

    def close(self):
        self._ended.set()
        self._thread.join()

    def paused(self, begin, end):
        """Seconds of this time in which this process stood still."""
        return sum(max(0.0, min(end, last - self.AFTER) - max(begin, first)) for first, last in self._stalls)

    def undisturbed(self, fetches):
        """The durations of those (begin, duration) that no stall met."""
        good = [seconds for began, seconds in fetches
                if not any(begin < began + seconds and began < end for begin, end in self._stalls)]
        self.left_out += len(fetches) - len(good)
        return good


class Visitor:
    """Fetches a file at one site's client. Raises when a fetch stalls, is reset or gets wrong bytes."""

    def __init__(self, site, path, content, stalls):
        self.site = site
        self._stalls = stalls
        self._connect = functools.partial(Connection, path, content)

    def series(self, sizes, warm_up=()):
        """The times of these fetches, one after the other over a new connection, without those of the warm-up."""
        def fetch():
            with self._connect() as connection:
                for size in warm_up:
                    connection.fetch(size)
                return [(time.monotonic(), connection.fetch(size)) for size in sizes]
        return self._undisturbed(self.site.client.inside(fetch))

    def visits(self, size, seconds, pause):
        """The times of fetches of one size over a new connection, with pauses between them, for about `seconds`."""
        def fetch():
            times, end = [], time.monotonic() + seconds
            with self._connect() as connection:
                connection.fetch(size)
                while time.monotonic() < end:
                    time.sleep(pause())
                    times.append((time.monotonic(), connection.fetch(size)))
            return times
        return self._undisturbed(self.site.client.inside(fetch))

    def _undisturbed(self, fetches):
        for began, seconds in fetches:
            if seconds - self._stalls.paused(began, began + seconds) >= STALL:
                raise TimeoutError(f"a fetch took {seconds:.1f} s")
        return self._stalls.undisturbed(fetches)


class Fleet:
    """A lab with nginx, sites and gateways, whose policies change at run time."""

    def __init__(self, links, sites=1, size=MOST_BYTES, **changes):
        self.lab = Lab(links, sites=sites)
        self._size = size
        self._changes = changes

    def __enter__(self):
        self.lab.__enter__()
        try:
            self.nginx = Nginx(self.lab)
            path = self.nginx.add("response", self._size)
            content = (self.lab.directory / "nginx" / "files" / "response").read_bytes()
            # The pauses between requests belong to the experiment and must not cause a new slow start.
            self.lab.server.sysctl(net__ipv4__tcp_slow_start_after_idle=0)
            self.stalls = Stalls()
            self.visitors = [Visitor(site, path, content, self.stalls) for site in self.lab.sites]
        except BaseException:
            self.lab.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *error):
        self.stalls.close()
        self.lab.__exit__(*error)

    def start(self, policy):
        self._changes["recovery"] = {"policy": policy}
        self.lab.start_gateways(edge=self._changes, concentrator=self._changes)

    def set_policy(self, policy):
        """Both directions of every tunnel change their policy; the tunnels stay."""
        for gateway in self.lab.gateways():
            gateway.config["recovery"] = {"policy": policy}
            gateway.write_config()
            gateway.ctl("reload")

    def restart(self, policy):
        """New tunnels everywhere."""
        for gateway in self.lab.gateways():
            gateway.config["recovery"] = {"policy": policy}
        with concurrent.futures.ThreadPoolExecutor() as pool:
            codes = list(pool.map(lambda gateway: gateway.stop(), self.lab.gateways()))
            if any(codes):
                raise RuntimeError(f"the daemons ended with {codes}\n{self.lab.log_tail()}")
            list(pool.map(lambda gateway: gateway.start(), self.lab.gateways()))
        for site in self.lab.sites:
            site.gateway.wait_up(subflows=len(site.links))

    def protection(self):
        """{name: count} over all subflows of the sending gateway."""
        names = ("copies", "parities", "protection_bytes", "sent_bytes")
        return {name: sum(subflow[name] for subflow in self.lab.gateway.paths()) for name in names}


def _brief(times):
    brief = {f"p{round(share * 100)}_ms": round(percentile(times, share) * 1000, 1) for share in (0.5, 0.95, 0.99)}
    return {"requests": len(times), **brief, "max_ms": round(max(times) * 1000, 1),
            "mean_ms": round(sum(times) / len(times) * 1000, 1)}


def _ratio(runs, name, base, share=0.99):
    return round(percentile(runs[name], share) / percentile(runs[base], share), 3)


class _Responses:
    """Rounds of responses at all sites of a fleet at once. `times` is {policy: seconds} and {"policy, loss-free":
    seconds}."""

    REQUESTS = 10  # of a site in a round

    def __init__(self, fleet):
        self._fleet = fleet
        self._sizes = Sizes("web_search")
        self.times = {}

    def round(self, policy, number, warm_up=()):
        """Every policy gets the same sizes in this round."""
        def fetch(visitor):
            generator = random.Random(f"{number} {visitor.site.number}")
            return visitor.series([self._sizes.draw(generator, MOST_BYTES) for _ in range(self.REQUESTS)], warm_up)

        with about(f"{policy}, round {number}"), concurrent.futures.ThreadPoolExecutor(SITES) as pool:
            for visitor, times in zip(self._fleet.visitors, pool.map(fetch, self._fleet.visitors)):
                name = policy if visitor.site.number < LOSSY_SITES else f"{policy}, loss-free"
                self.times.setdefault(name, []).extend(times)

    def figures(self, ratios):
        return {"p99 ratios": {f"{name} / {base}": _ratio(self.times, name, base) for name, base in ratios},
                **{name: _brief(times) for name, times in self.times.items()}}


def _responses_fleet():
    return Fleet([Link("good", 100, 50), Link("bad", 100, 50, LOSS)], SITES)


def _no_loss_at_the_rest(fleet):
    for site in fleet.lab.sites[LOSSY_SITES:]:
        fleet.lab.links.set(site.link_name(1), loss=0)


def _large_initial_windows(fleet):
    """New connections send a whole response at once, like the hosts in virtual time. The rest of the time is due to the
    tunnel."""
    packets = 100
    fleet.lab.server.route("0.0.0.0/0", "via", "192.168.100.1", "initcwnd", packets)
    for site in fleet.lab.sites:
        site.client.route("0.0.0.0/0", "via", site.client_address[0][:-1] + "1", "initrwnd", packets)


def _cold(fleet, policies, rounds):
    """Rounds of responses, each over tunnels and TCP connections that are new at its first request."""
    cold = _Responses(fleet)
    for number in range(rounds):
        for policy in policies:
            fleet.restart(policy)
            cold.round(policy, number)
    return cold


RATIOS = [("cofuso", "none"), ("adaptive", "none"), ("none, loss-free", "none"), ("cofuso", "cofuso, loss-free"),
          ("adaptive", "adaptive, loss-free")]


def responses(policies, warm_rounds, cold_rounds=0):
    """Responses of web search up to 100 KB: in warm tunnels, and in fresh ones, 10 requests each."""
    figures = {"links": "2 x 100 Mbit/s, 50 ms, 2 % loss on one, both directions", "sizes": "web search up to 100 KB"}
    wanted = [pair for pair in RATIOS if all(name.partition(",")[0] in policies for name in pair)]
    with _responses_fleet() as fleet:
        _no_loss_at_the_rest(fleet)
        fleet.start(policies[0])
        for sender in SENDERS:
            fleet.lab.server.set_congestion_control(sender)
            warm = _Responses(fleet)
            for number in range(warm_rounds):
                for policy in policies:
                    fleet.set_policy(policy)
                    # The warm-up after which the inner TCP sender has finished slow start.
                    warm.round(policy, number, warm_up=[MOST_BYTES] * 2)
            figures[f"warm, {sender}"] = warm.figures(wanted)
        if cold_rounds:
            fleet.lab.server.set_congestion_control(SENDERS[0])
            figures["fresh tunnels"] = _cold(fleet, policies, cold_rounds).figures(wanted)
            _large_initial_windows(fleet)
            figures["fresh tunnels, large initial windows"] = _cold(fleet, policies, cold_rounds).figures(wanted)
        figures["left out, as the machine stalled"] = fleet.stalls.left_out
    return figures


WIFI, LTE = Link("wifi", 50, 20), Link("lte", 30, 60)
# Seconds of a download, and of its start, which does not count because of TCP's slow start
BULK_SECONDS, BULK_SKIPPED = 6, 1.5


def bulk(policies, rounds, losses=(0, 0.01)):
    """Goodput of a download over saturated links, protection and CPU time; policies in turn in the same warm tunnel."""
    figures = {"links": "wifi 50 Mbit/s 20 ms + lte 30 Mbit/s 60 ms", "download_s": BULK_SECONDS}
    with Fleet([WIFI, LTE]) as fleet:
        fleet.start(policies[0])
        path = fleet.nginx.add("endless", 10 * BULK_SECONDS * 80_000_000 // 8)
        for loss in losses:
            fleet.lab.links.set("wifi", loss=loss)
            runs = {policy: [] for policy in policies}
            for number in range(rounds):
                for policy in policies if number % 2 == 0 else reversed(policies):
                    fleet.set_policy(policy)
                    with about(f"{policy}, {loss:.0%} loss, round {number}"):
                        runs[policy].append(_bulk_run(fleet, path))
            medians = {policy: {name: round(median([run[name] for run in each]), 4) for name in each[0]}
                       for policy, each in runs.items()}
            base = medians["none"]
            figures[f"{loss:.0%} loss on wifi"] = {
                policy: {**each, "goodput / none": round(each["goodput_mbit"] / base["goodput_mbit"], 4),
                         "cpu / none": round(each["cpu"] / base["cpu"], 3),
                         "goodputs": [round(run["goodput_mbit"], 2) for run in runs[policy]]}
                for policy, each in medians.items()}
    return figures


def require_flowing(download):
    """Raises when a download has ended, or brought nothing for STALL seconds."""
    if not download.is_alive():
        raise RuntimeError(f"the download ended after {download.size} bytes: {download.error}")
    silent = download.elapsed() - (download.arrivals[-1][0] if download.arrivals else 0)
    if max(silent, download.longest_stall()) >= STALL:
        raise TimeoutError(f"the download stalled; it has {download.size} bytes")


def _bulk_run(fleet, path):
    gateway = fleet.lab.gateway.process.pid
    download = Download(fleet.lab, f"http://{Lab.server_addresses()[0]}{path}")
    time.sleep(BULK_SKIPPED)
    began, before, processor = download.elapsed(), fleet.protection(), cpu_seconds(gateway)
    time.sleep(BULK_SECONDS - BULK_SKIPPED)
    ended, after, processor = download.elapsed(), fleet.protection(), cpu_seconds(gateway) - processor
    require_flowing(download)
    download.stop()
    grown = {name: after[name] - before[name] for name in after}
    time.sleep(0.5)  # data in flight still arrives
    return {"goodput_mbit": download.rate_mbit(began, ended), "cpu": processor / (ended - began),
            "extra_load": grown["protection_bytes"] / grown["sent_bytes"]}


MOUSE_BYTES = 16_000
MOUSE_CONNECTIONS, MOUSE_PAUSE = 8, 0.2  # pauses of a connection are exponential with that mean, s
MICE_SECONDS = 5  # of a round


def mice(policies, rounds):
    """16 KB responses with pauses, alone and beside a download that fills both links."""
    figures = {"links": "wifi 50 Mbit/s 20 ms 2 % loss + lte 30 Mbit/s 60 ms", "flow_bytes": MOUSE_BYTES}
    times, elephants = {}, {}
    with Fleet([Link("wifi", 50, 20, LOSS), LTE], size=MOUSE_BYTES) as fleet:
        fleet.start(policies[0])
        path = fleet.nginx.add("endless", 10 * MICE_SECONDS * 80_000_000 // 8)
        for number in range(rounds):
            for policy in policies:
                with about(f"{policy}, round {number}"):
                    fleet.set_policy(policy)
                    times.setdefault(f"{policy}, no elephant", []).extend(_mice_run(fleet, number))
                    elephant = Download(fleet.lab, f"http://{Lab.server_addresses()[0]}{path}")
                    time.sleep(BULK_SKIPPED)
                    began = elephant.elapsed()
                    times.setdefault(policy, []).extend(_mice_run(fleet, number))
                    elephants.setdefault(policy, []).append(elephant.rate_mbit(began, elephant.elapsed()))
                    require_flowing(elephant)
                    elephant.stop()
                    time.sleep(0.5)
        figures["left out, as the machine stalled"] = fleet.stalls.left_out
    ratios = {policy: _ratio(times, policy, f"{policy}, no elephant") for policy in policies}
    return {**figures, "p99 / p99 without the elephant": ratios,
            "elephant_mbit": {policy: round(median(rates), 2) for policy, rates in elephants.items()},
            **{name: _brief(each) for name, each in times.items()}}


def _mice_run(fleet, number):
    visitor = fleet.visitors[0]

    def fetch(index):
        generator = random.Random(f"{number} {index}")
        return visitor.visits(MOUSE_BYTES, MICE_SECONDS, lambda: generator.expovariate(1 / MOUSE_PAUSE))

    with concurrent.futures.ThreadPoolExecutor(MOUSE_CONNECTIONS) as pool:
        return [seconds for times in pool.map(fetch, range(MOUSE_CONNECTIONS)) for seconds in times]
