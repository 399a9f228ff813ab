"""Target of packages: built, checked by lintian, installed, upgraded, removed and purged in booted machines; the unit
tests for ARM64 under an emulator; the container image; and whether a second build gives the same bytes."""

import hashlib
import pathlib
import re
import subprocess
import tempfile

from packages.deb import Build, renumbered, web_of
from packages.source import Source, uncommitted
from packages.trees import NATIVE, Tree

from . import MISSING, target
from ._builds import dependencies
from ._machines import SUITES, Checks
from ._package_containers import try_image
from ._package_machines import try_packages

OLD = "0~before"  # sorts before every version


class _Findings(Checks):
    """Checks that are no machine's as well."""

    def note(self, what, problems=()):
        self.done.append(what)
        self.failed += [f"{what}: {problem}" for problem in problems]


def _hashes(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.deb")}


def _build(source, work, findings):
    """{suite: packages for this machine, the gateway's and braid-web's}, built and looked at by lintian."""
    packages = {}
    for suite in SUITES:
        build = Build(source, suite, NATIVE)
        package, _ = build.run(work / suite, sources=True)
        packages[suite] = [package, web_of(package)]
        findings.note(f"{suite}: lintian", build.complaints(work / suite))
    return packages


def _build_again(source, suite, work, findings):
    """Elsewhere, and without anything from the first build."""
    Build(source, suite, NATIVE, place="/somewhere/else", cached=False).run(work / "again")
    first, second = _hashes(work / suite), _hashes(work / "again")
    findings.note("the same bytes twice", [f"{name} differs" for name in first if second.get(name) != first[name]])


def _before(source, packages, work):
    """{suite: packages of the version before}, and what that is."""
    old = source.before()
    if old:
        built = {suite: Build(old, suite, NATIVE).run(work / f"{suite}-before")[0] for suite in packages}
        return {suite: [each for each in (package, web_of(package)) if each.exists()]
                for suite, package in built.items()}, old.version
    return ({suite: [renumbered(package, OLD, work / f"{suite}-before") for package in each]
             for suite, each in packages.items()},
            "none had packages: these under a lower number, with units that differ")


def _what_failed(output):
    """The lines of googletest and ctest about failures in this output, and its end; the whole output is long."""
    lines = output.splitlines()
    failures = [number for number, line in enumerate(lines) if line.endswith(": Failure") or "FAILED  ]" in line]
    near = sorted({at for number in failures for at in range(number, number + 5)} & set(range(len(lines))))
    return "\n".join([*(lines[at] for at in near), "...", output[-1500:]])


def _foreign(source, work, findings):
    """The packages for ARM64, and their unit tests; returns ctest's summary."""
    build = Build(source, "bookworm", "arm64", tests=True)
    try:
        package, said = build.run(work / "arm64")
    except RuntimeError as error:
        findings.note("arm64: built, and unit tests under qemu", [_what_failed(getattr(error, "output", str(error)))])
        return None
    summary = re.search(r"100% tests passed.*", said)
    findings.note("arm64: built, and unit tests under qemu", [] if summary else ["no test ran"])
    findings.note("arm64: lintian", build.complaints(work / "arm64"))
    subprocess.run(["dpkg-deb", "--extract", package, work / "arm64/root"], check=True)
    told = Tree("bookworm", "arm64", tests=True).run("qemu-aarch64", "/built/root/usr/bin/braidd", "--version",
                                                     bind=[(work / "arm64", "/built")], check=False)
    findings.note("arm64: the daemon tells its version", [] if source.version in told else [told])
    return summary and summary.group(0)


@target("operate.2", "package checks that fail: lintian, install, upgrade, remove, purge and unit in booted Debian 12 "
        "and 13, unit tests for ARM64 under qemu, container, the same bytes twice", "checks", at_most=0,
        programs=["braidctl"])
def packages_work():
    for what in ("boot", "package", "image"):
        dependencies(what)
    findings = _Findings()
    source = Source.of()
    detail = {"version": source.version, "uncommitted": uncommitted()}
    with tempfile.TemporaryDirectory(prefix="braid-packages-", dir="/var/tmp") as work:
        work = pathlib.Path(work)
        try:
            packages = _build(source, work, findings)
            old, detail["upgraded_from"] = _before(source, packages, work)
            try_packages(packages, old, work, findings)
            try_image(packages["bookworm"][0], "bookworm", source.epoch, findings)
            detail["arm64"] = _foreign(source, work, findings)
            _build_again(source, "bookworm", work, findings)
        except (RuntimeError, TimeoutError) as error:
            detail[MISSING] = f"not measured to the end: {str(error)[-1500:]}"
    return len(findings.failed), {**detail, "checks": len(findings.done), "failed": findings.failed}
