"""The base class of the tests of `braidctl setup`, `invite` and `join`: two bare machines, each with folders and a
service manager of its own."""

import contextlib
import os
import signal
import subprocess
import time

from lab import Link, binary, run
from lab.site import PUBLIC, SERVER_LAN
from pair_case import PairCase

# Replaces systemd's systemctl: starts the daemon as the unit does; returns when the daemon answers or has ended.
SYSTEMCTL = """#!/bin/sh
for word; do case $word in enable|disable) verb=$word;; braid@*) name=${word#braid@};; esac; done
pid={directory}/{machine}-$name.pid
if [ $verb = enable ]; then
  {guard}
  setsid {braidd} --config /etc/braid/$name.yaml >>{directory}/logs/{machine}.log 2>&1 </dev/null &
  echo $! >$pid
  for try in $(seq 200); do
    [ -S /run/braid/$name.sock ] && exit 0
    kill -0 $(cat $pid) 2>/dev/null || exit 1
    sleep 0.05
  done
  exit 1
fi
[ -f $pid ] || exit 0
{pause}
kill $(cat $pid)
for try in $(seq 200); do
  grep -qs '^State:.[^Z]' /proc/$(cat $pid)/status || break
  sleep 0.05
done
rm $pid
exit 0
"""

# Gives the machine its own folders instead of the host's.
PREPARE = """set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/braid
for folder in etc var/lib; do
  mkdir -p {root}/$folder.upper {root}/$folder.work
  mount -t overlay overlay -o lowerdir=/$folder,upperdir={root}/$folder.upper,workdir={root}/$folder.work /$folder
done
rm -rf /etc/braid /var/lib/braid
mkdir -p /etc/braid /var/lib/braid
exec sleep infinity
"""


class Machine:
    """A network namespace of the lab with its own folders and service manager."""

    def __init__(self, lab, name, namespace):
        self.lab, self.name = lab, name
        root = lab.directory / f"{name}-root"
        root.mkdir()
        run("mount", "-t", "tmpfs", "tmpfs", root)  # an overlay's upper folder must not be on another overlay
        (root / "bin").mkdir()
        self.systemctl = root / "bin" / "systemctl"
        self.systemctl.touch(0o755)
        self.starts(True)
        self.path = f"{root}/bin:{os.environ['PATH']}"
        self.root = root
        self.holder = lab.start(namespace, f"{name}-machine", ["sh", "-c", PREPARE.replace("{root}", str(root))])
        lab.wait_for(lambda: self.call("test", "-d", "/etc/braid", "-a", "!", "-e", "/run/netns").returncode == 0,
                     f"the machine {name}")

    def starts(self, on, guard=":", braidd=None, pause=":"):
        """Whether the service manager starts services. `guard`, `pause`: what it does before a start and a stop;
        `braidd`: another program instead of the daemon."""
        text = SYSTEMCTL if on else "#!/bin/sh\nexit 0\n"
        self.systemctl.write_text(text.replace("{guard}", guard).replace("{pause}", pause)
                                  .replace("{directory}", str(self.lab.directory)).replace("{machine}", self.name)
                                  .replace("{braidd}", braidd or binary("braidd")))

    def words(self, *command):
        return ["nsenter", "-t", str(self.holder.pid), "-m", "-n", "--", *[str(word) for word in command]]

    def call(self, *command, given=None, timeout=60):
        """The finished process, whatever its exit status."""
        return subprocess.run(self.words(*command), input=given, stdin=None if given else subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout,
                              env={**os.environ, "PATH": self.path}, start_new_session=True)

    def ctl(self, *command, given=None, timeout=60):
        """Runs braidctl and returns its output. An error contains the output."""
        done = self.call(binary("braidctl"), *command, given=given, timeout=timeout)
        if done.returncode != 0:
            raise RuntimeError(f"braidctl {' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}"
                               f"{done.stderr}")
        return done.stdout

    def files(self, folder):
        return sorted(self.call("ls", "-A", folder).stdout.split())

    def stop(self):
        for file in self.lab.directory.glob(f"{self.name}-*.pid"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGTERM)
        time.sleep(0.2)
        run("umount", "-l", self.root, check=False)


class JoinCase(PairCase):
    LINKS = [Link("wifi", 20, 10), Link("lte", 20, 25)]
    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hub, cls.edge = (Machine(cls.lab, "hub", cls.lab.concentrator), Machine(cls.lab, "edge", cls.lab.edge))
        for machine in (cls.hub, cls.edge):
            cls.addClassCleanup(machine.stop)
        networks = [word for network in SERVER_LAN for word in ("--network", network)]
        cls.told_by_setup = cls.hub.ctl("setup", "--yes", *networks)

    def leave(self):
        """Makes the edge a bare machine again."""
        self.edge.call("systemctl", "disable", "--now", "braid@edge")
        self.edge.call(binary("braidctl"), "release", "edge")
        self.edge.call("sh", "-c", "rm -f /etc/braid/*")

    def tearDown(self):
        super().tearDown()
        if self.edge.files("/etc/braid"):
            self.leave()
        for name in self.hub.files("/var/lib/braid/concentrator.peers.d"):
            self.hub.call("rm", f"/var/lib/braid/concentrator.peers.d/{name}")
        self.hub.ctl("reload")

    def invite(self, name, *words):
        return self.hub.ctl("invite", name, "--address", f"{PUBLIC[0]}:4433", *words).strip()

    def join(self, line, *words):
        return self.edge.ctl("join", "--yes", *words, given=line + "\n")

    def refused(self, line, *words, timeout=60):
        """Expects that braidctl fails and changes nothing at either side. Returns its one line of output."""
        done = self.edge.call(binary("braidctl"), "join", "--yes", *words, given=line + "\n", timeout=timeout)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(self.edge.files("/etc/braid"), [])
        self.assertEqual(self.hub.files("/var/lib/braid/concentrator.peers.d"), [])
        return done.stderr
