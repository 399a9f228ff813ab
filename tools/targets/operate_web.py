"""Targets of braid-web: the page in a browser, and the cost of viewing it for the daemon's packet thread."""

import json
import subprocess
import tempfile
import time

from lab import binary
from lab.netns import run

from . import target
from ._page_tour import BASE, LEAST_CHECKS, MOST_BYTES, MOST_SCRIPT, SCREENSHOTS, tour
from .pair import PROGRAMS


@target("operate.3", f"checks that fail of at least {LEAST_CHECKS} of braid-web's page in headless Chromium: loads "
        f"within {MOST_BYTES:,} bytes with scripts of {MOST_SCRIPT:,}, updates, numbers equal the control socket's, "
        "outage, restart, light and dark, phone and desktop, no request elsewhere, promtool",
        "checks", at_most=0, programs=[*PROGRAMS, "braid-web"], options=[SCREENSHOTS])
def page_in_a_browser(screenshots):
    return tour(screenshots)


# ---- operate.6

ROUNDS = 5


def _fetch(path):
    done = subprocess.run(["curl", "-s", "-m", "30", "-o", "/dev/null", "-w", "%{http_code} %{size_download}",
                           BASE + path], stdout=subprocess.PIPE, text=True, check=True)
    code, size = done.stdout.split()
    if code != "200":
        raise RuntimeError(f"/{path}: {code}")
    return int(size)


@target("operate.6", "longest turn of the packet thread while the control socket is asked, /metrics is fetched or "
        "the page is looked at, in its CPU time: 1,000 peers, 100,000 flows, an hour of history", "ms", at_most=2,
        programs=["bench_control", "braid-web"])
def looking_holds_nothing_up():
    asked = json.loads(run(binary("bench_control"), timeout=600))
    detail = {"peers": asked["peers"], "flows": asked["flows"],
              "control socket": {name: round(told["longest_ms"], 3) for name, told in asked["questions"].items()}}
    longest = max(told["longest_ms"] for told in asked["questions"].values())
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/hub.sock"
        with subprocess.Popen([binary("bench_control"), socket], stdout=subprocess.PIPE, text=True) as bench:
            try:
                if json.loads(bench.stdout.readline()) != {"ready": True}:
                    raise RuntimeError("bench_control does not serve")
                sizes = _look(socket)
            finally:
                bench.terminate()
            told = json.loads(bench.stdout.readline())
    detail["by braid-web"] = {"longest ms": round(told["longest_ms"], 3), "bytes of an answer": sizes}
    return max(longest, told["longest_ms"]), detail


def _look(socket):
    """{path: bytes} of what a browser and Prometheus fetch, several times."""
    web = subprocess.Popen([binary("braid-web"), "--socket", socket], stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        sizes = {}
        for _ in range(ROUNDS):
            for path in ("metrics", "api/status", "api/live", "api/live?peer=edge7", "api/past",
                         "api/past?peer=edge7"):
                sizes["/" + path] = _fetch(path)
            time.sleep(1)
        return sizes
    finally:
        web.terminate()
        web.wait(10)
