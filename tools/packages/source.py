"""The source tree for packages: a commit of this repository, its version, and debian/ where Debian expects it."""

import dataclasses
import email.utils
import gzip
import os
import pathlib
import re
import shutil
import tarfile
import urllib.parse

from lab.netns import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = "packaging/debian"
RELEASES = {"bookworm": 12, "trixie": 13}
# Commits. Before the first tag, the commit this many commits earlier stands for the previous release.
BACK = 100
_DESCRIBED = re.compile(r"v(\d[\w.~]*)-(\d+)-g([0-9a-f]+)")


def _git(*words):
    return run("git", "-C", ROOT, *words).strip()


def _version(commit):
    """The version of a commit by `git describe`: 1.2.0 at the tag v1.2.0, 1.2.0+5.gHASH five commits later; before the
    first tag 0.1.0~648.gHASH, which sorts before the 0.1.0 of CMakeLists.txt."""
    described = run("git", "-C", ROOT, "describe", "--long", "--tags", "--match", "v[0-9]*", commit, check=False)
    if found := _DESCRIBED.fullmatch(described.strip()):
        tag, since, short = found.groups()
        return tag if since == "0" else f"{tag}+{since}.g{short}"
    project = re.search(r"project\(braid VERSION (\S+)", _git("show", f"{commit}:CMakeLists.txt")).group(1)
    return f"{project}~{_git('rev-list', '--count', commit)}.g{_git('rev-parse', '--short=9', commit)}"


def _packages(commit):
    """The names of the packages that are built from a commit."""
    return re.findall(r"^Package: (.*)$", run("git", "-C", ROOT, "show", f"{commit}:{DEBIAN}/control", check=False),
                      re.MULTILINE)


def maintainer(commit):
    """Who answers for a package: $DEBFULLNAME and $DEBEMAIL, as for all of Debian's tools, or the commit's author."""
    name, mail = _git("show", "-s", "--format=%an%n%ae", commit).split("\n")
    if given := os.environ.get("DEBEMAIL"):
        name, mail = os.environ.get("DEBFULLNAME", name), given
    return f"{name} <{mail}>"


def homepage():
    """The page of the repository that was cloned, without names and passwords; None when it is no public one."""
    url = run("git", "-C", ROOT, "config", "--get", "remote.origin.url", check=False).strip()
    if found := re.fullmatch(r"(?:ssh://)?git@([\w.-]+)[:/](.*)", url):
        url = f"https://{found.group(1)}/{found.group(2)}"
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or "." not in (parts.hostname or ""):
        return None
    return f"https://{parts.hostname}{parts.path.removesuffix('.git')}"


@dataclasses.dataclass(frozen=True)
class Source:
    """A commit to be packaged."""

    commit: str
    version: str  # without Debian's revision
    epoch: int  # time of the commit, seconds since 1970

    @classmethod
    def of(cls, commit="HEAD"):
        commit = _git("rev-parse", "--verify", commit + "^{commit}")
        return cls(commit, _version(commit), int(_git("show", "-s", "--format=%ct", commit)))

    def before(self):
        """The release before this commit. Where none had packages, the earliest of the BACK commits before it whose
        packages were those of today; None when there is no such commit, as in a shallow clone."""
        tag = run("git", "-C", ROOT, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", f"{self.commit}^",
                  check=False).strip()
        if tag and _packages(tag):
            return Source.of(tag)
        earlier = _git("rev-list", "--first-parent", "--skip=1", f"--max-count={BACK}", self.commit).split()
        wanted = _packages(self.commit)
        return next((Source.of(commit) for commit in reversed(earlier) if _packages(commit) == wanted), None)

    def debian_version(self, suite):
        """A version that sorts so that the packages of the next suite replace those of this one."""
        return f"{self.version}-1~deb{RELEASES[suite]}"

    def unpack(self, folder, suite):
        """Writes braid_VERSION.orig.tar.gz and the tree for dpkg-buildpackage below `folder`; returns the tree."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        name = f"braid-{self.version}"
        plain = folder / "source.tar"
        run("git", "-C", ROOT, "archive", "--format=tar", f"--prefix={name}/", f"--output={plain}", self.commit)
        original = folder / f"braid_{self.version}.orig.tar.gz"
        with open(original, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=self.epoch) as packed:
            packed.write(plain.read_bytes())
        with tarfile.open(plain) as archive:
            archive.extractall(folder)
        plain.unlink()
        # Not named after the version: paths are part of what ccache compares.
        tree = (folder / name).rename(folder / "braid")
        shutil.copytree(tree / DEBIAN, tree / "debian")
        self._fill_in(tree / "debian")
        self._write_changelog(tree, suite)
        return tree

    def _fill_in(self, debian):
        """Writes who maintains the packages, and where they come from."""
        page = homepage()
        for name in ("control", "copyright"):
            text = (debian / name).read_text(encoding="utf-8").replace("@MAINTAINER@", maintainer(self.commit))
            text = re.sub(r"^Homepage: @HOMEPAGE@\n", f"Homepage: {page}\n" if page else "", text, flags=re.MULTILINE)
            text = text.replace("@HOMEPAGE@", page or "the repository of the commit that debian/changelog names")
            (debian / name).write_text(text, encoding="utf-8")

    def _write_changelog(self, tree, suite):
        """The only entry of debian/changelog, since the changes for users are in CHANGELOG.md. Its date gives
        SOURCE_DATE_EPOCH of the build."""
        maintainer = re.search(r"^Maintainer: (.*)$", (tree / "debian/control").read_text(encoding="utf-8"),
                               re.MULTILINE).group(1)
        date = email.utils.formatdate(self.epoch)
        (tree / "debian/changelog").write_text(
            f"braid ({self.debian_version(suite)}) {suite}; urgency=medium\n\n"
            f"  * Built from commit {self.commit[:12]}.\n\n"
            f" -- {maintainer}  {date.replace('-0000', '+0000')}\n", encoding="utf-8")


def uncommitted():
    """True when tracked files differ from HEAD. Packages do not contain such changes."""
    return bool(_git("status", "--porcelain", "--untracked-files=no"))
