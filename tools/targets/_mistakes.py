"""Typical mistakes of people who set a gateway up (tests/mistakes.yaml): each is made for real, and the first message
that the user then sees must name cause and remedy."""

import base64
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import yaml

from lab.gateway import PORT, binary
from lab.site import PUBLIC

from ._broken import Place
from ._builds import ROOT

TABLE = ROOT / "tests" / "mistakes.yaml"
FIELDS = {"mistake", "made", "cause", "remedy"}
SECONDS = 60  # that a program may take
PATIENCE = 12  # seconds until a daemon that goes on running must have logged it
FOLDER = "joined"
MAKERS = {}


def makes(function):
    """Registers a function that makes a mistake at a Place, and gives what was said of it."""
    MAKERS[function.__name__] = function
    return function


def read(text):
    """The rows of the table. ValueError for one that is not whole."""
    rows = yaml.safe_load(text)["mistakes"]
    seen = set()
    for row in rows:
        if set(row) - {"slow"} != FIELDS or row["made"] in seen or row["made"] not in MAKERS:
            raise ValueError(f"not whole, there twice, or made by nothing: {row}")
        seen.add(row["made"])
    return rows


def messages(said):
    """The messages in an output: lines, with those that go on in an indented line joined, and without a log's time."""
    joined = re.sub(r"\n +(?=\S)", " ", said)
    return [re.sub(r"^\d{4}-\d\d-\d\d \S+ \w+: ", "", line) for line in joined.splitlines() if line.strip()]


def names(row, said):
    """Whether one message names cause and remedy."""
    return any(re.search(row["cause"], line) and re.search(row["remedy"], line) for line in messages(said))


def judge(place, row):
    """(whether the mistake is told well, what was said). One that cannot be made is not told."""
    place.reset()
    try:
        said = MAKERS[row["made"]](place, row)
    except (RuntimeError, OSError, TimeoutError, subprocess.SubprocessError) as error:
        return False, f"could not be made: {error}"
    return names(row, said), said


def judge_all(rows, show=False):
    """{mistake: what was said} of those that are not told well."""
    failed = {}
    with Place() as place:
        for row in rows:
            good, said = judge(place, row)
            if not good:
                failed[row["mistake"]] = said[-2000:]
            if show or not good:
                print(f"=== {row['mistake']}: {'told' if good else 'NOT TOLD'}\n{said}", flush=True)
        place.reset()
    return failed


# ---- how it is made

def said_by(space, *words, given="", wrapper=()):
    """The output of a program in a namespace, which must fail."""
    done = subprocess.run(space.words(*wrapper, *words), input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=SECONDS, check=False)
    if done.returncode == 0:
        raise RuntimeError(f"nothing was found wrong:\n{done.stdout}")
    return done.stdout


def shell(prepare):
    """Words before a program that run it in a mount namespace of its own, behind this shell command."""
    return ["unshare", "--mount", "sh", "-ec", f'{prepare}\nexec "$0" "$@"']


def started(p, gateway, row, wrapper=()):
    """What a daemon says that ends, or that goes on running until it has said it."""
    gateway.write_config()
    return started_as_is(p, gateway, row, wrapper)


def started_as_is(p, gateway, row, wrapper=()):
    log = p.lab.directory / "mistake.log"
    with open(log, "w", encoding="utf-8") as out:
        process = subprocess.Popen(gateway.namespace.words(*wrapper, binary("braidd"), "--config", gateway.path),
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline and not names(row, log.read_text("utf-8")):
            time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    return log.read_text("utf-8")


def edge_with(p, row, **changes):
    """What the edge's daemon says with other sections."""
    p.edge.config |= changes
    return started(p, p.edge, row)


def damaged(p, row, pattern, by):
    """What it says of its configuration, in block style, after a change of the text."""
    text = yaml.safe_dump(p.edge.config, sort_keys=False)
    changed = re.sub(pattern, by, text, count=1, flags=re.MULTILINE)
    if changed == text:
        raise RuntimeError(f"{pattern} is not in the configuration:\n{text}")
    p.edge.path.write_text(changed, encoding="utf-8")
    return started_as_is(p, p.edge, row)


def invitation(p, *words, address=f"{PUBLIC[0]}:{PORT}"):
    """An invitation of a concentrator that keeps a state, and runs until the reset."""
    if not p.hub.process:
        folder = p.lab.directory / "peers.d"
        folder.mkdir(exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
        p.hub.config |= {"state": str(p.lab.directory / "hub.state"), "peers-folder": str(folder)}
        p.start(p.hub)
    return p.hub.ctl("invite", "van", "--address", address, *words).strip()


def join_words(p, *words):
    """A join that starts nothing. Its files are gone at the reset."""
    p.undo(shutil.rmtree, p.lab.directory / FOLDER, ignore_errors=True)
    return [binary("braidctl"), "join", "--yes", "--no-start", "--dir", p.lab.directory / FOLDER, *words]


def join(p, line, *words, wrapper=()):
    """What `braidctl join` says at the edge, where it must fail and leave nothing."""
    said = said_by(p.space, *join_words(p, *words), given=line + "\n", wrapper=wrapper)
    folder = p.lab.directory / FOLDER
    left = [file for file in folder.glob("*") if file.name != ".braidctl.lock"]
    if left:
        raise RuntimeError(f"left: {left}\n{said}")
    return said


def resealed(line, change):
    """An invitation whose parts were changed, with the check sum that then fits."""
    parts = line.split("/")[:5]
    change(parts)
    text = "/".join(parts)
    return f"{text}/{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def ctl(p, *words, wrapper=()):
    return said_by(p.space, binary("braidctl"), *words, wrapper=wrapper)


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--ambient-caps=-all"]


# ---- invitations

@makes
def cut_invitation(p, row):
    return join(p, invitation(p)[:-5])


@makes
def other_text(p, row):
    return join(p, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0 root@hub")


@makes
def wrong_secret(p, row):
    def change(parts):
        secret = bytearray(base64.urlsafe_b64decode(parts[3] + "="))
        secret[0] ^= 1
        parts[3] = base64.urlsafe_b64encode(secret).decode().rstrip("=")

    return join(p, resealed(invitation(p), change))


@makes
def used_invitation(p, row):
    """Another machine has joined by it, and come."""
    line = invitation(p)
    done = subprocess.run(p.space.words(*join_words(p, "--network", "none")), input=line + "\n", text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
    folder = p.lab.directory / FOLDER
    if done.returncode != 0:
        raise RuntimeError(done.stdout)
    prepare = "mount -t tmpfs tmpfs /run; mkdir -p /run/braid /var/lib; mount -t tmpfs tmpfs /var/lib"
    other = p.lab.start(p.space, "other", [*shell(prepare), binary("braidd"), "--config", folder / "edge.yaml"])
    try:
        p.lab.wait_for(lambda: any(peer["name"] == "van" and peer["up"] for peer in p.hub.status()["peers"]),
                       "the other machine to come")
    finally:
        p.lab.stop(other)
    shutil.rmtree(folder)
    return join(p, line, "--network", "none")


@makes
def expired_invitation(p, row):
    line = invitation(p, "--valid-for", "1min")
    time.sleep(61)
    return join(p, line)


CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec* out) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, out);
  if (result == 0 && clock == CLOCK_REALTIME) out->tv_sec += 2 * 86400;
  return result;
}
time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
"""


@makes
def clock_off(p, row):
    """The concentrator's clock is two days ahead since its last start."""
    line = invitation(p)
    source, library = p.lab.directory / "clock.c", p.lab.directory / "clock.so"
    source.write_text(CLOCK, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, timeout=SECONDS)
    p.hub.stop()
    p.hub.wrapper = ["env", f"LD_PRELOAD={library}"]
    p.undo(setattr, p.hub, "wrapper", [])
    p.start(p.hub)
    return join(p, line)


@makes
def invite_at_an_edge(p, row):
    p.edge.config |= {"state": str(p.lab.directory / "edge.state")}
    p.start(p.edge)
    return ctl(p, "invite", "van", "--socket", p.edge.socket)


# ---- the way to the concentrator

@makes
def closed_port(p, row):
    line = invitation(p)
    p.nft(p.far, f"table inet closed {{ chain input {{ type filter hook input priority 0; udp dport {PORT} drop; }} }}")
    return join(p, line)


@makes
def nobody_listens(p, row):
    line = invitation(p)
    p.hub.stop()
    return join(p, line)


@makes
def mistyped_host(p, row):
    return join(p, invitation(p, address=f"hub.exmaple.invalid:{PORT}"))


@makes
def endpoint_without_port(p, row):
    p.edge.config["peers"][0]["endpoints"] = [PUBLIC[0]]
    return started(p, p.edge, row)


@makes
def no_uplink(p, row):
    line = invitation(p)
    for device in ("dsl0", "lte0"):
        p.unplug(f"ip link set {device} down")
    return join(p, line)


@makes
def mistyped_uplink(p, row):
    return join(p, invitation(p), "--uplink", "wwan9")


@makes
def own_network_behind_both(p, row):
    return join(p, invitation(p), "--network", "192.168.100.0/25")


@makes
def host_bits(p, row):
    return join(p, invitation(p), "--network", "192.168.10.1/24")


# ---- the configuration

@makes
def wrong_indentation(p, row):
    return damaged(p, row, r"^  key:", " key:")


@makes
def tab(p, row):
    return damaged(p, row, r"^  key:", "\tkey:")


@makes
def mistyped_key(p, row):
    return damaged(p, row, r"^uplinks:", "uplink:")


@makes
def section_is_a_word(p, row):
    return edge_with(p, row, log="debug")


@makes
def unit_missing(p, row):
    p.edge.config["uplinks"][0]["rate-limit"] = {"up": 100}
    return started(p, p.edge, row)


@makes
def too_large_mtu(p, row):
    p.edge.config["tunnel"] = {"mtu": 65000}
    return started(p, p.edge, row)


@makes
def cut_pin(p, row):
    p.edge.config["peers"][0]["pin"] = p.edge.config["peers"][0]["pin"][:-4]
    return started(p, p.edge, row)


@makes
def wrong_pin(p, row):
    p.start(p.hub)
    p.edge.config["peers"][0]["pin"] = "sha256:" + "A" * 43 + "="
    return started(p, p.edge, row)


@makes
def unknown_to_the_concentrator(p, row):
    p.hub.config["peers"][0]["pin"] = "sha256:" + "A" * 43 + "="
    p.start(p.hub)
    return started(p, p.edge, row)


@makes
def psk_on_one_side(p, row):
    key = p.lab.directory / "edge.psk"
    key.touch(mode=0o600)
    key.write_text("A" * 43 + "=\n", encoding="ascii")
    p.edge.config["peers"][0]["psk"] = key.name
    p.start(p.hub)
    return started(p, p.edge, row)


@makes
def no_listen(p, row):
    del p.hub.config["listen"]
    return started(p, p.hub, row)


@makes
def one_key_on_two_edges(p, row):
    p.hub.config["peers"].append({**p.hub.config["peers"][0], "name": "boat", "prefixes": ["10.255.0.9/32"]})
    return started(p, p.hub, row)


@makes
def same_prefixes_of_two_peers(p, row):
    p.hub.config["peers"].append({**p.hub.config["peers"][0], "name": "boat", "pin": "sha256:" + "A" * 43 + "="})
    return started(p, p.hub, row)


@makes
def key_of_another(p, row):
    p.edge.config["identity"]["key"] = "concentrator.key"
    return started(p, p.edge, row)


@makes
def readable_key(p, row):
    key = p.lab.directory / p.edge.config["identity"]["key"]
    key.chmod(0o644)
    p.undo(key.chmod, 0o600)
    return started(p, p.edge, row)


@makes
def no_such_file(p, row):
    return said_by(p.space, binary("braidd"), "/etc/braid/egde.yaml")


# ---- the machine

@makes
def absent_interface(p, row):
    p.edge.config["uplinks"][0]["interface"] = "dls0"
    return started(p, p.edge, row)


@makes
def interface_down(p, row):
    p.unplug("ip link set dsl0 down")
    return started(p, p.edge, row)


@makes
def foreign_source(p, row):
    p.edge.config["uplinks"][0]["source"] = "10.9.9.9"
    return started(p, p.edge, row)


@makes
def port_in_use(p, row):
    def take():
        taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        taken.bind(("0.0.0.0", PORT))
        return taken

    taken = p.far.inside(take)
    p.undo(taken.close)
    return started(p, p.hub, row)


@makes
def two_daemons(p, row):
    p.start(p.edge)
    return started(p, p.edge, row)


@makes
def not_root(p, row):
    p.lab.directory.chmod(0o755)
    key = p.lab.directory / p.edge.config["identity"]["key"]
    os.chown(key, 65534, 65534)
    p.undo(os.chown, key, 0, 0)
    (p.lab.directory / "own").mkdir(exist_ok=True)
    os.chown(p.lab.directory / "own", 65534, 65534)
    p.edge.config |= {"control": {"socket": str(p.lab.directory / "own" / "edge.sock")},
                      "state": str(p.lab.directory / "own" / "edge.state"),
                      "peers-folder": str(p.lab.directory / "own" / "peers.d")}
    return started(p, p.edge, row, NOBODY)


@makes
def setup_without_root(p, row):
    return ctl(p, "setup", "--yes", wrapper=NOBODY)


@makes
def no_tun(p, row):
    return started(p, p.edge, row, shell("mount -t tmpfs tmpfs /dev/net"))


# ---- the command line

@makes
def mistyped_verb(p, row):
    return ctl(p, "stauts")


@makes
def mistyped_option(p, row):
    return ctl(p, "status", "--jsno")


@makes
def verb_of_others(p, row):
    return ctl(p, "up", "edge")


MACHINE = """mount -t tmpfs tmpfs /run
mkdir -p /run/braid /run/upper /run/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work /etc
mkdir -p /etc/braid
"""
SYSTEMD = "mkdir -p /run/systemd/system"
OPENWRT = "printf '#!/bin/sh\\n' >/etc/init.d/braid; chmod +x /etc/init.d/braid"


def machine(p, prepare):
    """A wrapper: a machine with a configuration in /etc/braid, and no daemon."""
    p.edge.config["control"] = {}
    p.edge.write_config()
    return shell(f"{MACHINE}\n{prepare}\ncp {p.edge.path} /etc/braid/edge.yaml")


@makes
def not_running(p, row):
    return ctl(p, "status", wrapper=machine(p, SYSTEMD))


@makes
def not_running_on_openwrt(p, row):
    return ctl(p, "status", wrapper=machine(p, OPENWRT))


@makes
def failed_before(p, row):
    """The daemon could not start; OpenWrt's log has its last words."""
    daemon = port_in_use(p, row)
    folder = p.lab.directory / "programs"
    folder.mkdir(exist_ok=True)
    log = folder / "log"
    log.write_text("".join(f"Mon Nov 30 02:16:15 2026 daemon.err sh[7]: {line}\n" for line in daemon.splitlines()),
                   encoding="utf-8")
    (folder / "logread").write_text(f"#!/bin/sh\nexec cat {log}\n", encoding="ascii")
    (folder / "logread").chmod(0o755)
    return ctl(p, "status", wrapper=machine(p, f"{OPENWRT}\nPATH={folder}:$PATH"))


@makes
def mistyped_socket(p, row):
    return ctl(p, "status", "--socket", "egde", wrapper=machine(p, SYSTEMD))


@makes
def made_already(p, row):
    words = join_words(p)
    folder = p.lab.directory / FOLDER
    folder.mkdir(exist_ok=True)
    (folder / "edge.yaml").write_text("identity: {}\n", encoding="ascii")
    return said_by(p.space, *words, given=invitation(p) + "\n")


@makes
def stranger_at_the_socket(p, row):
    p.lab.directory.chmod(0o755)
    p.start(p.edge)
    return ctl(p, "status", "--socket", p.edge.socket, wrapper=NOBODY)
