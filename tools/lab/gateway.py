"""One braidd daemon: identity, configuration, start, readiness, status, reload, restart."""

import json
import os
import pathlib
import re
import signal
import time

from .netns import run
from .site import PUBLIC, SERVER_LAN

PORT = 4433
LISTEN = [f"0.0.0.0:{PORT}", f"[::]:{PORT}"]
SUPERVISOR_PAUSE = 0.1  # seconds: RestartSec of systemd/braid@.service
_PIN = re.compile(r"sha256:[A-Za-z0-9+/]{43}=")


def binary(name):
    """Path of a program of the build: $BRAID_BIN, or the release build of this checkout."""
    root = pathlib.Path(__file__).resolve().parents[2]
    path = pathlib.Path(os.environ.get("BRAID_BIN", root / "build" / "release" / "bin")) / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: build it (cmake --preset release && cmake --build --preset "
                                "release) or set BRAID_BIN")
    return str(path)


def make_identities(directory, names):
    """Makes a key and certificate per name in that directory. Returns {name: pin}."""
    pins = {}
    for name in names:
        out = run(binary("braidctl"), "keygen", name, "--dir", directory)
        pins[name] = _PIN.findall(out)[-1]
    return pins


def merge(config, changes):
    """Changes a nested configuration: mappings merge, everything else is replaced, None removes."""
    for key, value in changes.items():
        if value is None:
            config.pop(key, None)
        elif isinstance(value, dict) and isinstance(config.get(key), dict):
            merge(config[key], value)
        else:
            config[key] = value
    return config


class Gateway:
    """braidd in one namespace. `config` is the configuration as nested dicts; it may be changed before reload()."""

    def __init__(self, lab, name, namespace, config):
        self._lab = lab
        self.name = name
        self.namespace = namespace
        self.config = config
        self.path = lab.directory / f"{name}.yaml"
        self.socket = lab.directory / f"{name}.sock"
        self.process = None
        self.wrapper = []  # words before the daemon's command line, such as ["env", "NAME=value"]
        self.programs = None  # folder of its braidd and braidctl, when they are of another build

    @staticmethod
    def _common(lab, name, changes):
        config = {
            "identity": {"key": f"{name}.key", "certificate": f"{name}.crt"},
            "device": {"name": "braid0", "mode": lab.mode},
            "control": {"socket": str(lab.directory / f"{name}.sock")},
            "state": str(lab.directory / f"{name}.state"),
        }
        if lab.mode == "tap":
            config["device"]["bridge"] = "br0"
        return merge(config, changes)

    @staticmethod
    def concentrator_config(lab, pins, **changes):
        peers = []
        for site in lab.sites:
            name = site.edge.name.rpartition("-")[2]
            peers.append({"name": name, "pin": pins[name]})
            if lab.mode == "tun":
                peers[-1]["prefixes"] = [f"10.255.0.{2 + site.number}/32", f"fd00:0:0:ff::{2 + site.number:x}/128",
                                         *site.lan]
        config = {"listen": LISTEN, "peers": peers}
        if lab.mode == "tun":
            config["device"] = {"addresses": ["10.255.0.1/24", "fd00:0:0:ff::1/64"],
                                "routes": [prefix for site in lab.sites for prefix in site.lan]}
        return merge(merge(Gateway._common(lab, "concentrator", {}), config), changes)

    @staticmethod
    def edge_config(lab, site, name, pins, **changes):
        config = {
            "uplinks": [{"name": link.name, "interface": site.device(i)} for i, link in enumerate(site.links)],
            "peers": [{"name": "concentrator", "pin": pins["concentrator"], "endpoints": [f"{PUBLIC[0]}:{PORT}"]}],
        }
        if lab.mode == "tun":
            config["peers"][0]["prefixes"] = ["10.255.0.1/32", "fd00:0:0:ff::1/128", *SERVER_LAN]
            config["device"] = {"addresses": [f"10.255.0.{2 + site.number}/24",
                                              f"fd00:0:0:ff::{2 + site.number:x}/64"],
                                "routes": list(SERVER_LAN)}
        return merge(merge(Gateway._common(lab, name, {}), config), changes)

    def _program(self, name):
        return str(self.programs / name) if self.programs else binary(name)

    def write_config(self):
        """JSON is YAML."""
        self.path.write_text(json.dumps(self.config, indent=1) + "\n", encoding="utf-8")

    def start(self):
        if self.config is not None:
            self.write_config()
        words = [*self.wrapper, self._program("braidd"), "--config", self.path]
        self.process = self._lab.start(self.namespace, self.name, words)
        self._lab.wait_for(self.status, f"{self.name} to answer on its control socket")

    def stop(self, number=signal.SIGTERM):
        """Returns the exit code: 0 is a clean end."""
        code = self._lab.stop(self.process, number)
        self.process = None
        return code

    def restart(self, number=signal.SIGTERM):
        self.stop(number)
        self.start()

    def kill_and_supervise(self):
        """Kills the daemon and starts it again as its supervisor does."""
        self.stop(signal.SIGKILL)
        time.sleep(SUPERVISOR_PAUSE)
        self.start()

    def reload(self):
        """Writes the configuration and sends SIGHUP."""
        if self.config is not None:
            self.write_config()
        self.process.send_signal(signal.SIGHUP)

    def ctl(self, *words):
        return run(self._program("braidctl"), *words, "--socket", self.socket, timeout=10)

    def status(self):
        """`braidctl status --json` as a dict, or None while the daemon does not answer."""
        try:
            return json.loads(self.ctl("status", "--json"))
        except (RuntimeError, ValueError):
            return None

    def paths(self):
        """`braidctl paths --json`: the subflows, each with uplink, state and counters."""
        return flatten_subflows(json.loads(self.ctl("paths", "--json")))

    def drops(self):
        """{cause: count} of dropped datagrams and packets."""
        return self.status()["drops"]

    def up(self, subflows=1):
        """True when every peer has a session and that many subflows in state "active"."""
        status = self.status()
        if not status:
            return False
        active = [flow for flow in flatten_subflows(status) if flow["state"] == "active"]
        return all(peer["up"] for peer in status["peers"]) and len(active) >= subflows

    def wait_up(self, subflows=1, timeout=10):
        self._lab.wait_for(lambda: self.up(subflows), f"{self.name}: a session with {subflows} active subflows",
                           timeout)

    def wait_path(self, uplink, state, timeout=10):
        """Waits until an uplink's subflow is in that state; returns the seconds it took."""
        began = time.monotonic()
        self._lab.wait_for(lambda: any(flow["uplink"] == uplink and flow["state"] == state for flow in self.paths()),
                           f"{self.name}: uplink {uplink} {state}", timeout)
        return time.monotonic() - began


def flatten_subflows(answer):
    """The subflows of all peers in an answer of braidctl, each with its peer's name."""
    return [{"peer": peer["name"], **flow} for peer in answer["peers"] for flow in peer["subflows"]]


def shares(before, after, field="received_bytes"):
    """Each uplink's share of what an edge received (or sent) between two answers of paths()."""

    def total(flows):
        sums = {}
        for flow in flows:
            sums[flow["uplink"]] = sums.get(flow["uplink"], 0) + flow[field]
        return sums

    old, new = total(before), total(after)
    grown = {name: value - old.get(name, 0) for name, value in new.items()}
    everything = sum(grown.values()) or 1
    return {name: value / everything for name, value in grown.items()}
