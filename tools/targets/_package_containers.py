"""The container image: two containers with a tunnel between them, each with only NET_ADMIN and the TUN device."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from lab.gateway import PORT, make_identities
from lab.netns import Namespace, join, run
from packages.image import Store

_NET_ADMIN = 1 << 12  # CAP_NET_ADMIN, linux/capability.h
# name: address, inner address
_GATEWAYS = {"near": ("192.0.2.1", "10.99.1.1"), "far": ("192.0.2.2", "10.99.1.2")}


class _Container:
    """A gateway in a container in a network namespace, with only NET_ADMIN and the TUN device."""

    def __init__(self, store, image, namespace, folder):
        self._store, self._namespace = store, namespace
        self._container = store.buildah(
            "from", "--cap-drop", "all", "--cap-add", "NET_ADMIN", "--device", "/dev/net/tun:/dev/net/tun:rwm",
            "--isolation", "oci", "--network", f"ns:/run/netns/{namespace.name}",
            "--volume", f"{folder}:/etc/braid:ro", image)
        self.log = folder / "log"
        words = store.words("run", "--isolation", "oci", "--runtime", "runc", self._container, "--",
                            "braidd", "--config", "/etc/braid/braid.yaml")
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def daemon(self):
        """The number of braidd's process; None: it does not run."""
        for pid in run("ip", "netns", "pids", self._namespace.name).split():
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip() == "braidd":
                    return int(pid)
        return None

    def capabilities(self):
        status = pathlib.Path(f"/proc/{self.daemon()}/status").read_text(encoding="ascii")
        return {int(mask, 16) for mask in re.findall(r"Cap(?:Prm|Eff|Bnd):\s+(\w+)", status)}

    def stop(self):
        """The exit status after SIGTERM."""
        if pid := self.daemon():
            os.kill(pid, signal.SIGTERM)
        try:
            return self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return None


def _configure(folder):
    """A folder for each gateway, to be its /etc/braid."""
    pins = make_identities(folder, _GATEWAYS)
    for own, other in (("near", "far"), ("far", "near")):
        place = folder / own
        place.mkdir()
        peer = {"name": other, "pin": pins[other], "prefixes": [_GATEWAYS[other][1] + "/32"]}
        config = {"identity": {"key": "own.key", "certificate": "own.crt"}, "peers": [peer],
                  "device": {"addresses": [_GATEWAYS[own][1] + "/32"], "routes": peer["prefixes"]}}
        if own == "near":
            peer["endpoints"] = [f"{_GATEWAYS[other][0]}:{PORT}"]
            config["uplinks"] = [{"interface": "eth0", "gateway": "none"}]
        else:
            config["listen"] = [f"{_GATEWAYS[own][0]}:{PORT}"]
        (place / "braid.yaml").write_text(json.dumps(config), encoding="ascii")
        for kind in ("key", "crt"):
            shutil.copy(folder / f"{own}.{kind}", place / f"own.{kind}")


def try_image(package, suite, epoch, findings):
    """Two containers of the image, a tunnel between them."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="braid-containers-")))
        store = stack.enter_context(Store())
        image = store.make(package, suite, epoch)
        _configure(folder)
        spaces = {}
        for name in _GATEWAYS:
            spaces[name] = Namespace(f"braid-{os.getpid()}-{name}")
            stack.callback(spaces[name].delete)
        join(spaces["near"], "eth0", spaces["far"], "eth0")
        for name, (address, _) in _GATEWAYS.items():
            spaces[name].address("eth0", address + "/24")
        running = {name: _Container(store, image, spaces[name], folder / name) for name in spaces}
        deadline, answered = time.monotonic() + 30, False
        while not answered and time.monotonic() < deadline:
            answered = " 0% packet loss" in spaces["near"].run("ping", "-n", "-q", "-c", "3", "-i", "0.2", "-W", "2",
                                                               "10.99.1.2", check=False)
        logs = [container.log.read_text(errors="replace")[-1500:] for container in running.values()]
        findings.note("container: carries packets", [] if answered else logs)
        held = {name: container.capabilities() for name, container in running.items() if container.daemon()}
        findings.note("container: has NET_ADMIN and nothing else",
                      [f"{name} {held.get(name)}" for name in running if held.get(name) != {_NET_ADMIN}])
        ended = {name: container.stop() for name, container in running.items()}
        findings.note("container: ends well", [f"{name} {status}" for name, status in ended.items() if status != 0])
