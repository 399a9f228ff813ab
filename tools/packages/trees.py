"""The Debian trees in which packages are built: one for each suite and architecture, kept beside those of lab.boot."""

import hashlib
import pathlib
import re
import shutil

from lab.boot import APT, TREES, enter, prepare_apt, tree
from lab.netns import run

from .source import DEBIAN, ROOT

NATIVE = "amd64"
FOREIGN = ["arm64"]
_TOOLS = ["build-essential", "ccache", "fakeroot", "lintian"]
_CROSS = {"arm64": ["crossbuild-essential-arm64", "qemu-user"]}
_PATIENCE = 7200  # seconds: a build with its tests under an emulator


class Tree:
    """A Debian tree of one suite with the build dependencies for one architecture."""

    def __init__(self, suite, arch):
        self.suite, self.arch = suite, arch
        control = (ROOT / DEBIAN / "control").read_text(encoding="utf-8")
        needs = repr((re.search(r"^Build-Depends:.*\n(?: .*\n)*", control, re.MULTILINE).group(0), _TOOLS, _CROSS))
        self.path = TREES / f"build-{suite}-{arch}-{hashlib.sha256(needs.encode()).hexdigest()[:10]}"

    def prepare(self):
        """Makes the tree if it does not exist yet, and removes trees with outdated dependencies."""
        if self.path.exists():
            return
        base = tree(self.suite)
        for old in TREES.glob(f"build-{self.suite}-{self.arch}-*"):
            shutil.rmtree(old, ignore_errors=True)
        made, self.path = self.path, pathlib.Path(f"{self.path}.new")
        shutil.rmtree(self.path, ignore_errors=True)
        try:
            run("cp", "-a", "--reflink=auto", base, self.path, timeout=600)
            self._fill()
            self.path.rename(made)
        finally:
            self.path = made

    def _fill(self):
        cross = self.arch != NATIVE
        prepare_apt(self.path)
        source = self.path / "root/source/debian"
        source.mkdir(parents=True)
        shutil.copy(ROOT / DEBIAN / "control", source)
        (source / "changelog").write_text("braid (0-1) unstable; urgency=low\n\n  * For apt-get build-dep.\n\n"
                                          " -- Nobody <nobody@packages.invalid>  Thu, 01 Jan 1970 00:00:00 +0000\n",
                                          encoding="ascii")
        if cross:
            self.run("dpkg", "--add-architecture", self.arch)
        self.run(*APT, "update")
        self.run(*APT, "install", *_TOOLS, *(_CROSS[self.arch] if cross else []))
        self.run(*APT, "build-dep", *(["--host-architecture", self.arch] if cross else []), "/root/source")
        self.run("apt-get", "clean")

    def run(self, *command, **options):
        """Runs a command inside: see lab.boot.enter()."""
        return enter(self.path, *command, timeout=_PATIENCE, **options)
