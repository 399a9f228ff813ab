"""Debian packages: built by dpkg-buildpackage in a tree of their suite, and checked there by lintian."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from .stages import Stages
from .trees import NATIVE, Tree

# An unexplained message about a package. packaging/debian has no overrides.
_COMPLAINT = re.compile(r"^[EW]: .*$", re.MULTILINE)
# What dpkg-buildpackage says when a stage begins.
_STAGES = [(re.compile(pattern), what) for pattern, what in (
    (r" *dh_auto_configure\b(?!.*build-tests)", "configure"), (r" *dh_auto_build\b(?!.*build-tests)", "compile"),
    (r" *dh_auto_configure\b.*build-tests", "unit tests"), (r" *dh_auto_install\b", "pack"))]


def stage_of(line):
    """The stage that begins with this line of dpkg-buildpackage; None: it goes on."""
    return next((what for pattern, what in _STAGES if pattern.match(line)), None)


def _ccache():
    """The host's compilation cache; None without ccache, or when $CCACHE_DISABLE is set."""
    if not shutil.which("ccache") or os.environ.get("CCACHE_DISABLE"):
        return None
    done = subprocess.run(["ccache", "--get-config", "cache_dir"], stdout=subprocess.PIPE, text=True, check=False)
    folder = pathlib.Path(done.stdout.strip() or "/nowhere")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Build:
    """One build of a source for a suite and an architecture. `place` is the build folder inside the tree; the result
    must not depend on it. `cached`: use ccache; `tests`: build and run the unit tests, too, under an emulator when the
    architecture is foreign; `symbols`: also make the packages with debugging information, which takes longer."""

    def __init__(self, source, suite, arch, place="/build", cached=True, tests=False, symbols=False):
        self.source, self.suite, self.arch = source, suite, arch
        self._tree = Tree(suite, arch, tests)
        self._place, self._tests, self._symbols = place, tests, symbols
        self._cache = _ccache() if cached else None
        self._name = f"braid_{source.debian_version(suite)}_{arch}"

    def run(self, output, sources=False):
        """Builds into the folder `output`, with the source package on request. Returns the .deb of the gateway and what
        was said; RuntimeError when anything fails. The one of braid-web lies beside it (web_of())."""
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="braid-package-", dir="/var/tmp") as work, self._stages() as stages:
            self._tree.prepare(stages)
            stages.begin("unpack")
            tree = self.source.unpack(pathlib.Path(work) / "made", self.suite)
            said = self._buildpackage(tree, sources, stages)
            for path in tree.parent.iterdir():
                if path.is_file() and (sources or ".orig." not in path.name):
                    shutil.copy(path, output / path.name)
        return output / f"{self._name}.deb", said

    def prepare(self):
        """Makes the tree to build in, if it does not exist yet."""
        with self._stages() as stages:
            self._tree.prepare(stages)

    def _stages(self):
        return Stages(f"{self.suite} {self.arch}")

    def _buildpackage(self, tree, sources, stages):
        inside = f"{self._place}/{tree.name}"
        jobs = os.environ.get("BRAID_JOBS", str(os.cpu_count()))
        left_out = [*([] if self._tests else ["nocheck"]), *([] if self._symbols else ["noautodbgsym"])]
        environment = {"DEB_BUILD_OPTIONS": " ".join([f"parallel={jobs}", *left_out]),
                       "DEB_BUILD_PROFILES": "" if self._tests else "nocheck"}
        bind = [(tree.parent, self._place)]
        if self._cache:
            bind.append((self._cache, "/ccache"))
            # CCACHE_BASEDIR is not set, because with relative paths the debugging information would differ from that
            # without ccache.
            environment |= {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_DIR": "/ccache"}
        words = ["dpkg-buildpackage", "--no-sign", "--build=full" if sources else "--build=binary"]
        if self.arch != NATIVE:
            words.append(f"--host-arch={self.arch}")

        def tell(line):
            if what := stage_of(line):
                stages.begin(what)

        return self._tree.run(*words, bind=bind, directory=inside, environment=environment, tell=tell)

    def complaints(self, output):
        """lintian's errors and warnings about the packages in `output`."""
        words = ["lintian", "--allow-root", "--tag-display-limit=0", f"/built/{self._name}.changes"]
        with self._stages() as stages:
            stages.begin("lintian")
            said = self._tree.run("sh", "-c", '"$@"; echo "status $?"', "sh", *words, bind=[(output, "/built")],
                                  check=False)
        status = re.search(r"^status (\d+)$", said, re.MULTILINE)  # 2: it found errors
        if not status or status.group(1) not in ("0", "2"):
            return [f"lintian could not look: {said[-1000:]}"]
        return _COMPLAINT.findall(said)


def web_of(package):
    """The package of braid-web that was built with this one."""
    return package.with_name(package.name.replace("braid_", "braid-web_", 1))


def renumbered(package, version, output):
    """Writes the package with another version and a different unit into the folder `output`. It serves as an earlier
    release to upgrade from, when there is no real one yet."""
    name = package.name.partition("_")[0]
    with tempfile.TemporaryDirectory(prefix="braid-package-", dir="/var/tmp") as work:
        tree = pathlib.Path(work) / "tree"
        subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
        for file, old, new in (("DEBIAN/control", r"^Version: .*", f"Version: {version}"),
                               ("DEBIAN/control", r"\bbraid \(>= [^)]*\)", f"braid (>= {version})"),
                               (f"usr/lib/systemd/system/{name}@.service", r"^(Description=.*)", r"\1, before")):
            text = (tree / file).read_text(encoding="utf-8")
            (tree / file).write_text(re.sub(old, new, text, count=1, flags=re.MULTILINE), encoding="utf-8")
        output.mkdir(parents=True, exist_ok=True)
        made = output / f"{name}_{version}_{package.stem.rpartition('_')[2]}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, made], check=True,
                       stdout=subprocess.DEVNULL)
    return made
