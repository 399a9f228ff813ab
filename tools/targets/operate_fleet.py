"""Target of fleets: the example inventory and playbooks of conf/ansible, tried with Ansible on folders as gateways."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from lab import binary
from lab.netns import run

from . import target

SOURCE = pathlib.Path(__file__).resolve().parents[2]
ANSIBLE = SOURCE / "conf/ansible"
PLAYBOOKS = ("identities.yaml", "distribute.yaml")
NAMES = ("frankfurt", "vienna", "bus-1", "shop-7")
# Replaces braidctl's commands to a daemon on each gateway, because no daemon runs. A file `refuse`
# makes it refuse.
_BRAIDCTL = """#!/bin/sh
[ "$1" = reload ] || exec {program} "$@"
echo "$@" >>{root}/reloads
[ ! -e {root}/refuse ] || {{ echo "a key marked R" >&2; exit 1; }}
"""
# Without systemd ansible would reload nothing, so it is told that systemd is there. The folders have no unit to start,
# so that step is skipped.
RELOADS = ("-e", "ansible_service_mgr=systemd", "--skip-tags", "service")
_RECAP = re.compile(r"^(\S+) +: ok=(\d+) +changed=(\d+) +unreachable=(\d+) +failed=(\d+)", re.MULTILINE)


class _Fleet:
    """A copy of conf/ansible whose gateways are folders of this machine."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.done, self.failed = [], []
        for file in ("inventory.yaml", *PLAYBOOKS):
            shutil.copy(ANSIBLE / file, self.root)
        for folder in ("fleet", "bin"):
            (self.root / folder).mkdir()
        program = self.root / "bin/braidctl"
        program.write_text(_BRAIDCTL.format(program=binary("braidctl"), root=self.root), encoding="ascii")
        program.chmod(0o755)

    def check(self, what, holds, said=""):
        self.done.append(what)
        if not holds:
            self.failed.append(f"{what}: {said[-600:]}")

    def etc(self, name):
        return self.root / "hosts" / name

    def play(self, playbook, *options):
        """(whether it went well, what it said, how many changes it made)."""
        variables = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3",
                     "braid_become": False, "braid_etc": f"{self.root}/hosts/{{{{ inventory_hostname }}}}"}
        path = f"{self.root}/bin:{os.environ['PATH']}"
        words = ["ansible-playbook", "-i", self.root / "inventory.yaml", "-e", json.dumps(variables), *options,
                 self.root / playbook]
        settings = {"PATH": path, "ANSIBLE_NOCOWS": "1", "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8",
                    "ANSIBLE_HOME": str(self.root / "ansible")}
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              env={**os.environ, **settings}, cwd=self.root)
        changes = sum(int(changed) for _, _, changed, _, _ in _RECAP.findall(done.stdout))
        return done.returncode == 0, done.stdout, changes

    def reloads(self):
        """The gateways that were asked to reload since the last call."""
        file = self.root / "reloads"
        words = file.read_text(encoding="ascii").splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return [line.split()[-1] for line in words]

    def write(self):
        """Configurations with the pins of the certificates that were fetched."""
        pins = {name: run(binary("braidctl"), "pin", self.root / f"fleet/{name}.crt").strip() for name in NAMES}
        edges = {"bus-1": ("10.99.0.2", "10.1.0.0/24"), "shop-7": ("10.99.0.3", "10.2.0.0/24")}
        for number, name in ((1, "frankfurt"), (4, "vienna")):
            peers = [{"name": edge, "pin": pins[edge], "prefixes": [f"{address}/32", network]}
                     for edge, (address, network) in edges.items()]
            self._put(name, {"device": {"addresses": [f"10.99.0.{number}/24"]}, "listen": ["0.0.0.0:4433"],
                             "peers": peers, "nat": "on", "forwarding": "on"})
        for edge, (address, network) in edges.items():
            peers = [{"name": name, "group": "hubs", "pin": pins[name], "endpoints": [f"{name}.example.net:4433"],
                      "prefixes": [f"10.99.0.{number}/32", "0.0.0.0/0"]}
                     for number, name in ((1, "frankfurt"), (4, "vienna"))]
            self._put(edge, {"device": {"addresses": [f"{address}/24"], "networks": [network]},
                             "uplinks": [{"interface": "wwan0"}], "peers": peers})

    def _put(self, name, config):
        config["identity"] = {"key": f"{name}.key", "certificate": f"{name}.crt"}
        (self.root / f"fleet/{name}.yaml").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def _refused_reload(tried):
    """A gateway that rejects its configuration fails every run until it accepts it, even runs that copy nothing."""
    well, said, _ = tried.play("distribute.yaml", *RELOADS)
    tried.check("distribute: every gateway reloads", well and tried.reloads() == list(NAMES), said)
    (tried.root / "refuse").touch()
    changed = tried.root / "fleet/frankfurt.yaml"
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    for run_of in ("the", "a second"):
        well, said, _ = tried.play("distribute.yaml", *RELOADS)
        tried.check(f"distribute: {run_of} run in which a gateway refuses to reload fails, and ends there",
                    not well and "a key marked R" in said and tried.reloads() == list(NAMES[:1]), said)
    (tried.root / "refuse").unlink()
    well, said, changes = tried.play("distribute.yaml", *RELOADS)
    tried.check("distribute: a reload alone is no change", well and changes == 0, said)


@target("operate.fleet", "checks that fail of the example for Ansible in conf/ansible: syntax, --check, identities, "
        "distribution, a second run, a refused reload, a folder with a mistake", "checks", at_most=0,
        programs=["braidd", "braidctl"])
def fleet():
    run(SOURCE / "scripts/deps", "fleet", timeout=600)
    with tempfile.TemporaryDirectory() as root:
        tried = _Fleet(root)
        for playbook in PLAYBOOKS:
            well, said, _ = tried.play(playbook, "--syntax-check")
            tried.check(f"{playbook}: syntax", well, said)
        well, said, _ = tried.play("identities.yaml", "--check")
        tried.check("identities: --check", well and not (tried.root / "hosts").exists(), said)
        well, said, _ = tried.play("identities.yaml")
        tried.check("identities: made and fetched", well and all(
            (tried.etc(name) / f"{name}.key").exists() and (tried.root / f"fleet/{name}.crt").exists()
            for name in NAMES), said)
        tried.check("identities: no key leaves its gateway", not list((tried.root / "fleet").glob("*.key")))
        keys = {name: (tried.etc(name) / f"{name}.key").read_bytes() for name in NAMES}
        well, said, changed = tried.play("identities.yaml")
        tried.check("identities: a second run changes nothing", well and changed == 0 and all(
            (tried.etc(name) / f"{name}.key").read_bytes() == key for name, key in keys.items()), said)
        tried.write()
        well, said, _ = tried.play("distribute.yaml", "--check")
        tried.check("distribute: --check", well and not (tried.etc("bus-1") / "bus-1.yaml").exists(), said)
        well, said, _ = tried.play("distribute.yaml")
        tried.check("distribute: every gateway has its configuration", well and all(
            (tried.etc(name) / f"{name}.yaml").read_bytes() == (tried.root / f"fleet/{name}.yaml").read_bytes()
            for name in NAMES), said)
        for name in NAMES:
            done = subprocess.run([binary("braidd"), "--check", "--config", tried.etc(name) / f"{name}.yaml"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            tried.check(f"{name}: what came is right, key included", done.returncode == 0, done.stdout)
        well, said, changed = tried.play("distribute.yaml")
        tried.check("distribute: a second run changes nothing", well and changed == 0, said)
        _refused_reload(tried)
        broken = tried.root / "fleet/shop-7.yaml"
        broken.write_text(broken.read_text(encoding="utf-8").replace("10.99.0.3", "10.99.0.2"), encoding="utf-8")
        well, said, _ = tried.play("distribute.yaml")
        tried.check("distribute: a folder with a mistake is not distributed", not well and "is an address of" in said
                    and "10.99.0.3" in (tried.etc("shop-7") / "shop-7.yaml").read_text(encoding="utf-8"), said)
    return len(tried.failed), {"checks": tried.done, "failed": tried.failed}
