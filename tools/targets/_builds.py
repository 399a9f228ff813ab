"""Builds of this checkout and of other commits, for targets that compare two."""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASELINES = ROOT / "build" / "baseline"


def _quietly(*command, directory=ROOT):
    """Runs a command and shows its output only when it fails."""
    done = subprocess.run([str(word) for word in command], cwd=directory, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        sys.exit(f"target: '{' '.join(map(str, command))}' failed")
    return done.stdout


def dependencies(*more):
    """Installs the packages that building and testing need, and `more` (an argument of scripts/deps)."""
    _quietly(ROOT / "scripts" / "deps", *more)


def build(directory, programs, preset="release"):
    """Builds programs of the checkout in that folder. Returns the folder that they are in."""
    jobs = os.environ.get("BRAID_JOBS", str(os.cpu_count()))
    dependencies()
    earlier = [] if directory == ROOT else ["-DBRAID_WERROR=OFF"]  # today's compiler may warn of what it has
    _quietly("cmake", "--preset", preset, *earlier, directory=directory)
    _quietly("cmake", "--build", "--preset", preset, "-j", jobs, "--target", *programs, directory=directory)
    return directory / "build" / preset / "bin"


def build_tests(programs):
    """Builds test programs of this checkout with sanitizers, as scripts/test does, because a release build may not have
    them. Returns their folder."""
    jobs = os.environ.get("BRAID_JOBS", str(os.cpu_count()))
    dependencies()
    _quietly("cmake", "--preset", "asan-ubsan")
    _quietly("cmake", "--build", "--preset", "asan-ubsan", "-j", jobs, "--target", *programs)
    return ROOT / "build" / "asan-ubsan" / "bin"


def full_hash(commit):
    """The whole name of a commit of this repository."""
    done = subprocess.run(["git", "rev-parse", "--verify", "--quiet", commit + "^{commit}"], cwd=ROOT,
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"target: there is no commit {commit} here (a shallow clone? git fetch --unshallow)")
    return done.stdout.strip()


def uncommitted():
    """True when tracked files differ from HEAD."""
    return bool(_quietly("git", "status", "--porcelain", "--untracked-files=no"))


def clone(commit, directory):
    """A new clone of this repository with that commit checked out. Deletes what was in the folder."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    _quietly("git", "clone", "--quiet", "--shared", "--no-checkout", ROOT, directory)
    _quietly("git", "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit, directory=directory)


def clone_of(commit):
    """The folder with a clone of that commit, made now or left by an earlier measurement. Its build is kept, too."""
    directory = BASELINES / full_hash(commit)
    head = subprocess.run(["git", "--git-dir", directory / ".git", "rev-parse", "HEAD"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    if head.stdout.strip() != directory.name:
        clone(directory.name, directory)
    return directory


def changed(name, file, old, new):
    """The folder with a clone of HEAD in which `new` stands for `old` in one file. `name`: of what differs so. Its
    build is kept until HEAD is another one."""
    directory = BASELINES / name
    head = subprocess.run(["git", "--git-dir", directory / ".git", "rev-parse", "HEAD"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    if head.stdout.strip() != full_hash("HEAD"):
        clone(full_hash("HEAD"), directory)
    path = directory / file
    text = path.read_text(encoding="utf-8")
    if new not in text:
        if text.count(old) != 1:
            sys.exit(f"target: '{old}' is not once in {file}")
        path.write_text(text.replace(old, new), encoding="utf-8")
    return directory
