"""The base class of the end-to-end tests: one lab per test class, with gateways, nginx and downloads."""

import contextlib
import pathlib
import re
import socket
import time

from diagnosed import DiagnosedCase
from lab import Download, Lab, Link
from lab.gateway import PORT, binary
from lab.services import Dnsmasq, Nginx
from lab.site import PUBLIC

V4, V6 = Lab.server_addresses()
PRERM = pathlib.Path(__file__).resolve().parents[2] / "packaging/debian/braid.prerm"


def unbroken(told):
    """What a program told, with each note on one line, as it is before braidctl breaks it for a terminal."""
    return re.sub(r"\r?\n  (?=\S)", " ", told)


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
        cls.addClassCleanup(cls.expect_no_reports)
        cls.addClassCleanup(cls.lab.close)
        cls.nginx = Nginx(cls.lab)
        if cls.GATEWAYS:
            cls.lab.start_gateways(edge=cls.EDGE, concentrator=cls.CONCENTRATOR)

    @classmethod
    def expect_no_reports(cls):
        """Fails for what a sanitizer reported of a daemon, a race for example, in a build that has one."""
        if cls.lab.reports:
            raise AssertionError("\n".join(cls.lab.reports))

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

    def call_prerm(self, *words):
        """Runs the Debian package's prerm at the edge as dpkg does, with the lab's configurations in /etc/braid."""
        self.lab.edge.run("unshare", "--mount", "sh", "-ec",
                          "for folder in /etc /run; do mount -t tmpfs none $folder; done; mkdir /etc/braid; "
                          'mount --bind "$0" /etc/braid; PATH=$1:$PATH; shift; exec sh "$@"',
                          self.lab.directory, pathlib.Path(binary("braidctl")).parent, PRERM, *words)


class EdgeStartsCase(PairCase):
    """Each test configures the edge's gateway and starts it."""

    LINKS = [Link("wifi", 100, 4), Link("lte", 100, 4)]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.edge_gateway.stop()

    def setUp(self):
        self.edge, self.gateway = self.lab.edge, self.lab.edge_gateway

    def tearDown(self):
        if self.gateway.process:
            self.gateway.stop()

    def up(self):
        self.gateway.start()
        self.gateway.wait_up(subflows=2)

    def files_of(self, namespace):
        """A folder for files that programs in the namespace see in /etc (ip-netns(8)), until the test ends. Other tests
        may have theirs beside it."""
        folder = pathlib.Path("/etc/netns") / namespace.name

        def remove_parent():
            with contextlib.suppress(OSError):
                folder.parent.rmdir()

        folder.mkdir(parents=True)
        self.addCleanup(remove_parent)
        self.addCleanup(folder.rmdir)
        return folder

    def name_the_hub(self):
        """Gives the hub's endpoint as a name, which the edge's name server knows: until the test ends."""
        folder = self.files_of(self.edge)
        (folder / "resolv.conf").write_text(f"nameserver {PUBLIC[0]}\n", encoding="ascii")
        self.addCleanup((folder / "resolv.conf").unlink)
        server = Dnsmasq(self.lab, {"hub.example": PUBLIC[0]}, namespace=self.lab.concentrator, listen=PUBLIC[0])
        self.addCleanup(self.lab.stop, server.process)
        peer = self.gateway.config["peers"][0]
        self.addCleanup(peer.update, endpoints=peer["endpoints"])
        peer["endpoints"] = [f"hub.example:{PORT}"]

    # ---- replies

    @contextlib.contextmanager
    def answering(self, namespace, address, port):
        """A TCP server that sends back what it gets, once."""
        def listen():
            end = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            end.bind((address, port))
            end.settimeout(5)
            end.listen()
            return end

        with namespace.inside(listen) as listener:
            yield listener

    def is_answered(self, listener, address, port, source):
        """A connection from outside, from an address to which the host's routes lead into the tunnel."""
        with self.lab.concentrator.inside(socket.create_connection, (address, port), 3, (source, 0)) as near:
            far, _ = listener.accept()
            with far:
                near.sendall(b"question")
                far.sendall(far.recv(100))
                return near.recv(100) == b"question"
