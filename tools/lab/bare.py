"""Bare machines of a lab, each with folders and a service manager of its own, on which braidctl makes a gateway."""

import contextlib
import os
import signal
import subprocess
import sys
import time

from .gateway import binary
from .netns import run

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

# Replaces systemd's journalctl: the daemon's lines since a moment, with their priorities.
JOURNALCTL = r"""#!{python}
import datetime, json, pathlib, re, sys
since = next(float(word.partition("@")[2]) for word in sys.argv if word.startswith("--since=@"))
levels = dict(critical=2, error=3, warning=4)
file = pathlib.Path("{directory}/logs/{machine}.log")
for line in file.read_text("utf-8", "replace").splitlines() if file.exists() else []:
    told = re.fullmatch(r"(\S+ \S+) (\w+): (.*)", line)
    try:
        when = datetime.datetime.fromisoformat(told[1]).timestamp()
    except (TypeError, ValueError):
        continue
    if when >= since:
        print(json.dumps(dict(PRIORITY=str(levels.get(told[2], 6)), MESSAGE=told[3])))
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
        journalctl = root / "bin" / "journalctl"
        journalctl.write_text(JOURNALCTL.format(python=sys.executable, directory=lab.directory, machine=name))
        journalctl.chmod(0o755)
        self.path = f"{root}/bin:{os.path.dirname(binary('braidctl'))}:{os.environ['PATH']}"
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
