"""Unmodified programs over streams, on WiFi and LTE with loss. They must not notice that connections end at the
gateways."""

import hashlib
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

from lab.measure import iperf3
from lab.services import Iperf3, Sshd, make_file
from pair_case import V4, V6, PairCase

HTTP, HTTPS, RSYNC, IPERF, POSTGRES, WEBSOCKET, GIT = 8081, 443, 873, 5201, 5432, 8765, 9418
PORTS = (80, HTTP, HTTPS, RSYNC, IPERF, POSTGRES, WEBSOCKET, GIT)
CLIENT = "192.168.10.2"
OBJECTS = 100  # of a page
POSTGRES_BIN = pathlib.Path("/usr/lib/postgresql/15/bin")
DEBIAN_PYTHON = "/usr/bin/python3"  # has Debian's modules
WEB = """
daemon off; master_process off; user root; pid {root}/nginx.pid; error_log stderr warn;
events {{ worker_connections 512; }}
http {{
  types {{ text/html html; image/png png; }}
  log_format who "$remote_addr $server_protocol $uri"; access_log {root}/access.log who;
  client_body_temp_path {root}/tmp; proxy_temp_path {root}/tmp; fastcgi_temp_path {root}/tmp;
  uwsgi_temp_path {root}/tmp; scgi_temp_path {root}/tmp; sendfile on;
  server {{ listen {http}; root {root}/page; }}
  server {{ listen {https} ssl http2; root {root}/page; http2_max_concurrent_streams 256;
            ssl_certificate {root}/tls.crt; ssl_certificate_key {root}/tls.key; }}
}}
"""
ECHO = f"""
import asyncio, websockets
async def echo(ws):
    async for message in ws:
        await ws.send(message)
async def main():
    async with websockets.serve(echo, "0.0.0.0", {WEBSOCKET}, ping_interval=None):
        print("ready", flush=True)
        await asyncio.Future()
asyncio.run(main())
"""
IDLE = 150  # seconds; more than the gateways' keepalive waits (2 minutes), and any timer of a connection being made
ASK = f"""
import asyncio, websockets
async def main():
    async with websockets.connect("ws://{V4}:{WEBSOCKET}/", ping_interval=None) as ws:
        for text in ("before", "after"):
            await ws.send(text)
            assert await asyncio.wait_for(ws.recv(), 10) == text
            if text == "before":
                await asyncio.sleep({IDLE})
asyncio.run(main())
"""


def picture(seed):
    """A PNG of noise, 3 to 40 KB: no two are alike."""
    source = random.Random(seed)
    width, height = 64, source.randint(16, 200)
    rows = b"".join(b"\0" + source.randbytes(3 * width) for _ in range(height))

    def chunk(kind, data):
        return struct.pack("!I", len(data)) + kind + data + struct.pack("!I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack("!IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b""))


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


class ProgramCase(PairCase):
    OFFLOADS = True
    EDGE = CONCENTRATOR = {"streams": {"match": [{"ports": port} for port in PORTS]}}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        Iperf3(cls.lab)
        cls.sshd = Sshd(cls.lab)
        cls.root = cls.lab.directory / "programs"
        cls.root.mkdir()

    def setUp(self):
        super().setUp()
        self.eventually(lambda: (self.lab.edge_gateway.status() or {"streams": {}})["streams"].get("intercepting"),
                        "connections to be taken over")
        self.before = self.accepted()

    def accepted(self):
        return self.lab.edge_gateway.status()["streams"]["accepted"]

    def assert_streams(self, least=1):
        self.assertGreaterEqual(self.accepted() - self.before, least)

    def start(self, name, port, words, **options):
        """A server, ready."""
        process = self.lab.start(self.lab.server, name, words, **options)
        self.addCleanup(self.lab.stop, process)
        self.lab.wait_for(lambda: self.lab.server.run("ss", "-Hltn", f"sport = :{port}"), f"{name} to listen")


class Programs(ProgramCase):
    def test_iperf3_both_ways(self):
        for options in ([], ["-R"]):
            rate = iperf3(self.lab, V4, *options)["end"]["sum_received"]["bits_per_second"]
            print(f"iperf3 {options}: {rate / 1e6:.1f} Mbit/s")
            self.assertGreater(rate, 5e6)
        self.assert_streams(2)

    def test_curl_and_nginx(self):
        for address in (V4, V6):
            self.verify(self.download(self.file(3_000_000), address))
        self.assert_streams(2)

    def test_ssh_stays_in_the_packet_lane(self):
        got = subprocess.run(self.lab.client.words(*self.sshd.words(V4, "head -c 300000 /dev/zero")),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=60).stdout
        self.assertEqual(len(got), 300_000)
        self.assertEqual(self.accepted(), self.before)

    def test_git(self):
        source, base = self.root / "source", self.root / "repositories"
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.net"]
        self.lab.server.run(*git, "init", "-q", source)
        for number in range(20):
            make_file(source / f"file{number}", 100_000, number)
            self.lab.server.run(*git, "-C", source, "add", ".")
            self.lab.server.run(*git, "-C", source, "commit", "-qm", f"commit {number}")
        self.lab.server.run(*git, "clone", "-q", "--bare", source, base / "it.git")
        self.start("git", GIT, ["git", "daemon", "--export-all", f"--base-path={base}", f"--port={GIT}",
                                "--enable=receive-pack"])
        clone = self.root / "clone"
        self.lab.client.run(*git, "clone", "-q", f"git://{V4}/it.git", clone)
        self.lab.client.run("git", "-C", clone, "fsck", "--full")
        self.assertEqual(sha256(clone / "file19"), sha256(source / "file19"))
        make_file(clone / "mine", 2_000_000, 99)
        for words in (["add", "."], ["commit", "-qm", "mine"], ["push", "-q"]):
            self.lab.client.run(*git, "-C", clone, *words)
        heads = [self.lab.server.run("git", "-C", where, "rev-parse", "HEAD") for where in (clone, base / "it.git")]
        self.assertEqual(*heads)
        self.assert_streams(2)

    def test_rsync(self):
        source = self.root / "files"
        source.mkdir()
        sums = {f"file{number}": make_file(source / f"file{number}", 1 + number * 10_000, number)
                for number in range(50)}
        config = self.root / "rsyncd.conf"
        config.write_text(f"use chroot = no\nuid = root\ngid = root\n[files]\npath = {source}\n", encoding="ascii")
        self.start("rsync", RSYNC, ["rsync", "--daemon", "--no-detach", f"--config={config}", f"--port={RSYNC}"])
        for _ in range(2):  # the second time nothing must change
            self.lab.client.run("rsync", "-a", f"rsync://{V4}:{RSYNC}/files/", f"{self.root}/copied/")
        self.assertEqual({path.name: sha256(path) for path in (self.root / "copied").iterdir()}, sums)
        self.assert_streams(2)

    def test_postgresql(self):
        size = 100_000_000
        home = pathlib.Path(tempfile.mkdtemp(prefix="braid-postgres-"))
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        shutil.chown(home, "postgres", "postgres")
        as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "env", f"HOME={home}"]
        self.lab.server.run(*as_postgres, POSTGRES_BIN / "initdb", "-D", home / "data", "-A", "trust", "-E", "UTF8",
                            "--locale=C", "--no-sync")
        with open(home / "data/pg_hba.conf", "a", encoding="ascii") as file:
            file.write("host all all 0.0.0.0/0 trust\n")
        self.start("postgres", POSTGRES, [*as_postgres, POSTGRES_BIN / "postgres", "-D", home / "data", "-k", home,
                                          "-c", "listen_addresses=*", "-c", "fsync=off"])
        rows, source = self.root / "rows", random.Random(1)
        with open(rows, "w", encoding="ascii") as file:
            for number in range(size // 100):
                file.write(f"{number}\t{source.randbytes(44).hex()}\n")
        psql = ["psql", "-h", V4, "-U", "postgres", "-X", "-v", "ON_ERROR_STOP=1", "-Atc"]
        self.lab.wait_for(lambda: self.lab.client.run(*psql, "select 1", check=False) == "1\n", "PostgreSQL to start")
        self.lab.client.run(*psql, "create table it (number int primary key, what text)")
        self.lab.client.run(*psql, f"\\copy it from '{rows}'")
        self.lab.client.run(*psql, f"\\copy (select * from it order by number) to '{self.root}/back'")
        self.assertEqual(sha256(self.root / "back"), sha256(rows))
        self.assertEqual(self.lab.client.run(*psql, "select inet_client_addr()"), f"{CLIENT}\n")
        self.assert_streams(5)

    def test_a_websocket_that_is_idle(self):
        self.start("websocket", WEBSOCKET, [DEBIAN_PYTHON, "-c", ECHO])
        self.lab.client.run(DEBIAN_PYTHON, "-c", ASK, timeout=IDLE + 30)
        self.assert_streams()


class Web(ProgramCase):
    """A page of many objects, by HTTP/1.1 and HTTP/2."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        page = cls.root / "page"
        page.mkdir()
        for number in range(OBJECTS):
            (page / f"{number}.png").write_bytes(picture(number))
        images = "".join(f'<img src="{number}.png">' for number in range(OBJECTS))
        (page / "index.html").write_text(f"""<!doctype html><title>page</title><body>{images}<script>
onload = () => {{ document.title = [...document.images].filter(i => i.complete && i.naturalWidth == 64).length }}
</script>""", encoding="ascii")
        cls.lab.server.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                           "-keyout", cls.root / "tls.key", "-out", cls.root / "tls.crt", "-subj", "/CN=page", "-days",
                           "2")
        (cls.root / "web.conf").write_text(WEB.format(root=cls.root, http=HTTP, https=HTTPS), encoding="ascii")

    def setUp(self):
        super().setUp()
        self.start("web", HTTPS, ["nginx", "-e", "stderr", "-c", self.root / "web.conf"])

    def seen(self):
        """(client's address, protocol) of all requests to the server."""
        log = self.root / "access.log"
        lines = log.read_text(encoding="ascii").splitlines()
        log.write_text("", encoding="ascii")
        return {tuple(line.split()[:2]) for line in lines}

    def test_http2_with_many_streams(self):
        said = self.lab.client.run("h2load", "-n", 1000, "-c", 4, "-m", 50, f"https://{V4}/7.png", timeout=90)
        self.assertIn("1000 succeeded, 0 failed, 0 errored, 0 timeout", said)
        self.assertEqual(self.seen(), {(CLIENT, "HTTP/2.0")})
        self.assert_streams(4)

    @unittest.skipUnless(shutil.which("chromium"), "no chromium here; scripts/target stream.8 installs it")
    def test_a_browser(self):
        for url, protocol in ((f"http://{V4}:{HTTP}/", "HTTP/1.1"), (f"https://{V4}/", "HTTP/2.0")):
            with self.subTest(protocol), tempfile.TemporaryDirectory() as home:
                said = self.lab.client.run(
                    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                    "--disable-background-networking", "--ignore-certificate-errors", f"--user-data-dir={home}",
                    "--dump-dom", url, env={**os.environ, "HOME": home}, timeout=90)
                self.assertEqual(re.search(r"<title>(.*?)</title>", said).group(1), f"{OBJECTS}")
                self.assertEqual(self.seen(), {(CLIENT, protocol)})
        self.assert_streams(2)


if __name__ == "__main__":
    unittest.main()
