"""A tour of braid-web's page in a browser: what is there in each state of a gateway, checked one after the other."""

import contextlib
import json
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from lab import Lab, Link, binary
from lab.netns import run

from . import MISSING, always, option

SOURCE = pathlib.Path(__file__).resolve().parents[2]
RULES_TEST = SOURCE / "tests/targets/braid.rules.test.yml"

LINKS = [Link("dsl", 40, 20), Link("lte", 20, 50, 0.02)]
PORT, FLOW_PORT, LEAST_CHECKS = 9380, 7000, 20
BASE = f"http://127.0.0.1:{PORT}/"
MOST_BYTES, MOST_SCRIPT = 60_000, 40_000
SCREENSHOTS = option("--screenshots", always, metavar="FOLDER", default=None, help="keep the screenshots there")
HOST = "laptop"  # the client's name in its lease
LEASES = "/var/lib/misc/dnsmasq.leases"
LOOKS = [(width, height, dark) for width, height in ((1280, 900), (390, 844)) for dark in (False, True)]
SCRIPT_SIZE = """performance.getEntriesByType("resource").filter((e) => e.name.endsWith(".js"))
  .reduce((sum, e) => sum + e.decodedBodySize, 0)"""
# Where the curves of the first card begin and end, and the width of their picture; in pixels.
CURVE_ENDS = """(() => {
  const chart = document.querySelector(".path .chart"), lines = [...chart.querySelectorAll("polyline.up")];
  const at = lines.flatMap((line) => line.getAttribute("points").split(" ").map((point) => parseFloat(point)));
  return [Math.min(...at), Math.max(...at), chart.viewBox.baseVal.width];
})()"""
# What is wider than the box that cuts it off.
CUT = """[...document.querySelectorAll("main *")].filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1
  && getComputedStyle(e).overflowX !== "visible" && !e.classList.contains("unseen"))
  .map((e) => `${e.tagName}.${e.className}: ${e.textContent.slice(0, 30)}`)"""
CONTRAST = """(() => {
  const light = (rgb) => rgb.map((c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; })
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const colour = (text) => text.match(/[0-9.]+/g).map(Number);
  const backOf = (e) => { for (; e; e = e.parentElement) { const c = colour(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  const opacityOf = (e) => e ? getComputedStyle(e).opacity * opacityOf(e.parentElement) : 1;
  let least = [99, ""];
  for (const e of document.querySelectorAll("h1, h1 span, h2, p, dt, dd, td, th, li, time, button, a, .chip, small")) {
    if (!e.textContent.trim() || !e.offsetParent) continue;
    const back = backOf(e), shown = opacityOf(e);
    const text = colour(getComputedStyle(e).color).slice(0, 3).map((c, i) => c * shown + back[i] * (1 - shown));
    const [a, b] = [light(text), light(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least[0]) least = [ratio, e.tagName + "." + e.className + ": " + e.textContent.slice(0, 30)];
  }
  return least;
})()"""


class Checks:
    def __init__(self):
        self.done, self.failed = [], []

    def check(self, what, condition):
        """Calls `condition` until it returns True, for some seconds. It may return the reason why it is not met, as a
        text."""
        self.done.append(what)
        said, deadline = None, time.monotonic() + 12
        while time.monotonic() < deadline:
            try:
                said = condition()
            except (RuntimeError, KeyError, TypeError, AssertionError) as error:
                said = str(error)
            if said is True:
                return
            time.sleep(0.3)
        self.failed.append(f"{what}: {said}")


class Tour:
    """One lab, one browser, and the checks, made one after the other. `everywhere`: how the page looks is checked in
    each state, not only under load."""

    def __init__(self, lab, page, shots, checks, everywhere=False):
        self.lab, self.page, self.shots, self.check, self.everywhere = lab, page, shots, checks.check, everywhere
        self.edge = lab.edge_gateway
        self.load = []
        self.first_bytes = self.script_bytes = None

    # ---- helpers

    def text(self, selector):
        return self.page.value(f"(document.querySelector({json.dumps(selector)}) || {{}}).textContent || ''")

    def count(self, selector):
        return self.page.value(f"document.querySelectorAll({json.dumps(selector)}).length")

    def card(self, path, figure):
        """A raw figure of a path's card."""
        return self.page.value(f"Number(document.querySelector('[data-path=\"concentrator/{path}\"] "
                               f"[data-figure={figure}]').dataset.value)")

    def counter(self, path, name):
        return int(self.page.value(f"document.querySelector('[data-path=\"concentrator/{path}\"]').dataset.{name}"))

    def control(self, path):
        return next(flow for flow in self.edge.paths() if flow["uplink"] == path)

    def updates(self):
        return int(self.page.value("document.body.dataset.updates || 0"))

    def state(self, name, judged=False):
        """The page as it is now, in both widths and themes."""
        for width, height, dark in LOOKS:
            self.page.look(width, height, dark)
            time.sleep(1.2)
            theme = "dark" if dark else "light"
            self.page.screenshot(self.shots / f"{name}-{theme}-{width}.png")
            if not (judged or self.everywhere):
                continue
            where = f"{name}, {width} px, {theme}"
            self.check(f"{where}: nothing is wider than the window", lambda width=width: self.page.value(
                "document.documentElement.scrollWidth") <= width)
            self.check(f"{where}: nothing is cut off", lambda: self.page.value(CUT) == [] or str(self.page.value(CUT)))
            self.check(f"{where}: text has a contrast of 4.5 at least", self._contrast)
        self.page.look(1280, 900, dark=False)

    # ---- what is looked at

    def first_view(self):
        self.page.look(1280, 900, dark=False)
        self.page.open(BASE)
        self.check("loads: the title names the device", lambda: self.page.value("document.title") == "Braid braid0")
        self.check("loads: a card for each path", lambda: self.count(".path") == len(LINKS))
        self.check("loads: what was done, by its name",
                   lambda: "repaired before the sender knew" in self.text("#done"))
        time.sleep(1)
        self.first_bytes = sum(each["encodedDataLength"] for each in self.page.parameters("Network.loadingFinished"))
        self.check(f"loads: at most {MOST_BYTES} bytes for the first view", lambda: 0 < self.first_bytes <= MOST_BYTES)
        self.script_bytes = self.page.value(SCRIPT_SIZE)
        self.check(f"loads: at most {MOST_SCRIPT} bytes of scripts", lambda: 0 < self.script_bytes <= MOST_SCRIPT)
        self.check("updates: every second", self._updates)
        self.state("idle")

    def _updates(self):
        before = self.updates()
        time.sleep(3.2)
        grown = self.updates() - before
        return True if 2 <= grown <= 4 else f"{grown} updates in 3.2 s"

    def numbers(self):
        """The control socket's figures before and after those of the page."""
        for path in ("dsl", "lte"):
            for figure, name in (("sent_bytes", "sentBytes"), ("received_bytes", "receivedBytes"),
                                 ("sent_packets", "sentPackets")):
                self.check(f"numbers: {figure} of {path} is the control socket's",
                           lambda path=path, figure=figure, name=name: self._between(path, figure, name))
            self.check(f"numbers: RTT of {path} is the control socket's", lambda path=path: abs(
                self.card(path, "srtt_ms") - self.control(path)["srtt_ms"]) < 2 or "another")
            self.check(f"numbers: MTU of {path} is the control socket's", lambda path=path: self.counter(
                path, "mtuBytes") == self.control(path)["mtu_bytes"])
        self.check("numbers: version and peers are the control socket's", lambda: self._head(self.edge.status()))

    def _between(self, path, figure, name):
        least = self.control(path)[figure]
        seen = self.updates()
        while self.updates() < seen + 2:
            time.sleep(0.1)
        shown, most = self.counter(path, name), self.control(path)[figure]
        return True if least <= shown <= most else f"{least} <= {shown} <= {most} is not so"

    def _head(self, status):
        return f"braidd {status['gateway']['version']}" in self.text("#about") \
            and "1 of 1 peer up · 2 of 2 paths active" in self.text("#health")

    def begin_load(self):
        """A TCP flow from the client to the server, by both paths."""
        self.load = [
            self.lab.start(self.lab.server, "server", ["sh", "-c", f"exec nc -l -k {FLOW_PORT} >/dev/null"]),
            self.lab.start(self.lab.client, "sender", [
                "sh", "-c", f"sleep 1; exec nc {Lab.server_addresses()[0]} {FLOW_PORT} </dev/zero"])]

    def end_load(self):
        for process in reversed(self.load):
            self.lab.stop(process)
        self.load = []

    def _rate(self):
        """The page's rate up of DSL beside the control socket's over the same seconds."""
        before, began = self.control("dsl")["sent_bytes"], time.monotonic()
        time.sleep(3)
        shown = self.card("dsl", "up_bytes_per_s")
        told = (self.control("dsl")["sent_bytes"] - before) / (time.monotonic() - began)
        return True if told > 1e6 and abs(shown / told - 1) < 0.25 else f"{shown:.0f} and {told:.0f} bytes/s"

    def under_load(self):
        self.begin_load()
        self.check("load: the rate shown is that of the counters", self._rate)
        self.check("load: what LTE lost is shown", lambda: 0.005 < self.card("lte", "lost_share") < 0.1)
        self.check("load: and what of it was repaired", lambda: 0 <= self.card("lte", "recovered_share") <= 1)
        self.check("load: what became of it at the top", self._losses)
        self.check("charts: curves reach from one end of the axis to now", self._curves)
        self.check("charts: lines of rates and RTT", lambda: self.count(".path:first-child polyline.rtt") >= 1
                   and self.count(".path:first-child polyline.up") >= 1)
        self.check("charts: a time axis of the clock", lambda: re.fullmatch(
            r"\d\d:\d\d(:\d\d)?", self.page.value(
                "[...document.querySelectorAll('.path:first-child .chart text')].map((e) => e.textContent)"
                ".find((t) => /:/.test(t))")) is not None)
        self.check("charts: the state as a ribbon", lambda: self.count(".path:first-child .state.active") >= 1)
        self.state("loaded", judged=True)

    def _losses(self):
        """The page's figures of a minute are no more than the control socket's of the whole session."""
        def figure(name):
            return int(self.text(f"#totals [data-figure={name}]").split()[0].replace(",", ""))
        if "%" not in self.text("#totals [data-figure=lost_share]"):
            return "no share of losses"
        peer = self.edge.status()["peers"][0]
        told = {"recovered": sum(path["recovered_packets"] for path in self.edge.paths()),
                "retransmitted": peer["retransmitted"], "undelivered": peer["undelivered"]}
        return all(figure(name) <= most for name, most in told.items()) or str(told)

    def _curves(self):
        first, last, width = self.page.value(CURVE_ENDS)
        return True if first < 75 and last > width - 15 else f"{first} to {last} of {width}"

    def flows(self):
        self.check("flows: the TCP flow with its rate", lambda: f":{FLOW_PORT}" in self.text("#flows")
                   and "Mbit/s" in self.text("#flows tbody td"))
        self.check("flows: the host by the name in its lease, its address at hand", lambda: self.page.value(
            f"[...document.querySelectorAll('#flows td.name span[title]')].some((e) => "
            f"e.textContent.includes('{HOST}:') && e.title.includes('{self.lab.sites[0].client_address[0]}:'))"))
        self.lab.client.run("ping", "-c", "1", "-W", "5", Lab.server_addresses()[0])
        self.check("flows: what is idle is counted and folded away", lambda: re.fullmatch(
            r"[1-9]\d* idle", self.text("#idle-note")) is not None and "icmp" not in self.text("#flows")
            and not self.page.value("document.getElementById('idle').open"))
        self.page.value("document.getElementById('idle-note').click()")
        self.check("flows: and unfolds", lambda: f"icmp {HOST} > " in self.text("#idle-flows"))
        self.page.value("document.getElementById('idle-note').click()")
        self.check("peers: the peer's row", lambda: "concentrator" in self.text("#peers tbody")
                   and "2 of 2" in self.text("#peers tbody"))

    def uplinks(self):
        """What the page says of an uplink is what the control socket says."""
        for path in ("dsl", "lte"):
            self.check(f"uplinks: bytes of today and this month of {path}", lambda path=path: self._carried(path))
            self.check(f"uplinks: {path} was always available", lambda path=path: "available 100 %" in self.about(path)
                       or self.about(path))
            seen = self.control(path)["public_address"].rpartition(":")[0]
            self.check(f"uplinks: the public address of {path}", lambda path=path, seen=seen: f"seen as {seen}"
                       in self.text(f"[data-path='concentrator/{path}'] h3"))
        self.check("uplinks: the cap beside it", lambda: re.search(
            r"% of 10.0 GB until \d{4}-\d\d-\d\d$", self.about("lte")) is not None or self.about("lte"))
        told = self.edge.ctl("status")
        self.check("uplinks: status has the same words and units", lambda: re.search(
            r"UPLINK +SEEN AS +AVAILABLE +TODAY +THIS MONTH +CAP\n(.*\n)*lte +[0-9.]+ +100 % .* of 10.0 GB until \d{4}",
            told) is not None or told)

    def about(self, path):
        return self.text(f"[data-path='concentrator/{path}'] .carried")

    def _carried(self, path):
        def now():
            return next(each["carried"] for each in self.edge.status()["gateway"]["uplinks"] if each["name"] == path)
        least, seen = now(), self.updates()
        while self.updates() < seen + 2:
            time.sleep(0.1)
        shown, most = self.about(path), now()
        for figure, word in (("today_bytes", "today"), ("month_bytes", "this month")):
            value, unit = re.search(rf"{word} ([0-9.]+) (k|M|G|)B", shown).groups()
            value = float(value) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]
            if not 0.99 * least[figure] <= value <= 1.01 * most[figure]:
                return f"{least[figure]} <= {value} <= {most[figure]} is not so"
        return True

    def outage(self):
        self.lab.links.set("dsl", down=True)
        chip = "[data-path='concentrator/dsl'] .chip"
        self.check("outage: the path's chip says since when", lambda: re.fullmatch(r"down for \d+ s", self.text(chip))
                   is not None)
        self.check("outage: the head says so", lambda: "dsl down for" in self.text("#health"))
        self.check("outage: of what was measured only dashes are shown", lambda: set(self.page.value(
            "[...document.querySelectorAll('[data-path=\"concentrator/dsl\"] dd')].map((e) => e.textContent)"))
            == {"–"})
        time.sleep(16)  # until what was is asked again
        self.check("outage: one line, in amber, since when", lambda: self._lines_of("dsl") == ["warn"]
                   and "dsl: down since" in self.text("#events"))
        self.state("dead")
        self.lab.links.set("dsl", down=False)
        self.check("outage: and when it is back", lambda: self.text(chip) == "active")
        time.sleep(16)  # until what was is asked again
        self.check("outage: then one line, in green, of a stall avoided", lambda: self._lines_of("dsl") == ["good"]
                   and "a stall avoided" in self.text("#events"))
        for what, figure in (("a path taken out", "paths_taken_out"), ("a stall avoided", "stalls_avoided")):
            self.check(f"outage: it counts as {what}", lambda figure=figure: int(self.text(
                f"#done [data-figure={figure}]").split()[0]) > 0)
        self.check("outage: it was not always available", lambda: re.search(
            r"available \d\d(\.\d+)? %", self.about("dsl")) is not None or self.about("dsl"))
        self.end_load()

    def _lines_of(self, path):
        """The classes of the events that are about outages of a path, the newest first."""
        return self.page.value("[...document.querySelectorAll('#events li span:last-child')].filter((e) => "
                               f"e.textContent.startsWith('{path}: down')).map((e) => e.className)")

    def spans(self):
        for button, title in ((3600, "1 hour"), (86400, "24 hours"), (600, "10 minutes")):
            self.page.value(f"document.querySelector('[data-span=\"{button}\"]').click()")
            self.check(f"time: {title} can be shown", lambda button=button: self.page.value(
                f"document.querySelector('[data-span=\"{button}\"]').getAttribute('aria-pressed')") == "true"
                and self.count(".path:first-child .chart .grid") > 6)
        self.page.value("document.querySelector('[data-span=\"3600\"]').focus()")
        for kind in ("keyDown", "keyUp"):
            self.page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r",
                           windowsVirtualKeyCode=13)
        self.check("keyboard: the switch of time", lambda: self.page.value(
            "document.querySelector('[data-span=\"3600\"]').getAttribute('aria-pressed')") == "true")
        self.page.value("document.querySelector('[data-span=\"600\"]').click()")

    def looks(self):
        self.page.look(390, 844, dark=False)
        time.sleep(1.2)
        self.check("phone: tables are cards that name their figures", lambda: self.page.value(
            "getComputedStyle(document.querySelector('#peers thead')).display === 'none' && "
            "getComputedStyle(document.querySelectorAll('#peers td')[1], '::before').content === '\"State\"'"))
        self.check("phone: what is to be tapped is 40 px high", lambda: self.page.value(
            "[...document.querySelectorAll('.switch button')].every((b) => b.offsetHeight >= 40)"))
        self.page.look(1280, 900, dark=False)
        self.check("for readers of screens: language, names of charts, titles", lambda: self.page.value(
            "document.documentElement.lang === 'en' && [...document.querySelectorAll('.chart')].every((c) => "
            "c.getAttribute('aria-label')) && document.querySelectorAll('h1').length === 1"))

    def _contrast(self):
        ratio, where = self.page.value(CONTRAST)
        return True if ratio >= 4.5 else f"{ratio:.2f} at {where}"

    def restart(self):
        self.edge.stop(signal.SIGKILL)
        self.check("restart of the daemon: the page says that it is away", lambda: "no daemon answers"
                   in self.text("#problem"))
        self.state("stopped")
        self.edge.start()
        self.edge.wait_up(2)
        self.check("restart of the daemon: and goes on by itself", lambda: self.page.value(
            "document.getElementById('problem').hidden") and "2 of 2 paths active" in self.text("#health"))
        self.check("restart of the daemon: with the new one's figures", lambda: self._between(
            "dsl", "sent_bytes", "sentBytes"))

    def to_nobody_else(self):
        urls = [each["request"]["url"] for each in self.page.parameters("Network.requestWillBeSent")]
        strangers = [url for url in urls if not url.startswith(BASE) and not url.startswith("data:")]
        self.check("no request to anybody else", lambda: not strangers and len(urls) > 20 or str(strangers))
        bad = [each["entry"]["text"] for each in self.page.parameters("Log.entryAdded")
               if each["entry"]["level"] == "error" and "503" not in each["entry"]["text"]]
        thrown = [each["exceptionDetails"]["text"] for each in self.page.parameters("Runtime.exceptionThrown")]
        self.check("no error in the console, none of the policy", lambda: not bad and not thrown or str(bad + thrown))


def start_web(lab, socket):
    """The leases are those of the edge's own DHCP server, which only this process sees."""
    leases = lab.directory / "leases"
    leases.write_text(f"1800000000 02:00:00:00:00:07 {lab.sites[0].client_address[0]} {HOST} *\n", encoding="ascii")
    leases.chmod(0o644)
    folder = pathlib.Path(LEASES).parent
    process = lab.start(lab.edge, "web", [
        "sh", "-c", f"mkdir -p {folder} && mount -t tmpfs none {folder} && cp {leases} {LEASES} && "
        f"exec {binary('braid-web')} --socket {socket}"])
    lab.wait_for_line("web", "serves http")
    return process


def promtool(*words, stdin=None, folder=None):
    """True, or what promtool complains of."""
    done = subprocess.run(["promtool", *words], input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, cwd=folder)
    return done.returncode == 0 or done.stdout


def prometheus(lab, checks):
    """Checks the served metrics and the shipped Prometheus files with promtool."""
    checks.check("Prometheus: /metrics", lambda: promtool("check", "metrics", stdin=lab.edge.run(
        "curl", "-s", BASE + "metrics")))
    with tempfile.TemporaryDirectory() as folder:
        token = pathlib.Path(folder) / "braid.token"
        token.write_text("token", encoding="ascii")
        for name in ("braid.rules.yml", "prometheus.yml"):
            text = (SOURCE / "conf/prometheus" / name).read_text(encoding="utf-8")
            (pathlib.Path(folder) / name).write_text(text.replace("/etc/prometheus/braid.token", str(token)),
                                                     encoding="utf-8")
        checks.check("Prometheus: rules", lambda: promtool("check", "rules", "braid.rules.yml", folder=folder))
        checks.check("Prometheus: configuration", lambda: promtool("check", "config", "prometheus.yml", folder=folder))
    checks.check("Prometheus: what the rules say", lambda: promtool("test", "rules", RULES_TEST))


def tour(screenshots, everywhere=False, more=()):
    """(value, detail) of a target: how many checks failed. `more`: functions of the tour, for states that the lab
    itself cannot be in."""
    run(SOURCE / "scripts/deps", "web", timeout=600)
    from ._browser import chromium  # after its packages are there
    checks = Checks()
    with contextlib.ExitStack() as stack:
        shots = pathlib.Path(screenshots or stack.enter_context(tempfile.TemporaryDirectory()))
        shots.mkdir(parents=True, exist_ok=True)
        lab = stack.enter_context(Lab(LINKS))
        lab.make_gateways()
        lab.edge_gateway.config["uplinks"][1] |= {"use": "normal", "metered": {"cap": "10GB"}}
        for gateway in lab.gateways():
            gateway.start()
        lab.edge_gateway.wait_up(2)
        web = start_web(lab, lab.edge_gateway.socket)
        prometheus(lab, checks)
        page = stack.enter_context(chromium(lab, lab.edge))
        here = Tour(lab, page, shots, checks, everywhere)
        for part in (here.first_view, here.numbers, here.under_load, here.flows, here.uplinks, here.outage, here.spans,
                     here.looks, here.restart, here.to_nobody_else):
            part()
        here.end_load()
        lab.stop(web)
        for part in more:
            part(here)
    detail = {"checks": len(checks.done), "bytes of the first view": here.first_bytes,
              "bytes of scripts": here.script_bytes, "failed": checks.failed, "listed": checks.done}
    if len(checks.done) < LEAST_CHECKS:
        detail[MISSING] = f"{len(checks.done)} of at least {LEAST_CHECKS} checks"
    return len(checks.failed), detail
