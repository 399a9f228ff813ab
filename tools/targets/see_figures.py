"""Target see.1: whether the figures of a gateway are what an observer outside of it counts.

The observer has the counters of the kernel's network devices, the bytes that the programs in the lab got, and a clock.
A path's figures are UDP payload: its device counts headers of IP and UDP besides. A peer's figures are inner packets,
as the TUN or TAP device counts them, and bytes of streams, as the programs have them.
"""

import contextlib
import dataclasses
import json
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
STEADY = 1.5  # after a change: the moments between which `top` looks are known to a tenth of a second
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
        self.received = 0
        self._ended = threading.Event()
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
                each.settimeout(0.5)
            self._sockets = stack.pop_all()
        self._threads = [threading.Thread(target=self._receive, args=(sink,)),
                         threading.Thread(target=self._pace if kind == "datagrams" else self._fill, args=(source,))]
        for thread in self._threads:
            thread.start()

    def end(self):
        self._ended.set()
        for thread in self._threads:
            thread.join(5)
        self._sockets.close()

    def _receive(self, handle):
        while not self._ended.is_set():
            with contextlib.suppress(TimeoutError, ConnectionRefusedError):
                self.received += len(handle.recv(1 << 16))

    def _fill(self, handle):
        data = bytes(1 << 14)
        while not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                handle.send(data)

    def _pace(self, handle):
        data, began, sent = bytes(DATAGRAM), time.monotonic(), 0
        while not self._ended.is_set():
            with contextlib.suppress(ConnectionRefusedError):
                while sent < (time.monotonic() - began) * DATAGRAM_RATE:
                    sent += handle.send(data)
            time.sleep(0.002)


# ---- what a gateway tells, and what the observer sees

def _devices(space):
    """{device: (bytes sent, packets sent, bytes received, packets received)} of a namespace. The bytes are without link
    headers, but for Braid's device: in the mode "tap" the inner packets are frames."""
    def counters(link):
        header = 0 if link["ifname"] == DEVICE else LINK_HEADERS.get(link["link_type"], 0)
        for way in ("tx", "rx"):
            packets = link["stats64"][way]["packets"]
            yield link["stats64"][way]["bytes"] - header * packets
            yield packets
    return {link["ifname"]: tuple(counters(link)) for link in json.loads(space.run("ip", "-s", "-j", "link"))}


class End:
    """A gateway with its page, and the devices around it."""

    def __init__(self, lab, gateway, family):
        self.lab, self.gateway, self.space = lab, gateway, gateway.namespace
        self.is_edge = gateway is lab.edge_gateway
        self.headers = HEADERS[family]
        self.uplinks = {link.name: lab.sites[0].device(i) if self.is_edge else lab.sites[0].far_device(i)
                        for i, link in enumerate(LINKS)}
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


def _paths_seen(end):
    return {way: sum(number for (thing, direction), number in end.seen(_devices(end.space), (0, 0)).items()
                     if thing in end.uplinks and direction == way) for way in ("sent", "received")}


def _watch(end, until, rows):
    """Looks at the page each second, and adds (direction, rate, time, bytes seen) for both directions to `rows`."""
    while time.monotonic() < until:
        before = _paths_seen(end)
        page = json.loads(end.fetch("api/live"))
        now = time.time()
        for way, key in (("sent", "up_bytes_per_s"), ("received", "down_bytes_per_s")):
            rates = [path[key] for path in page["paths"]]
            known = rates and None not in rates  # of a path that is new, the page tells none yet
            rows.append((way, sum(rates) if known else None, now, before[way]))
        time.sleep(max(0, 1 - (time.time() - now)))


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
        ends = {}
        for gateway in lab.gateways():
            gateway.start()
        lab.edge_gateway.wait_up(2)
        if options.get("streams"):
            wait_taking(lab)
        if before:
            before(lab)
            lab.edge_gateway.wait_up(1)
        ends = [End(lab, gateway, family) for gateway in lab.gateways()]
        start = {end: (_devices(end.space), end.told()) for end in ends}
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
            return end.seen(_devices(end.space), streamed)
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
        totals, seen = end.totals_of_status(), _paths_seen(end)
        devices, earlier = start[end]
        for way, total in totals.items():
            since = seen[way] - sum(n for (thing, w), n in end.seen(devices, (0, 0)).items()
                                    if thing in end.uplinks and w == way)
            offset = sum(n for (source, thing, w), n in earlier.items()
                         if source == "JSON" and thing in end.uplinks and w == way)
            claim(f"status, all paths, {way}", total, since + offset, since + offset)
        for way in ("sent", "received"):
            told, real = (sum(each[i][way] for each in rates[end]) / len(rates[end]) for i in (0, 1))
            claim(f"top, all paths, {way}, bytes/s", told, real, real)
            rows = [row[1:] for row in pages[end] if row[0] == way]
            spans = [(rate, (d - b) / (t - s)) for (_, s, b), (rate, t, d) in zip(rows, rows[2:]) if rate is not None]
            told, real = (sum(span[i] for span in spans) / max(len(spans), 1) for i in (0, 1))
            claim(f"page, all paths, {way}, bytes/s", told, real, real)
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
    """(rates that `top` tells, those that the devices had meanwhile)."""
    began, before = time.monotonic(), _paths_seen(end)
    told = end.rates_of_top()
    ended, after = time.monotonic(), _paths_seen(end)
    return told, {way: (after[way] - before[way]) / (ended - began) for way in told}


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
