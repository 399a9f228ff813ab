"""wireguard-go, with which Braid is compared: its build, and one daemon in a namespace."""

import base64
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

from .netns import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE, VERSION = "golang.zx2c4.com/wireguard", "v0.0.0-20260522210424-ecfc5a8d5446"
GO_NEEDED = (1, 23)
PORT = 51820
_SOCKETS = pathlib.Path("/var/run/wireguard")  # the same in all network namespaces


def program():
    """(path, version, True when that is VERSION). Built with the Go toolchain; where that is too old, Debian's package,
    which is from before wireguard-go's offloads."""
    built = ROOT / "build" / "rivals" / VERSION / "wireguard"
    if not built.exists() and _go_version() >= GO_NEEDED:
        environment = {**os.environ, "GOBIN": str(built.parent), "GOFLAGS": "", "GO111MODULE": "on",
                       "GOCACHE": str(ROOT / "build" / "go-cache")}
        run("go", "install", f"{MODULE}@{VERSION}", timeout=1200, env=environment)
    if built.exists():
        return str(built), VERSION, True
    run(ROOT / "scripts" / "deps", "speed", timeout=1200)
    version = run("dpkg-query", "-W", "-f", "${Version}", "wireguard-go")
    return shutil.which("wireguard-go"), f"Debian's {version}", False


def _go_version():
    """The version of the Go toolchain in the path; (0, 0) without one."""
    if not shutil.which("go"):
        return 0, 0
    found = re.search(r"go(\d+)\.(\d+)", run("go", "env", "GOVERSION", check=False))
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def _x25519(pem):
    """The last 32 bytes of a key in PEM, in hexadecimal digits: a private key, or a public one."""
    body = "".join(line for line in pem.splitlines() if not line.startswith("-"))
    return base64.b64decode(body)[-32:].hex()


def keys():
    """A new (private, public) pair in hexadecimal digits."""
    private = run("openssl", "genpkey", "-algorithm", "X25519")
    done = subprocess.run(["openssl", "pkey", "-pubout"], input=private, stdout=subprocess.PIPE, text=True, check=True)
    return _x25519(private), _x25519(done.stdout)


class WireGuard:
    """wireguard-go in one namespace with one peer, whose `prefixes` are routed into its device."""

    def __init__(self, lab, namespace, key):
        self._lab = lab
        self._namespace = namespace
        self._key = key
        role = namespace.name.rpartition("-")[2]
        self.name = f"wireguard.{role}"
        self._device = f"wg{os.getpid()}{role[0]}"  # its socket's name, unique among all labs
        self.process = None

    def start(self, executable, peer, prefixes, endpoint=None, mtu=None, own=None):
        """`peer`: the peer's public key; `endpoint`: the peer's address, for the side that initiates; `mtu`: of the
        device, None for the program's default; `own`: an address of the device, with its prefix length."""
        self.process = self._lab.start(self._namespace, self.name, [executable, "-f", self._device])
        path = _SOCKETS / f"{self._device}.sock"
        self._lab.wait_for(path.exists, f"{self.name} to listen")
        words = [f"private_key={self._key}", f"listen_port={PORT}", "replace_peers=true", f"public_key={peer}"]
        words += [f"endpoint={endpoint}:{PORT}"] if endpoint else []
        words += [f"allowed_ip={prefix}" for prefix in prefixes]
        self._set(path, words)
        if mtu:
            self._namespace.ip("link", "set", self._device, "mtu", mtu)
        if own:
            self._namespace.address(self._device, own)
        self._namespace.ip("link", "set", self._device, "up")
        for prefix in prefixes:
            self._namespace.route(prefix, "dev", self._device)

    @staticmethod
    def _set(path, words):
        """A request of its configuration protocol (wireguard.com/xplatform)."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
            channel.settimeout(5)
            channel.connect(str(path))
            channel.sendall("\n".join(["set=1", *words, "", ""]).encode())
            answer = b""
            while not answer.endswith(b"\n\n") and (part := channel.recv(4096)):
                answer += part
        if b"errno=0\n" not in answer:
            raise RuntimeError(f"wireguard-go: {answer.decode()} (set {words[1:]})")

    def stop(self):
        self._lab.stop(self.process, signal.SIGTERM)
        self.process = None
