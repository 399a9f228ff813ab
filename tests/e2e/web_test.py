"""braid-web with real gateways: it serves the daemon's figures, only to allowed clients, and survives restarts."""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

from lab import Link
from lab.gateway import binary, make_identities
from pair_case import PairCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORT = 9380
BASE = f"http://127.0.0.1:{PORT}"
SECURE = "https://192.168.10.1:9443"  # the edge's address in its LAN
TOKEN = "correct-horse-battery-staple"
_SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
_LABEL = re.compile(r'(\w+)="((?:\\.|[^"\\])*)"')


class WebCase(PairCase):
    LINKS = [Link("dsl", 40, 20), Link("lte", 20, 50, 0.02)]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.web = cls.start_web("web", "--listen", f"127.0.0.1:{PORT}", "--host", "router.lan")
        cls.lab.wait_for_line("web", "serves http")

    @classmethod
    def start_web(cls, name, *words):
        return cls.lab.start(cls.lab.edge, name,
                             [binary("braid-web"), "--socket", cls.lab.edge_gateway.socket, *words])

    def curl(self, *words, namespace=None):
        """(status, body) of a request; status 0: no answer."""
        command = (namespace or self.lab.edge).words("curl", "-s", "-m", "15", "-w", "\n%{http_code}", *words)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=20)
        body, _, code = done.stdout.rpartition("\n")
        return int(code), body

    def get(self, path):
        code, body = self.curl(BASE + path)
        self.assertEqual(code, 200, path)
        return body

    def metrics(self):
        """{(name, labels): value} of /metrics."""
        out = {}
        for line in self.get("/metrics").splitlines():
            if not line.startswith("#"):
                name, labels, value = _SAMPLE.match(line).groups()
                out[name, frozenset(_LABEL.findall(labels or ""))] = float(value)
        return out

    def carry(self, size=2_000_000):
        self.verify(self.download(self.file(size)))


class Web(WebCase):
    def test_status_is_what_the_control_socket_says(self):
        self.carry()
        time.sleep(1.5)
        web, control = json.loads(self.get("/api/status")), self.lab.edge_gateway.status()
        self.assertEqual(web["gateway"]["pid"], control["gateway"]["pid"])
        self.assertEqual(web.keys(), control.keys())
        for mine, other in zip(web["peers"], control["peers"]):
            self.assertEqual(mine["inner_received_bytes"], other["inner_received_bytes"])
            self.assertEqual(*([flow["uplink"] for flow in each["subflows"]] for each in (mine, other)))

    def test_metrics_are_those_figures_in_units_of_prometheus(self):
        self.carry()
        time.sleep(1.5)
        metrics, control = self.metrics(), self.lab.edge_gateway.status()
        self.assertEqual(metrics["braid_up", frozenset()], 1)
        peer = control["peers"][0]
        labels = frozenset({("peer", "concentrator")})
        self.assertEqual(metrics["braid_peer_inner_received_bytes_total", labels], peer["inner_received_bytes"])
        self.assertEqual(metrics["braid_peer_up", labels], 1)
        for flow in peer["subflows"]:
            labels = frozenset({("peer", "concentrator"), ("path", flow["uplink"]), ("id", str(flow["id"]))})
            self.assertAlmostEqual(metrics["braid_path_srtt_seconds", labels], flow["srtt_ms"] / 1e3, delta=0.01)
            self.assertEqual(metrics["braid_path_state", labels | {("state", "active")}], 1)
        self.assertGreater(len(metrics), 150)

    def test_each_uplink_tells_what_it_carried(self):
        before = self.metrics()
        self.carry()
        time.sleep(1.5)
        after = self.metrics()
        uplinks = [frozenset({("uplink", uplink)}) for uplink in ("dsl", "lte")]

        def grown(name):
            name = f"braid_uplink_carried_{name}"
            return sum(after[name, uplink] - before[name, uplink] for uplink in uplinks)

        for name in ("bytes_total", "today_bytes", "month_bytes"):
            self.assertGreater(grown(name), 2_000_000, name)
            self.assertLess(grown(name), 4_000_000, name)
        self.eventually(lambda: [self.metrics().get(("braid_uplink_availability", uplink)) for uplink in uplinks]
                        == [1, 1], "both to be available", timeout=25)

    def test_promtool_finds_nothing_wrong(self):
        if not shutil.which("promtool"):
            self.skipTest("no promtool (scripts/deps web)")
        done = subprocess.run(["promtool", "check", "metrics"], input=self.get("/metrics"), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_rules_and_dashboard_name_metrics_that_are_there(self):
        meters = {"braid_uplink_meter_used_bytes", "braid_uplink_meter_cap_bytes"}  # no uplink is metered here
        there = {name for name, _ in self.metrics()} | meters
        for file in ("prometheus/braid.rules.yml", "grafana/braid.json"):
            named = set(re.findall(r"\bbraid_[a-z0-9_]+", (ROOT / "conf" / file).read_text(encoding="utf-8")))
            self.assertGreater(len(named), 7)
            self.assertEqual(named - there, set(), file)

    def test_live_tells_rates_of_what_crosses(self):
        process = self.lab.start(self.lab.edge, "load", [binary("braidctl"), "test", "--seconds", "8", "--socket",
                                                         self.lab.edge_gateway.socket])
        self.addCleanup(self.lab.stop, process, signal.SIGINT)
        deadline = time.monotonic() + 8
        best = {}
        while time.monotonic() < deadline:
            for path in json.loads(self.get("/api/live"))["paths"]:
                rate = (path["up_bytes_per_s"] or 0) * 8 / 1e6
                best[path["path"]] = max(best.get(path["path"], 0), rate)
            time.sleep(0.5)
        self.assertGreater(best["dsl"], 15)
        self.assertLess(best["dsl"], 45)

    def test_past_and_day_are_there(self):
        self.eventually(lambda: json.loads(self.get("/api/past"))["steps"], "a step of the history", timeout=25)
        past = json.loads(self.get("/api/past"))
        self.assertEqual({path["path"] for path in past["steps"]}, {"dsl", "lte"})
        self.assertIn("recovered_packets", past["sums"])
        self.assertEqual(json.loads(self.get("/api/day"))["step_s"], 120)

    def test_others_are_refused(self):
        self.assertEqual(self.curl("-X", "POST", BASE + "/api/status")[0], 405)
        self.assertEqual(self.curl(BASE + "/../../etc/passwd", "--path-as-is")[0], 404)
        self.assertEqual(self.curl(BASE + "/", "-H", "Host: evil.example")[0], 421)
        self.assertEqual(self.curl(BASE + "/", "-H", "Host: router.lan:9380")[0], 200)
        self.assertEqual(self.curl(f"http://192.168.10.1:{PORT}/", namespace=self.lab.client)[0], 0, "loopback only")

    def test_the_page_comes_whole_and_with_a_policy(self):
        page = self.get("/")
        for file in re.findall(r'(?:src|href)="(/[a-z.]+)"', page):
            self.assertTrue(self.get(file))
        head = subprocess.run(self.lab.edge.words("curl", "-s", "-I", BASE + "/"), stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        self.assertIn("default-src 'none'; script-src 'self'", head)
        self.assertRegex(head, r"Content-Length: [1-9]\d+")

    def test_a_unix_socket_is_for_its_user_and_group(self):
        self.lab.directory.chmod(0o755)
        socket = self.lab.directory / "web.sock"
        web = self.start_web("unix", "--listen", f"unix:{socket}", "--group", "nogroup")
        self.lab.wait_for_line("unix", f"serves http at unix:{socket}")

        def asked(*user):
            words = self.lab.edge.words(*user, "curl", "-s", "-m", "5", "--unix-socket", str(socket),
                                        "http://localhost/metrics")
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False, timeout=20)
            return "\nbraid_up 1\n" in done.stdout

        nobody = ["setpriv", "--reuid=nobody", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
        self.assertTrue(asked())
        self.assertTrue(asked(*nobody, "--regid=nogroup"))
        self.assertFalse(asked(*nobody, "--regid=daemon"))
        self.lab.stop(web)
        self.assertFalse(socket.exists())

    def test_zz_survives_a_restart_of_the_daemon(self):
        self.carry()
        self.lab.edge_gateway.stop(signal.SIGKILL)
        time.sleep(1.2)
        self.assertEqual(self.metrics()["braid_up", frozenset()], 0)
        self.assertIn("no daemon answers", json.loads(self.get("/api/live"))["problem"])
        self.assertEqual(self.curl(BASE + "/api/status")[0], 503)
        self.lab.edge_gateway.start()
        self.lab.edge_gateway.wait_up(2)
        time.sleep(1.2)
        self.assertEqual(self.metrics()["braid_up", frozenset()], 1)
        live = json.loads(self.get("/api/live"))
        self.assertIsNone(live["problem"])
        self.assertEqual(live["gateway"]["pid"], self.lab.edge_gateway.status()["gateway"]["pid"])
        self.assertIsNone(self.web.poll())


class Streams(WebCase):
    """With TCP carried as streams, at both ends."""

    LINKS = [Link("dsl", 40, 20), Link("lte", 20, 50)]
    EDGE = CONCENTRATOR = {"streams": {"enabled": "on", "match": [{"ports": 80}]}}

    def test_what_crosses_as_streams_is_in_every_total(self):
        self.eventually(lambda: self.lab.edge_gateway.status()["streams"]["intercepting"], "connections are taken over")
        download = self.download(self.file(15_000_000))
        rates = []  # of the gateway, of its peer, of all paths
        while download.is_alive():
            live = json.loads(self.get("/api/live"))
            rows = ([live["totals"]], live["peers"], live["paths"])
            rates.append([sum(row["down_bytes_per_s"] or 0 for row in part) for part in rows])
            time.sleep(0.3)
        self.verify(download)
        total, peer, paths = max(rates, key=lambda each: each[2])
        self.assertGreater(paths, 1_000_000, "the paths carried it")
        for told in (total, peer):
            self.assertGreater(told, 0.8 * paths, rates)
            self.assertLess(told, paths, rates)
        for gateway, column in ((self.lab.edge_gateway, "RECEIVED"), (self.lab.gateway, "SENT")):
            heads, row = (re.split(r"  +", line) for line in gateway.ctl("peers").splitlines()[:2])
            number, unit = row[heads.index(column)].split()
            self.assertEqual(unit, "MB", row)
            self.assertAlmostEqual(float(number), 15, delta=0.5)
        time.sleep(1.2)
        label = frozenset({("peer", "concentrator")})
        self.assertGreaterEqual(self.metrics()["braid_peer_received_bytes_total", label], 15_000_000)


class Secure(WebCase):
    """Access from another host: with a token and TLS, and as a user without permissions."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.lab.directory
        make_identities(folder, ["web"])
        (folder / "web.token").touch(mode=0o600)
        (folder / "web.token").write_text(TOKEN + "\n", encoding="ascii")
        cls.words = ["--listen", "0.0.0.0:9443", "--certificate", folder / "web.crt", "--key", folder / "web.key",
                     "--token-file", folder / "web.token"]
        cls.start_web("secure", *cls.words)
        cls.lab.wait_for_line("secure", "serves https")

    def test_the_token_opens_and_nothing_else_does(self):
        far = {"namespace": self.lab.client}
        self.assertEqual(self.curl("-k", SECURE + "/metrics", **far)[0], 401)
        self.assertEqual(self.curl("-k", "-H", "Authorization: Bearer wrong", SECURE + "/", **far)[0], 401)
        self.assertEqual(self.curl("-k", "-u", f"any:{TOKEN}", SECURE + "/", **far)[0], 200)
        code, body = self.curl("-k", "-H", f"Authorization: Bearer {TOKEN}", SECURE + "/metrics", **far)
        self.assertEqual(code, 200)
        self.assertIn("\nbraid_up 1\n", body)
        self.assertEqual(self.curl(SECURE.replace("https", "http") + "/", **far)[0], 0)
        old = ["--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"]
        self.assertEqual(self.curl("-k", *old, SECURE + "/", **far)[0], 0)

    def test_without_them_it_does_not_start(self):
        for words in (self.words[:2], self.words[:6], [*self.words[:2], *self.words[6:]]):
            done = subprocess.run([binary("braid-web"), "--socket", self.lab.edge_gateway.socket, *map(str, words)],
                                  stderr=subprocess.PIPE, text=True, check=False, timeout=10)
            self.assertEqual(done.returncode, 1)
            self.assertIn("needs --token-file, --certificate and --key", done.stderr)

    def test_it_needs_the_group_of_the_socket_and_nothing_more(self):
        shutil.chown(self.lab.edge_gateway.socket, group="nogroup")
        self.lab.directory.chmod(0o755)
        self.lab.start(self.lab.edge, "nobody", [
            "setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
            "--no-new-privs", binary("braid-web"), "--socket", self.lab.edge_gateway.socket,
            "--listen", "127.0.0.1:9381"])
        self.lab.wait_for_line("nobody", "serves http")
        self.assertIn("\nbraid_up 1\n", self.curl("http://127.0.0.1:9381/metrics")[1])
        self.assertNotIn("runs as root", self.lab.log("nobody").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
