"""QUIC downloads with two stacks: ngtcp2's own programs as Debian packages them, and quic-go with the program in
quic_go."""

import json
import os
import pathlib
import signal
import time

from .netns import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tools" / "lab" / "quic_go"
HEADROOM = 1.5  # factor by which a file is larger than what the links carry in the time, so that no download ends early


class QuicGo:
    """A server of one endless stream; the version is that of go.mod."""

    name, port = "quic-go", 4501

    def __init__(self, lab, address):
        self._lab, self._address = lab, address
        self._program = ROOT / "build" / "rivals" / "quic"
        environment = {**os.environ, "GOFLAGS": "", "GO111MODULE": "on", "GOCACHE": str(ROOT / "build" / "go-cache")}
        run("go", "build", "-o", self._program, ".", cwd=SOURCES, timeout=1200, env=environment)
        lab.start(lab.server, self.name, [self._program, "server", f"{address}:{self.port}"])
        lab.wait_for_line(self.name, "ready")

    def download(self, seconds):
        """Mbit/s of payload that the client got in so many seconds, handshake included."""
        out = self._lab.client.run(self._program, "client", f"{self._address}:{self.port}", seconds,
                                   timeout=seconds + 30)
        report = json.loads(out)
        return report["bytes"] * 8 / report["seconds"] / 1e6


class Ngtcp2:
    """HTTP/3 by gtlsserver and gtlsclient, with their defaults (cubic)."""

    name, port = "ngtcp2", 4502

    def __init__(self, lab, address, size):
        """`size`: bytes of the file, more than any download gets."""
        self._lab, self._address, self._size = lab, address, size
        self._root = lab.directory / "ngtcp2"
        files, self._got = self._root / "files", self._root / "got"
        for folder in (files, self._got):
            folder.mkdir(parents=True)
        with open(files / "bulk", "wb") as file:
            file.truncate(size)
        key, certificate = self._root / "key.pem", self._root / "certificate.pem"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "2", "-subj", "/CN=server.test", "-keyout", key, "-out", certificate)
        lab.start(lab.server, self.name, ["gtlsserver", "-q", "-d", files, address, self.port, key, certificate])
        lab.wait_for(lambda: lab.server.run("ss", "-Hlun", f"sport = :{self.port}"), "gtlsserver to listen")

    def download(self, seconds):
        """Mbit/s of payload that the client got in so many seconds, handshake included."""
        got = self._got / "bulk"
        got.unlink(missing_ok=True)
        words = ["gtlsclient", "-q", "--no-quic-dump", "--no-http-dump", f"--download={self._got}", self._address,
                 self.port, f"https://server.test:{self.port}/bulk"]
        process, began = self._lab.start(self._lab.client, "gtlsclient", words), time.monotonic()
        time.sleep(seconds)
        ended, size, took = process.poll(), got.stat().st_size if got.exists() else 0, time.monotonic() - began
        self._lab.stop(process, signal.SIGINT)
        if ended is not None or not 0 < size < self._size:
            raise RuntimeError(f"gtlsclient: {size} of {self._size} bytes, ended with {ended}\n"
                               + self._lab.log_tail("gtlsclient"))
        return size * 8 / took / 1e6


def stacks(lab, address, rate_mbit, seconds):
    """Both stacks, serving at this address of the lab's server. `rate_mbit`, `seconds`: upper limits of a download."""
    return [QuicGo(lab, address), Ngtcp2(lab, address, int(rate_mbit * 1e6 / 8 * seconds * HEADROOM))]
