"""The Debian trees in which packages are built: one for each suite and architecture, kept beside those of lab.boot."""

import hashlib
import pathlib
import re
import shutil

from lab.boot import APT, MIRROR, TREES, enter, prepare_apt, with_proxy
from lab.netns import run

from .source import DEBIAN, ROOT

NATIVE = run("dpkg", "--print-architecture").strip()
FOREIGN = [arch for arch in ("amd64", "arm64") if arch != NATIVE]
_TOOLS = ["build-essential", "ccache", "fakeroot", "lintian"]
_PATIENCE = 7200  # seconds: a build with its tests under an emulator
# Nobody reads in these trees, and what a crash of this machine damages there is made again.
_DPKG = ["force-unsafe-io", *(f"path-exclude=/usr/share/{folder}/*" for folder in ("doc", "locale", "man"))]


class Tree:
    """A Debian tree of one suite with the build dependencies for one architecture; `tests`: and those of the unit
    tests."""

    def __init__(self, suite, arch, tests=False):
        self.suite, self.arch = suite, arch
        self._profile = [] if tests else ["--build-profiles=nocheck"]
        self._tools = _TOOLS + ([f"crossbuild-essential-{arch}", "qemu-user"] if arch != NATIVE else [])
        control = (ROOT / DEBIAN / "control").read_text(encoding="utf-8")
        needs = repr((re.search(r"^Build-Depends:.*\n(?: .*\n)*", control, re.MULTILINE).group(0), self._tools, _DPKG))
        self._name = f"{'test' if tests else 'build'}-{suite}-{arch}-"
        self.path = TREES / (self._name + hashlib.sha256(needs.encode()).hexdigest()[:10])

    def prepare(self, stages):
        """Makes the tree if it does not exist yet, and removes the one with outdated dependencies."""
        if self.path.exists():
            return
        for old in TREES.glob(f"{self._name}*"):
            shutil.rmtree(old, ignore_errors=True)
        TREES.mkdir(parents=True, exist_ok=True)
        made, self.path = self.path, pathlib.Path(f"{self.path}.new")
        try:
            stages.begin("a Debian to build in, once")
            self._bootstrap()
            stages.begin("build dependencies, once")
            self._fill()
            self.path.rename(made)
        finally:
            self.path = made

    def _bootstrap(self):
        run("mmdebstrap", "--quiet", "--mode=root", "--variant=apt", "--format=directory",
            f"--include={','.join(self._tools)}" if self.arch == NATIVE else "--include=apt",
            "--skip=cleanup/apt/lists", *(f"--dpkgopt={each}" for each in _DPKG), self.suite, self.path, MIRROR,
            timeout=1800, env=with_proxy())
        prepare_apt(self.path)

    def _fill(self):
        source = self.path / "root/source/debian"
        source.mkdir(parents=True)
        control = (ROOT / DEBIAN / "control").read_text(encoding="utf-8")
        (source / "control").write_text(control.replace("@HOMEPAGE@", "https://packages.invalid"), encoding="utf-8")
        (source / "changelog").write_text("braid (0-1) unstable; urgency=low\n\n  * For apt-get build-dep.\n\n"
                                          " -- Nobody <nobody@packages.invalid>  Thu, 01 Jan 1970 00:00:00 +0000\n",
                                          encoding="ascii")
        of = []
        if self.arch != NATIVE:
            self.run("dpkg", "--add-architecture", self.arch)
            self.run(*APT, "update")
            self.run(*APT, "install", *self._tools)
            of = ["--host-architecture", self.arch]
        self.run(*APT, "build-dep", *of, *self._profile, "/root/source")
        self.run("apt-get", "clean")

    def run(self, *command, **options):
        """Runs a command inside: see lab.boot.enter()."""
        return enter(self.path, *command, timeout=_PATIENCE, **options)
