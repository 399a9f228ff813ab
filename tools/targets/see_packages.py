"""Target of the packages that a newcomer builds: how long that takes, and how much it installs."""

import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

from . import require, target
from ._builds import ROOT, clone, full_hash, uncommitted
from ._cold import Clock, wait_for_a_free_machine

DOCUMENTS = ("usr/share/doc/", "usr/share/man/")
MOST_INSTALLED = 7_000_000  # bytes of all packages, without documents
LARGE = 50_000  # bytes of a file that is named
KEPT = {"BRAID_MIRROR", "BRAID_JOBS"}  # of this environment: where packages come from, and how many jobs


def installed(packages):
    """{path: bytes} of the files that these packages install."""
    sizes = {}
    for package in packages:
        unpacked = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
            sizes |= {each.name.removeprefix("./"): each.size for each in archive if each.isfile()}
    return sizes


def judged(seconds, sizes, detail):
    """(minutes, detail) of a build that took so long and made packages with files of these sizes."""
    documents = sum(size for path, size in sizes.items() if path.startswith(DOCUMENTS))
    rest = sum(sizes.values()) - documents
    detail |= {"installed_bytes": rest, "documents_bytes": documents,
               "large_files": {path: size for path, size in sizes.items() if size >= LARGE}}
    require(detail, 0 < rest <= MOST_INSTALLED, f"at most {MOST_INSTALLED:,} bytes without documents: {rest:,}")
    return round(seconds / 60, 2), detail


def _build(folder, trees):
    """(what scripts/package told of its stages, the packages)"""
    keep = {name: value for name, value in os.environ.items() if not name.startswith("BRAID_") or name in KEPT}
    stages = []
    with subprocess.Popen([folder / "scripts/package", "--output", trees / "packages"], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**keep, "BRAID_BOOT_TREES": str(trees), "CCACHE_DISABLE": "1"}) as script:
        for line in script.stdout:
            sys.stderr.write(line)
            stages.append(line.strip())
    if script.returncode != 0:
        raise RuntimeError("scripts/package failed: " + " | ".join(stages[-8:]))
    return stages, sorted((trees / "packages").glob("*.deb"))


@target("see.5", "scripts/package for this machine, cold: a new clone, no Debian to build in, no compiler cache, "
        "nothing else running; what it installs without documents may be 7 MB, in the detail", "minutes", at_most=10)
def cold_package():
    if uncommitted():
        sys.exit("target: commit first: packages have nothing of what is not committed")
    commit = full_hash("HEAD")
    folder = ROOT / "build" / "cold" / f"{commit}-package"
    clone(commit, folder)
    subprocess.run([folder / "scripts/deps", "package"], check=True)
    with tempfile.TemporaryDirectory(prefix="braid-package-", dir="/var/tmp") as trees:
        wait_for_a_free_machine()
        clock = Clock()
        stages, packages = _build(folder, pathlib.Path(trees))
        used = clock.read()
        return judged(used["seconds"], installed(packages), {"commit": commit, **used, "stages": stages})
