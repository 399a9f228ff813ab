"""Packages in booted machines: installed, upgraded, removed and purged."""

import contextlib
import os
import re
import shutil

from lab.boot import ZoneMachine, enter

from ._machines import SUITES, configure, ping

_NAMES = ("braid", "braid-web")  # of the packages, and of their units
_DYNAMIC = (61184, 65519)  # users of DynamicUser=, systemd.exec(5)
_APT = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-q", "--no-install-recommends"]
_UNDONE = "/root/taken-back"
# Where packages leave traces by design: records of dpkg and apt, logs, caches, and the backups of /etc/passwd.
_RECORDS = re.compile(r"/(var/(lib/(dpkg|apt|systemd)|cache|log|tmp)|tmp|root|etc/g?(passwd|group|shadow)-)(/|$)")


class _Packaged(ZoneMachine):
    """A machine that gets its gateway from packages."""

    def fetch(self, packages, others):
        """Puts packages where apt finds them without a network, and what the first ones depend on."""
        for package in (*packages, *others):
            shutil.copy(package, self.tree / "root")
        enter(self.tree, "apt-get", "-q", "update")
        enter(self.tree, *_APT, "--download-only", "install", *(f"/root/{package.name}" for package in packages))

    def apt(self, *words):
        return self.run(*_APT, *words, timeout=300)

    def install(self, packages):
        return self.apt("install", *(f"/root/{package.name}" for package in packages))

    def files(self):
        """Every file and folder of the machine's disk but records, and what is of braid's in /run."""
        found = self.run("find", "/", "-xdev", "-print", timeout=120).splitlines()
        found += self.run("find", "/run", "-name", "*braid*").splitlines()
        return {path for path in found if not _RECORDS.match(path)}

    def accounts(self):
        return {line for file in ("passwd", "group") for line in self.run("cat", f"/etc/{file}").splitlines()}

    def state(self, unit="braid"):
        return self.run("systemctl", "is-active", f"{unit}@{self.name}", check=False).strip()

    def user(self):
        """The number of braid-web's user."""
        return int(self.run("stat", "-c", "%u", f"/proc/{self.web_pid()}"))

    def web_pid(self):
        return self.run("systemctl", "show", "--value", "--property=MainPID", f"braid-web@{self.name}").strip()

    def page(self, path):
        """The answer of braid-web to a request made only with the shell, since the machine has no other program for
        that."""
        ask = f"GET {path} HTTP/1.0\\r\\nHost: 127.0.0.1:9380\\r\\n\\r\\n"
        return self.run("bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/9380 && printf '{ask}' >&3 && timeout 5 cat <&3",
                        check=False)

    def settings(self):
        """The files of the administrator's, a line for each, with their hashes."""
        return self.run("sh", "-c", "cd /etc/braid && sha256sum *.yaml *.key *.crt "
                        "/etc/systemd/system/braid@*.service.d/*", check=False)

    def allow(self):
        """A record of `braidctl firewall allow`, of a change whose undoing makes a file."""
        self.run("sh", "-c", f"echo '[{{\"undo\": [\"touch\", \"{_UNDONE}\"]}}]' >/etc/braid/{self.name}.firewall")

    def allowed(self):
        """Whether the change is (in effect and recorded, taken back and forgotten)."""
        found = self.run("sh", "-c", f"ls {_UNDONE} /etc/braid/{self.name}.firewall 2>/dev/null", check=False).split()
        return found == [f"/etc/braid/{self.name}.firewall"], found == [_UNDONE]

    def drop_in(self):
        """A setting of the administrator's own beside the unit."""
        folder = f"/etc/systemd/system/braid@{self.name}.service.d"
        self.run("sh", "-c", f"mkdir -p {folder} && printf '[Service]\\nNice=1\\n' >{folder}/local.conf")
        return {folder, f"{folder}/local.conf"}

    def settled(self):
        return self.wait(lambda: self.state() == "active" and self.up(), "a session", 30)


def _install_and_purge(machine, packages, findings):
    """A machine on which nothing is configured: what comes, and that it goes."""
    def holds(what, condition):
        findings.check(what, condition, machine)

    before, accounts = machine.files(), machine.accounts()
    said = machine.install(packages)
    holds("install: names the next three commands", lambda: re.findall("^    braidctl ([a-z]+)", said, re.MULTILINE)
          == ["setup", "invite", "join"])
    holds("install: starts and enables nothing", lambda: not machine.run(
        "sh", "-c", "ls -d /etc/systemd/system/*.wants/braid* 2>/dev/null; systemctl --plain --no-legend list-units "
        "'braid*.service'", check=False).strip())
    holds("install: no unit fails", lambda: not machine.run("systemctl", "--failed", "--plain", "--no-legend").strip())
    holds("install: user and group", lambda: re.fullmatch(
        r"uid=\d+\(braid\) gid=\d+\(braid\) groups=\d+\(braid\)", machine.run("id", "braid").strip()))
    holds("install: manual pages, examples, completion", lambda: {
        "/usr/share/man/man8/braidd.8.gz", "/usr/share/man/man8/braidctl.8.gz", "/usr/share/man/man5/braid.yaml.5.gz",
        "/usr/share/bash-completion/completions/braidctl", "/usr/share/doc/braid/examples/edge.yaml",
        "/usr/share/doc/braid/guide.md.gz"} <= set(machine.run("dpkg", "-L", "braid").split()))
    holds("install: systemd knows all that the units say", lambda: _verified(machine))
    holds("install: braid-web's manual page, examples, completion", lambda: {
        "/usr/share/man/man8/braid-web.8.gz", "/usr/share/bash-completion/completions/braid-web",
        "/usr/share/doc/braid-web/examples"} <= set(machine.run("dpkg", "-L", "braid-web").split()))
    said = machine.run("sh", "-c", f"systemctl start braid@{machine.name} 2>&1; systemctl status --no-pager "
                       f"braid@{machine.name} 2>&1", check=False)
    holds("no configuration: not started, and the file named", lambda: machine.state() == "inactive"
          and f"ConditionPathExists=/etc/braid/{machine.name}.yaml" in said
          and machine.property("NRestarts") == "0")
    machine.apt("purge", *_NAMES)
    machine.apt("autoremove", "--purge")
    holds("purge: nothing is left", lambda: not _left(machine, before))
    holds("purge: of accounts, only the package's own is left", lambda: all(
        line.startswith("braid:") for line in machine.accounts() ^ accounts))
    return before


def _verified(machine):
    """systemd-analyze finds no key that it does not know, and no document that is not there."""
    units = [f"/usr/lib/systemd/system/{name}@.service" for name in ("braid", "braid-guard", "braid-web")]
    told = machine.run("sh", "-c", f"systemd-analyze verify --man=no {' '.join(units)} 2>&1", check=False)
    documents = re.findall(r"file:(\S+)", machine.run("cat", *units))
    return len(documents) == 3 and not re.search("Unknown|ignoring", told) and machine.run("ls", *documents)


def _left(machine, before):
    if left := sorted(machine.files() - before):
        raise RuntimeError(" ".join(left[:20]))
    return False


def _upgrade(machine, other, inner, packages, findings):
    """Machines that carry packets by the version before get this one."""
    def holds(what, condition):
        findings.check(what, condition, machine)

    far = inner[other.name]
    holds("start: enabled, and carries packets", lambda: machine.settled() and ping(machine, far))
    holds("start: the folders of control socket and state are the user's", lambda: machine.run(
        "stat", "-c", "%U:%G %a", "/run/braid", "/var/lib/braid").split("\n")[:2] == ["braid:braid 750"] * 2)
    machine.run("systemctl", "enable", "--now", f"braid-web@{machine.name}")
    holds("braid-web: shows the gateway, as a user of its own", lambda: machine.wait(
        lambda: "braid_up 1" in machine.page("/metrics"), "metrics", 20)
        and _DYNAMIC[0] <= machine.user() <= _DYNAMIC[1])
    holds("braid-web: its page", lambda: "<!doctype html>" in machine.page("/"))
    pid, web, settings = machine.property("MainPID"), machine.web_pid(), machine.settings()
    for name, package in zip(_NAMES, packages):
        holds(f"upgrade: {name} from another version", lambda n=name, p=package: machine.run(
            "dpkg-query", "-W", "-f", "${Version}", n) not in p.name)
    machine.allow()
    said = machine.install(packages)
    holds("upgrade: says what it resets, and names no first steps", lambda: f"braid@{machine.name}.service: " in said
          and "a restart resets " in said and "braidctl setup" not in said)
    holds("upgrade: what the firewall was asked to allow stays", lambda: machine.allowed() == (True, False))
    holds("upgrade: the gateway runs, anew", lambda: machine.settled() and machine.property("MainPID") != pid)
    holds("upgrade: by the new unit", lambda: ", before" not in machine.property("Description")
          and machine.property("NeedDaemonReload") == "no")
    holds("upgrade: braid-web runs, anew and by the new unit", lambda: machine.wait(
        lambda: "braid_up 1" in machine.page("/metrics"), "metrics", 20) and machine.web_pid() != web)
    holds("upgrade: braid-web's unit is the new one", lambda: ", before" not in machine.run(
        "systemctl", "show", "--value", "--property=Description", f"braid-web@{machine.name}"))
    holds("upgrade: carries packets", lambda: machine.wait(lambda: ping(machine, far), "answers", 20))
    holds("upgrade: settings are as they were", lambda: len(settings.splitlines()) == 4
          and machine.settings() == settings)


def _remove(machine, packages, findings):
    """The package goes and comes back, what belongs to the administrator stays."""
    def holds(what, condition):
        findings.check(what, condition, machine)

    settings = machine.settings()
    machine.apt("remove", *_NAMES)
    holds("remove: braid-web is stopped", lambda: machine.state("braid-web") in ("inactive", "unknown"))
    holds("remove: the gateway is stopped, and the host as before", lambda: machine.state() in ("inactive", "unknown")
          and "braid0" not in machine.run("ip", "-br", "link")
          and "proto 66" not in machine.run("ip", "route", "show", "table", "all"))
    holds("remove: the firewall is as before", lambda: machine.allowed() == (False, True))
    holds("remove: settings are as they were", lambda: machine.settings() == settings)
    machine.install(packages)
    for unit in _NAMES:
        holds(f"installed again: {unit} enabled as before", lambda u=unit: machine.run(
            "systemctl", "is-enabled", f"{u}@{machine.name}", check=False).strip() == "enabled")
        machine.run("systemctl", "start", f"{unit}@{machine.name}")
    holds("installed again: carries on with its settings", machine.settled)
    holds("installed again: the page too", lambda: machine.wait(
        lambda: "braid_up 1" in machine.page("/metrics"), "metrics", 20))


def _purge(machine, before, findings):
    machine.apt("purge", *_NAMES)
    machine.apt("autoremove", "--purge")
    findings.check("purge of what ran: nothing is left but the administrator's own",
                   lambda: not _left(machine, before), machine)


def try_packages(packages, old, work, findings):
    """A machine of each suite. `packages` and `old`: {suite: the two packages} of the version to look at and the one
    before."""
    with contextlib.ExitStack() as stack:
        machines = [_Packaged(suite, name, address, work, f"braid{os.getpid() % 10000}")
                    for suite, (name, address, _) in SUITES.items()]
        before = {}
        for machine in machines:
            stack.callback(machine.close)
            machine.prepare()
            machine.fetch(packages[machine.suite], old[machine.suite])
            machine.boot()
            before[machine] = _install_and_purge(machine, packages[machine.suite], findings)
            machine.install(old[machine.suite])
            before[machine] |= machine.drop_in()
        inner = configure(machines, work)
        for machine in machines:
            machine.run("systemctl", "enable", "--now", f"braid@{machine.name}")
        for machine, other in (machines, machines[::-1]):
            _upgrade(machine, other, inner, packages[machine.suite], findings)
        for machine in machines:
            _remove(machine, packages[machine.suite], findings)
        for machine in machines:
            _purge(machine, before[machine], findings)
