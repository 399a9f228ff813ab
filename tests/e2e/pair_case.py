"""The base class of the end-to-end tests: one lab per test class, with gateways, nginx and downloads."""

import time

from diagnosed import DiagnosedCase
from lab import Download, Lab, Link
from lab.services import Nginx

V4, V6 = Lab.server_addresses()


class PairCase(DiagnosedCase):
    """Set LINKS, LANS, SITES, MODE, OFFLOADS, EDGE, CONCENTRATOR in a subclass; GATEWAYS = False leaves the daemons
    out."""

    LINKS = [Link("wifi", 50, 20, 0.01), Link("lte", 30, 60, 0.001)]
    LANS = None
    SITES = 1
    MODE = "tun"
    OFFLOADS = False
    EDGE = None
    CONCENTRATOR = None
    GATEWAYS = True

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(cls.LINKS, sites=cls.SITES, mode=cls.MODE, lans=cls.LANS,
                      offloads=cls.OFFLOADS)
        cls.lab.__enter__()
        cls.addClassCleanup(cls.lab.close)
        cls.nginx = Nginx(cls.lab)
        if cls.GATEWAYS:
            cls.lab.start_gateways(edge=cls.EDGE, concentrator=cls.CONCENTRATOR)

    def tell(self):
        """Shows the status of gateways and links and the ends of all logs, and saves the logs."""
        self.lab.save_logs()
        print(self.lab.told())

    @staticmethod
    def url(path, address=V4):
        return f"http://[{address}]{path}" if ":" in address else f"http://{address}{path}"

    def file(self, size):
        return self.nginx.add(str(size), size)

    def download(self, path, address=V4, **options):
        return Download(self.lab, self.url(path, address), **options)

    def verify(self, download, timeout=60):
        """Waits for the end. The file must be complete and must have arrived over one TCP connection."""
        download.finish(timeout)
        path = "/" + download.url.rpartition("/")[2]
        self.assertEqual(download.sha256, self.nginx.sha256[path])
        self.assertEqual(download.report["num_connects"], 1)

    def ping(self, address=V4, count=5, size=56, namespace=None, interval=0.05, wait=2, options=()):
        """The number of answered echo requests; the last answer may take `wait` seconds."""
        out = (namespace or self.lab.client).run("ping", "-n", "-q", "-c", count, "-i", interval, "-W", wait,
                                                 "-s", size, *options, address, check=False, timeout=30)
        return int(out.partition(" received")[0].rpartition(" ")[2])

    def learn_mtu(self, address, size):
        """Lets both hosts learn the path MTU, which costs each an unanswered request."""
        self.ping(address, count=2, size=size, wait=0.3)

    def eventually(self, condition, what, timeout=10):
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f"{what}: not within {timeout} s")
            time.sleep(0.02)
