"""see.2: the page in every state of a gateway, and of a large one."""

import contextlib

from . import require, target
from ._page_tour import BASE, MOST_BYTES, MOST_SCRIPT, SCREENSHOTS, start_web, tour
from ._stand_in import SILENT, Crowd, StandIn
from .pair import PROGRAMS

MANY_PATHS, MANY_PEERS = 20, 1000  # of each of the two links: 40 paths
MOST_CARDS, MOST_ROWS = 32, 100  # LiveView::kPaths, kPeers
CARDS = 8  # MANY_CARDS of page.js
DOWN = 2 * len(range(5, MANY_PATHS, SILENT))  # of the 40 paths


@contextlib.contextmanager
def _large(tour_, name, real, crowd):
    """The page of a gateway with that crowd."""
    lab = tour_.lab
    path = lab.directory / f"{name}.sock"
    with StandIn(path, real, crowd):
        path.chmod(0o666)
        web = start_web(lab, path)
        try:
            tour_.page.look(1280, 900, dark=False)
            tour_.page.open(BASE)
            yield
        finally:
            lab.stop(web)


def many_paths(here):
    with _large(here, "paths", here.lab.edge_gateway.socket, Crowd(paths=MANY_PATHS)):
        here.check("40 paths: the busiest have cards, and the page says so", lambda: here.count(".path") == MOST_CARDS
                   and f"{MOST_CARDS} of {2 * MANY_PATHS}: what is down" in here.text("#paths-note"))
        here.check("40 paths: how many are active, and which are not", lambda: f"of {2 * MANY_PATHS} paths active"
                   in here.text("#health") and "down for" in here.text("#health"))
        here.check("40 paths: those that are down come first", lambda: here.page.value(
            "[...document.querySelectorAll('#paths .chip')].map((e) => e.textContent.startsWith('down for'))")
            == [place < DOWN for place in range(CARDS)])
        here.check("40 paths: more than eight are folded away", lambda: here.text("#more-note")
                   == f"{MOST_CARDS - CARDS} more paths"
                   and not here.page.value("document.getElementById('more').open"))
        here.page.value("document.getElementById('more-note').click()")
        here.check("40 paths: and unfold, with their curves", lambda: here.page.value(
            "[...document.querySelectorAll('#more .chart')].every((e) => e.getBoundingClientRect().height > 50 && "
            "e.querySelector('.state'))"))
        here.page.value("document.getElementById('more-note').click()")
        here.check("40 paths: it goes on", lambda: here.updates() > 3)
        here.state("40 paths")


def many_peers(here):
    with _large(here, "peers", here.lab.gateway.socket, Crowd(peers=MANY_PEERS)):
        here.check("1,000 peers: the busiest are listed, and the page says so", lambda: here.count("#peers tbody tr")
                   == MOST_ROWS and f"{MOST_ROWS} of {MANY_PEERS:,}: what is down" in here.text("#peers-note"))
        here.check("1,000 peers: paths by the names that the peers tell", lambda: here.page.value(
            "[...document.querySelectorAll('.path .by')].every((e) => /: (dsl|lte)$/.test(e.textContent))")
            and here.count(".path") == MOST_CARDS)
        here.check("1,000 peers: those that are down come first, and leave room for others", lambda: here.page.value(
            "[...document.querySelectorAll('#peers td:nth-child(2)')].map((e) => e.textContent)")
            == ["down"] * (MOST_ROWS // 2) + ["up"] * (MOST_ROWS // 2))
        here.check("1,000 peers: it goes on", lambda: here.updates() > 3)
        here.state("1,000 peers")
        last = "document.querySelector('#peers tr:last-child button')"
        chosen = here.page.value(f"{last}.textContent")
        here.page.value(f"{last}.click()")
        here.check("1,000 peers: one of them alone", lambda: here.count(".path") == 2
                   and here.page.value("document.getElementById('peer').value") == chosen)
        here.page.value("choose('')")


@target("see.2", "checks of operate.3 that fail, and of how the page looks at 1280 and 390 px, light and dark: idle, "
        f"loaded, one path dead, daemon stopped, {2 * MANY_PATHS} paths, {MANY_PEERS:,} peers", "checks", at_most=0,
        programs=[*PROGRAMS, "braid-web"],
        options=[SCREENSHOTS])
def page_in_every_state(screenshots):
    value, detail = tour(screenshots, everywhere=True, more=(many_paths, many_peers))
    for what, most in (("bytes of the first view", MOST_BYTES), ("bytes of scripts", MOST_SCRIPT)):
        require(detail, 0 < (detail[what] or 0) <= most, f"{what} are to be at most {most:,}")
    return value, detail
