"""The demonstration of scripts/demo: a lossy WiFi and an LTE uplink, each alone and both together; WiFi disconnected
during a download; losses in the client's LAN (outside the tunnel) without and with the ack shim; and cold page loads in
the packet lane and in the stream lane."""

import random
import sys
import time

from . import Download, Lab, Link, median
from .gateway import shares
from .measure import difference
from .services import Nginx

WIFI, LTE = Link("wifi", 50, 20, 0.01), Link("lte", 30, 60, 0.001)
FILE_BYTES = 24_000_000
LONG_FILE_BYTES = 110_000_000
WIFI_DIES, WIFI_RETURNS = 3.0, 7.0  # seconds into the long download
SMALL_FILE_BYTES, SMALL_FETCHES, LAN_LOSS_PERCENT = 14_600, 150, 3
OBJECTS, LARGEST_OBJECT, PAGE_LOADS, AT_ONCE = 40, 100_000, 7, 6  # of a page; its loads; connections at once
BAR = 40  # characters for the sum of the links' rates


def url(path, link=None):
    return f"http://{Lab.server_addresses(link)[0]}{path}"


def row(lab, nginx, title, path, link):
    """One download and what the two kernels counted meanwhile, as a line of the table. True if the file is right."""
    paths = lab.edge_gateway.paths()
    client, server = lab.client.counters(), lab.server.counters()
    done = Download(lab, url(path, link)).finish()
    client = difference(lab.client.counters(), client)
    server = difference(lab.server.counters(), server)
    if link is None:
        parts = shares(paths, lab.edge_gateway.paths())
    else:
        parts = {each.name: float(i == link) for i, each in enumerate((WIFI, LTE))}
    good = done.sha256 == nginx.sha256[path]
    print(f"  {title:<14}{done.goodput_mbit():>7.1f} Mbit/s{done.seconds:>8.1f} s{server['Tcp.RetransSegs']:>16}"
          f"{client['TcpExt.TCPOFOQueue']:>17}{parts.get('wifi', 0):>9.0%}{parts.get('lte', 0):>6.0%}   "
          f"{'SHA-256 verified' if good else 'SHA-256 WRONG'}", flush=True)
    return good


def table(lab, nginx):
    path = nginx.add("file", FILE_BYTES)
    print(f"\n1. Unmodified curl fetches {FILE_BYTES // 1_000_000} MB from unmodified nginx, TCP sender: cubic\n")
    print("                      goodput      time   retransmitted     out of order     share of\n"
          "                                          by the server    at the client    WiFi   LTE   file", flush=True)
    return all([row(lab, nginx, "WiFi alone", path, 0), row(lab, nginx, "LTE alone", path, 1),
                row(lab, nginx, "through Braid", path, None)])


def pulled(lab, nginx):
    """WiFi becomes silent during a download and returns. Prints the goodput of every half second."""
    path = nginx.add("long", LONG_FILE_BYTES)
    print(f"\n2. WiFi goes silently dead in mid-download ({LONG_FILE_BYTES // 1_000_000} MB), and returns\n")
    done = Download(lab, url(path), name="curl-long")
    events = [(WIFI_DIES, "WiFi is dead: it drops every packet and tells nobody", True),
              (WIFI_RETURNS, "WiFi is back", False)]
    full = WIFI.rate_mbit + LTE.rate_mbit
    began = last = 0.0
    wifi_before = None
    while done.is_alive():
        time.sleep(max(0.0, last + 0.5 - done.elapsed()))
        now = done.elapsed()
        rate = done.rate_mbit(last, now)
        print(f"  {now:5.1f} s {rate:6.1f} Mbit/s  {'#' * round(rate / full * BAR)}", flush=True)
        last = now
        if events and now >= events[0][0]:
            _, text, down = events.pop(0)
            lab.links.set("wifi", down=down)
            print(f"  {done.elapsed():5.1f} s -- {text}", flush=True)
            if down:
                began = done.elapsed()
            else:
                wifi_before = lab.edge_gateway.paths()
    done.finish()
    good = done.sha256 == nginx.sha256[path]
    share = shares(wifi_before, lab.edge_gateway.paths()).get("wifi", 0) if wifi_before else 0
    one = done.report.get("num_connects") == 1
    print(f"\n  {'the same TCP connection to the end' if one else 'MORE THAN ONE TCP CONNECTION'}, "
          f"{'SHA-256 verified' if good else 'SHA-256 WRONG'}\n"
          f"  longest stall the receiver saw: {done.longest_stall(begin=began) * 1000:.0f} ms\n"
          f"  after its return WiFi carried {share:.0%} of the bytes", flush=True)
    return good and one and share > 0


def fetch_small(lab, path):
    """Seconds of each of many fetches with curl, each over its own connection. An error stops them."""
    words = ["curl", "-sSf", "--max-time", "20", "-H", "Connection: close", "-w", "%{time_total}\n", "-o", "/dev/null"]
    times = lab.client.run(*words, *([url(path)] + ["-o", "/dev/null", url(path)] * (SMALL_FETCHES - 1)), timeout=300)
    return sorted(float(line) for line in times.split())


def lossy_lan(lab, nginx):
    """The edge's kernel drops some packets to the client. Prints how long small files take without and with the shim.
    """
    print(f"\n3. {SMALL_FETCHES} files of {SMALL_FILE_BYTES / 1000:.1f} kB; {LAN_LOSS_PERCENT} % of the packets are "
          "lost in the LAN, between the edge and the client\n\n"
          "                         median      99th percentile       longest", flush=True)
    path = nginx.add("small", SMALL_FILE_BYTES)
    lab.edge.run("nft", "add table inet lan; add chain inet lan out { type filter hook forward priority 0; };"
                 f'add rule inet lan out oifname "lan0" numgen random mod 100 < {LAN_LOSS_PERCENT} drop')
    tails = []
    for enabled in (False, True):
        lab.switch_ack_shim(enabled)
        times = fetch_small(lab, path)
        tails.append(times[int(0.99 * len(times))])
        print(f"  ack shim {'on' if enabled else 'off':<10}{times[len(times) // 2] * 1000:>8.0f} ms"
              f"{tails[-1] * 1000:>18.0f} ms{times[-1] * 1000:>12.0f} ms", flush=True)
    lab.edge.run("nft", "delete table inet lan")
    return tails[1] < tails[0]


def load_page(lab, paths, link):
    """Seconds until all objects of a page have arrived, each over its own connection."""
    for host in (lab.client, lab.server):
        host.ip("tcp_metrics", "flush", "all")  # what the kernels remember of each other
    words = [word for path in paths for word in ("-o", "/dev/null", url(path, link))]
    began = time.monotonic()
    lab.client.run("curl", "-sSf", "-Z", "--parallel-immediate", "--parallel-max", AT_ONCE, "--max-time", 30, "-H",
                   "Connection: close", *words)
    return time.monotonic() - began


def take_streams(lab):
    """Restarts both gateways with streams on."""
    for gateway in lab.gateways():
        gateway.config["streams"] = {"enabled": "on"}
        gateway.stop()
        gateway.start()
    lab.edge_gateway.wait_up(subflows=2)
    for gateway in lab.gateways():
        lab.wait_for(lambda gateway=gateway: gateway.status()["streams"]["intercepting"], "streams")


def pages(lab, nginx):
    source = random.Random(1)
    paths = [nginx.add(f"object{n}", source.randint(1000, LARGEST_OBJECT), n) for n in range(OBJECTS)]
    print(f"\n4. A page of {OBJECTS} objects of up to {LARGEST_OBJECT // 1000} kB, {AT_ONCE} at once, each cold"
          f"; {PAGE_LOADS} loads\n\n                         median       longest", flush=True)
    medians = []
    ways = (("WiFi alone", 0), ("LTE alone", 1), ("packet lane", None), ("stream lane", None))
    for title, link in ways:
        if title == "stream lane":
            take_streams(lab)
        times = [load_page(lab, paths, link) for _ in range(PAGE_LOADS)]
        medians.append(median(times))
        print(f"  {title:<14}{medians[-1] * 1000:>14.0f} ms{max(times) * 1000:>11.0f} ms", flush=True)
    return medians[-1] < min(medians[:-1])


def main():
    began = time.monotonic()
    print("Braid demo:  client -- edge ==WiFi==LTE== concentrator -- server   (network namespaces, emulated links)\n"
          "  WiFi 50 Mbit/s, 20 ms round trip, 1 % loss      LTE 30 Mbit/s, 60 ms round trip, 0.1 % loss", flush=True)
    with Lab([WIFI, LTE]) as lab:
        nginx = Nginx(lab)
        lab.start_gateways()
        good = table(lab, nginx)
        good = pulled(lab, nginx) and good
        good = lossy_lan(lab, nginx) and good
        good = pages(lab, nginx) and good
    print(f"\n{'done' if good else 'FAILED'} in {time.monotonic() - began:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
