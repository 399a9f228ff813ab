"""Target see.1: whether the figures of a gateway are what an observer outside of it counts.

The observer has the counters of the kernel's network devices, the bytes that the programs in the lab got, and a clock.
A path's figures are UDP payload: its device counts headers of IP and UDP besides. A peer's figures are inner packets,
as the TUN or TAP device counts them, and bytes of streams, as the programs have them.
"""

import bisect
import collections
import contextlib
import dataclasses
import json
import multiprocessing
import re
import socket
import threading
import time

from lab import Lab, Link, binary
from lab.site import PUBLIC

from . import target
from .pair import PROGRAMS
from .streams import streams, wait_taking

LINKS = [Link("wifi", 20, 10), Link("lte", 10, 25)]
SECONDS, SETTLE = 10, 3  # of a measurement, and of its traffic before
STEADY = 1.5  # after a change: when `top` and the page look is known to some hundredths of a second
EVERY, PAGE_SECONDS = 0.02, 2  # between two readings of the counters; over which the page tells rates
TOLERANCE, LEAST_SITUATIONS = 0.02, 30
TRIFLE = 20_000  # bytes of a measurement that ARP, keepalives and headers of streams' connections may be
PORT, WEB_PORT = 7300, 9380
DEVICE = "braid0"
BRIDGED = ("172.16.0.3", "172.16.0.2")  # server and client in the mode "tap"
DATAGRAM, DATAGRAM_RATE = 1200, 1_000_000  # bytes, bytes/s
HEADERS = {4: 20 + 8, 6: 40 + 8}  # bytes of IP and UDP
LINK_HEADERS = {"ether": 14}  # bytes that a device of this type counts before the IP header
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
         "bit/s": 1 / 8, "kbit/s": 1e3 / 8, "Mbit/s": 1e6 / 8, "Gbit/s": 1e9 / 8}
METRIC = re.compile(r"^braid_(\w+)_bytes_total\{([^}]*)\} (\S+)$", re.MULTILINE)


# ---- traffic

class Transfer:
    """A TCP connection that is always full, or datagrams at a constant rate, between the client and the server."""

    def __init__(self, lab, up, kind="tcp", v6=False):
        family = socket.AF_INET6 if v6 else socket.AF_INET
        far, near = lab.server_addresses()[v6], lab.sites[0].client_address[v6]
        if lab.mode == "tap":
            far, near = BRIDGED
        with contextlib.ExitStack() as stack:
            def opened(space, sort):
                return stack.enter_context(space.inside(socket.socket, family, sort))
            if kind == "datagrams":
                source, sink = opened(lab.client, socket.SOCK_DGRAM), opened(lab.server, socket.SOCK_DGRAM)
                if not up:
                    source, sink = sink, source
                sink.bind((far if up else near, PORT + up))
                source.connect((far if up else near, PORT + up))
            else:  # the client connects in both directions: only its connections become streams
                listener = opened(lab.server, socket.SOCK_STREAM)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.settimeout(20)
                listener.bind((far, PORT + up))
                listener.listen()
                source = opened(lab.client, socket.SOCK_STREAM)
                source.settimeout(20)
                source.connect((far, PORT + up))
                sink = stack.enter_context(listener.accept()[0])
                if not up:
                    source, sink = sink, source
            for each in (source, sink):
                each.settimeout(None)
            # In processes of their own: what this one does must not be seen in the traffic.
            context = multiprocessing.get_context("fork")
            self._received = context.Value("Q", 0)
            self._processes = [context.Process(target=_receive, args=(sink, self._received), daemon=True),
                               context.Process(target=_pace if kind == "datagrams" else _fill, args=(source,),
                                               daemon=True)]
            for process in self._processes:
                process.start()
            self._sockets = stack.pop_all()

    @property
    def received(self):
        """Bytes that the receiver has read."""
        return self._received.value

    def end(self):
        for process in self._processes:
            process.kill()
            process.join()
        self._sockets.close()


def _receive(handle, received):
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            received.value += len(handle.recv(1 << 16))


def _fill(handle):
    data = bytes(1 << 14)
    while True:
        handle.sendall(data)


def _pace(handle):
    data, began, sent = bytes(DATAGRAM), time.monotonic(), 0
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            while sent < (time.monotonic() - began) * DATAGRAM_RATE:
                sent += handle.send(data)
        time.sleep(0.002)


# ---- what a gateway tells, and what the observer sees

class Counters:
    """The counters of a namespace's network devices, read every EVERY seconds without starting a program: {device:
    (bytes sent, packets sent, bytes received, packets received)}. The bytes are without link headers, but for Braid's
    device: in the mode "tap" the inner packets are frames."""

    def __init__(self, space):
        self._headers = {link["ifname"]: 0 if link["ifname"] == DEVICE else LINK_HEADERS.get(link["link_type"], 0)
                         for link in json.loads(space.run("ip", "-j", "link"))}
        self._samples = collections.deque(maxlen=int(60 / EVERY))  # (time, counters)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=space.inside, args=(self._read,), daemon=True)
        self._thread.start()

    def end(self):
        self._ended.set()
        self._thread.join()

    def now(self):
        """Counters that are read after this call."""
        called = time.monotonic()
        while not self._samples or self._samples[-1][0] < called:
            time.sleep(EVERY / 4)
        return self._samples[-1][1]

    def at(self, moment):
        """Counters at a moment of the last minute, between two that were read."""
        samples = list(self._samples)
        i = bisect.bisect([time for time, _ in samples], moment)
        (early, before), (late, after) = samples[max(i - 1, 0)], samples[min(i, len(samples) - 1)]
        share = (moment - early) / (late - early) if late > early else 0
        return {device: tuple(a + share * (b - a) for a, b in zip(numbers, after.get(device, numbers)))
                for device, numbers in before.items()}

    def _read(self):
        with open("/proc/thread-self/net/dev", encoding="ascii") as file:
            while not self._ended.wait(EVERY):
                file.seek(0)
                self._samples.append((time.monotonic(), dict(map(self._parse, file.read().splitlines()[2:]))))

    def _parse(self, line):
        device, _, numbers = line.partition(":")
        device, numbers = device.strip(), [int(number) for number in numbers.split()]
        header = self._headers.get(device, 0)
        received, sent = numbers[:2], numbers[8:10]
        return device, (sent[0] - header * sent[1], sent[1], received[0] - header * received[1], received[1])


class End:
    """A gateway with its page, and the devices around it."""

    def __init__(self, lab, gateway, family):
        self.lab, self.gateway, self.space = lab, gateway, gateway.namespace
        self.is_edge = gateway is lab.edge_gateway
        self.headers = HEADERS[family]
        self.uplinks = {link.name: lab.sites[0].device(i) if self.is_edge else lab.sites[0].far_device(i)
                        for i, link in enumerate(LINKS)}
        self.counters = Counters(self.space)
        name = "web-" + gateway.name
        lab.start(self.space, name, [binary("braid-web"), "--socket", gateway.socket])
        lab.wait_for_line(name, "serves http")

    def fetch(self, path):
        return self.space.run("curl", "-sf", "-m", "5", f"http://127.0.0.1:{WEB_PORT}/{path}")

    def path_of(self, row):
        """The link of a path. The side that listens knows it by the edge's address."""
        if row["uplink"] in self.uplinks:
            return row["uplink"]
        remote = row["remote"].strip("[").replace("fd01:0:0:", "10.0.").replace("fd01::", "10.0.0.").split(".")
        return LINKS[int(remote[2].split(":")[0])].name

    def told(self):
        """{(source, object, direction): bytes} of JSON and metrics, as they are now."""
        status, out = self.gateway.status(), {}

        def count(key, number):
            out[key] = out.get(key, 0) + number
        names = {}
        for peer in status["peers"]:
            for way in ("sent", "received"):
                count(("JSON", "peer", way), peer[f"{way}_bytes"])
            for row in peer["subflows"]:
                names[str(row["id"])] = self.path_of(row)
                for way in ("sent", "received"):
                    count(("JSON", self.path_of(row), way), row[f"{way}_bytes"])
        for uplink in status["gateway"]["uplinks"]:
            if uplink["metered"]:
                count(("JSON", "meter " + uplink["name"], "both"), uplink["metered"]["used_bytes"])
        for name, labels, number in METRIC.findall(self.fetch("metrics")):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            scope, _, way = name.partition("_")
            if scope in ("peer", "path") and way in ("sent", "received"):
                count(("metrics", names.get(labels.get("id"), "?") if scope == "path" else "peer", way),
                      int(float(number)))
        return out

    def seen(self, devices, streamed):
        """{(object, direction): bytes}. `streamed`: bytes of streams that the programs have, (sent, received)."""
        out = {}
        tunnel = devices[DEVICE]
        for place, way in enumerate(("sent", "received")):
            out["peer", way] = tunnel[2 * place] + streamed[place]
            for name, device in self.uplinks.items():
                frames = devices[device]
                out[name, way] = frames[2 * place] - self.headers * frames[2 * place + 1]
        for name, device in self.uplinks.items():
            frames = devices[device]
            out["meter " + name, "both"] = frames[0] + frames[2]
        return out

    def totals_of_status(self):
        """{direction: bytes} of all paths, from the text of `braidctl status`."""
        lines = self.gateway.ctl("status").splitlines()
        head = next(i for i, line in enumerate(lines) if "PATH" in line.split())
        ends = {way: lines[head].index(way.upper()) + len(way) for way in ("sent", "received")}
        out = dict.fromkeys(ends, 0.0)
        for line in lines[head + 1:]:
            if not line.strip():
                break
            for way, end in ends.items():
                number, unit = line[:end].split()[-2:]
                out[way] += float(number.replace(",", "")) * UNITS[unit]
        return out

    def rates_of_top(self):
        """{direction: bytes/s} of all paths, from the text of `braidctl top --once`."""
        lines = self.gateway.ctl("top", "--once").splitlines()
        head = next(i for i, line in enumerate(lines) if "PATH" in line.split())
        ends = {"sent": lines[head].index(" UP") + 3, "received": lines[head].index("DOWN") + 4}
        out = dict.fromkeys(ends, 0.0)
        for line in lines[head + 1:]:
            for way, end in ends.items():
                words = line[:end].split()
                if words and words[-1] in UNITS:
                    out[way] += float(words[-2]) * UNITS[words[-1]]
        return out


def _paths_seen(end, devices):
    """{direction: bytes} of all paths together, by the devices' counters."""
    return {way: sum(number for (thing, direction), number in end.seen(devices, (0, 0)).items()
                     if thing in end.uplinks and direction == way) for way in ("sent", "received")}


def _rate_seen(end, since, until):
    """{direction: bytes/s} of all paths between two moments."""
    before, after = (_paths_seen(end, end.counters.at(moment)) for moment in (since, until))
    return {way: (after[way] - before[way]) / (until - since) for way in after}


def _watch(end, until, rows):
    """Looks at the page each second, and adds (rates that it tells, those of the devices) to `rows`, by direction. Of a
    path that is new the page tells none yet."""
    while time.monotonic() < until:
        page, now = json.loads(end.fetch("api/live")), time.monotonic()
        told = {way: [path[key] for path in page["paths"]]
                for way, key in (("sent", "up_bytes_per_s"), ("received", "down_bytes_per_s"))}
        if page["paths"] and not any(None in rates for rates in told.values()):
            rows.append(({way: sum(rates) for way, rates in told.items()}, _rate_seen(end, now - PAGE_SECONDS, now)))
        time.sleep(max(0, 1 - (time.monotonic() - now)))


def _differs(told, least, most):
    return told < least * (1 - TOLERANCE) - TRIFLE or told > most * (1 + TOLERANCE) + TRIFLE


# ---- situations

def _lose(lab):
    lab.links.set("lte", loss=1.0)


def _come_back(lab):
    lab.links.set("lte", down=True)
    time.sleep(SECONDS / 4)
    lab.links.set("lte", down=False)


def _situations():
    """(name, traffic, options): traffic is a list of arguments of Transfer after the lab."""
    down, up = (False,), (True,)
    yield "packets down", [down], {}
    yield "packets up", [up], {}
    yield "packets both ways", [down, up], {}
    yield "streams down", [down], {"streams": True}
    yield "streams up", [up], {"streams": True}
    yield "streams both ways", [down, up], {"streams": True}
    yield "datagrams down", [(False, "datagrams")], {}
    yield "datagrams up", [(True, "datagrams")], {}
    yield "IPv6 inside", [(False, "tcp", True)], {}
    yield "IPv6 outside", [down], {"family": 6}
    yield "a dead path", [down], {"before": _lose}
    yield "a path dies", [down], {"during": _lose}
    yield "a path comes back", [down], {"during": _come_back}
    yield "a reload", [down], {"during": lambda lab: lab.edge_gateway.reload()}
    yield "after a restart of the edge", [up], {"before": lambda lab: lab.edge_gateway.restart()}
    yield "a backup uplink", [down], {"uplink": {"use": "backup"}}
    yield "a metered uplink", [down, up], {"uplink": {"use": "metered", "metered": {"cap": "50GB"}}}
    yield "copies on lossy paths", [(False, "datagrams")], {"loss": 0.02, "recovery": {"policy": "redundant"}}
    yield "bridged", [down], {"mode": "tap"}


def _run(traffic, family=4, before=None, during=None, uplink=None, loss=0.0, recovery=None, mode="tun", **options):
    """Figures of one situation that differ, as texts, and how many were compared."""
    links = [dataclasses.replace(each, loss=loss) for each in LINKS] if loss else LINKS
    with Lab(links, mode=mode) as lab, contextlib.ExitStack() as stack:
        changes = streams("1-65535") if options.get("streams") else {}
        if recovery:
            changes["recovery"] = recovery
        lab.make_gateways(edge=dict(changes), concentrator=dict(changes))
        if family == 6:
            lab.edge_gateway.config["peers"][0]["endpoints"] = [f"[{PUBLIC[1]}]:4433"]
        if uplink:
            lab.edge_gateway.config["uplinks"][1].update(uplink)
        for gateway in lab.gateways():
            gateway.start()
        lab.edge_gateway.wait_up(2)
        if options.get("streams"):
            wait_taking(lab)
        if before:
            before(lab)
            lab.edge_gateway.wait_up(1)
        ends = [End(lab, gateway, family) for gateway in lab.gateways()]
        for end in ends:
            stack.callback(end.counters.end)
        start = {end: (end.counters.now(), end.told()) for end in ends}
        flows = [Transfer(lab, *words) for words in traffic]
        for flow in flows:
            stack.callback(flow.end)
        time.sleep(SETTLE)
        return _compare(ends, start, [(flow, words[0]) for flow, words in zip(flows, traffic)],
                        options.get("streams"), lambda: during and during(lab))


def _compare(ends, start, flows, is_stream, change):
    def look(end):
        """Devices and programs before, what the gateway tells, devices and programs after."""
        def observed():
            got = {up: sum(flow.received for flow, is_up in flows if is_up is up) for up in (False, True)}
            streamed = (got[end.is_edge], got[not end.is_edge]) if is_stream else (0, 0)
            return end.seen(end.counters.now(), streamed)
        first = observed()
        return first, end.told(), observed()
    pages = {end: [] for end in ends}
    begin = {end: look(end) for end in ends}
    until = time.monotonic() + SECONDS
    watchers = [threading.Thread(target=_watch, args=(end, until, pages[end])) for end in ends]
    for watcher in watchers:
        watcher.start()
    time.sleep(SECONDS / 4)
    change()
    time.sleep(STEADY)
    rates = _rates(ends, until)
    for watcher in watchers:
        watcher.join()
    wrong, compared = [], 0
    for end in ends:
        def claim(figure, told, least, most, end=end):
            nonlocal compared
            compared += 1
            if _differs(told, least, most):
                wrong.append(f"{end.gateway.name}: {figure}: {told:,.0f}, seen {least:,.0f} to {most:,.0f}")
        (before, told_before, after), (then, told_then, later) = begin[end], look(end)
        for (source, thing, way), number in told_then.items():
            if (thing, way) in then:
                claim(f"{source}, {thing}, {way}", number - told_before.get((source, thing, way), 0),
                      then[thing, way] - after[thing, way], later[thing, way] - before[thing, way])
        totals, seen = end.totals_of_status(), _paths_seen(end, end.counters.now())
        devices, earlier = start[end]
        for way, total in totals.items():
            since = seen[way] - sum(n for (thing, w), n in end.seen(devices, (0, 0)).items()
                                    if thing in end.uplinks and w == way)
            offset = sum(n for (source, thing, w), n in earlier.items()
                         if source == "JSON" and thing in end.uplinks and w == way)
            claim(f"status, all paths, {way}", total, since + offset, since + offset)
        for name, looks in (("top", rates[end]), ("page", pages[end])):
            for way in ("sent", "received"):
                told, real = (sum(each[i][way] for each in looks) / max(len(looks), 1) for i in (0, 1))
                claim(f"{name}, all paths, {way}, bytes/s", told, real, real)
    return wrong, compared


def _rates(ends, until):
    """What _rate() returns, as often as there is time, at all ends at once."""
    rates = {end: [] for end in ends}

    def ask(end):
        while time.monotonic() < until:
            rates[end].append(_rate(end))
    askers = [threading.Thread(target=ask, args=(end,)) for end in ends]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    return rates


def _rate(end):
    """(rates that `top --once` tells, those of the devices). It looks at the paths for a second, and then at the flows
    for a second: what it needs besides is half before the first look."""
    began = time.monotonic()
    told = end.rates_of_top()
    first = began + max(0, time.monotonic() - began - 2) / 2
    return told, _rate_seen(end, first, first + 1)


@target("see.1", "figures of page, command line, JSON and metrics that differ by more than 2 % from those of an "
        f"outside observer (counters of network devices less headers, bytes of programs) over {SECONDS} s, in at least "
        f"{LEAST_SITUATIONS} situations: kind of traffic, direction, end, state of paths", "figures", at_most=0,
        programs=[*PROGRAMS, "braid-web"])
def figures():
    wrong, compared, situations = [], {}, 0
    for name, traffic, options in _situations():
        found, compared[name] = _run(traffic, **options)
        wrong += [f"{name}: {each}" for each in found]
        situations += 2  # each is looked at from both ends
    detail = {"situations": situations, "figures compared": compared, "differ": wrong}
    if situations < LEAST_SITUATIONS:
        raise RuntimeError(f"{situations} situations, {LEAST_SITUATIONS} are to be looked at")
    return len(wrong), detail
