"""python3 -m packages: see scripts/package."""

import argparse
import os
import pathlib
import subprocess
import sys
import time

from lab.boot import TREES

from .deb import Build, web_of
from .image import Store
from .source import RELEASES, ROOT, Source, uncommitted
from .trees import FOREIGN, NATIVE


def parse():
    parser = argparse.ArgumentParser(prog="scripts/package", allow_abbrev=False,
                                     description="Builds Debian packages of what is committed, as root, and has "
                                     f"lintian look at them. The Debian trees to build in are kept in {TREES}.")
    parser.add_argument("--suite", choices=sorted(RELEASES), default="bookworm",
                        help="release of Debian that the packages are for (bookworm)")
    parser.add_argument("--arch", choices=[NATIVE, *FOREIGN], action="append",
                        help=f"architecture, as often as wanted (this machine's: {NATIVE})")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/packages",
                        help="folder for the packages (build/packages)")
    parser.add_argument("--tests", action="store_true",
                        help="build and run the unit tests as well, those of another architecture by qemu")
    parser.add_argument("--image", action="store_true",
                        help="also make a container image of the package for this machine")
    parser.add_argument("--symbols", action="store_true",
                        help="also make the packages with debugging information, which takes longer")
    parser.add_argument("--prepare", action="store_true", help="only make the trees")
    parser.add_argument("--version", action="store_true", help="only print the version of the packages")
    return parser.parse_args()


def main():
    options = parse()
    source = Source.of()
    if options.version:
        print(source.debian_version(options.suite))
        return 0
    if os.geteuid() != 0:
        sys.exit("scripts/package: run as root, it builds in Debian trees of its own")
    if uncommitted():
        print("packaged is what is committed; there are changes that are not", file=sys.stderr)
    for what in ("package", *(["image"] if options.image else [])):
        subprocess.run([ROOT / "scripts/deps", what], check=True)
    failed, began = False, time.monotonic()
    for arch in options.arch or [NATIVE]:
        build = Build(source, options.suite, arch, tests=options.tests, symbols=options.symbols)
        if options.prepare:
            build.prepare()
            continue
        package, _ = build.run(options.output, sources=arch == NATIVE)
        print(package, web_of(package), sep="\n", flush=True)
        if complaints := build.complaints(options.output):
            print("\n".join(complaints), file=sys.stderr)
            failed = True
        if options.image and arch == NATIVE:
            with Store() as store:
                archive = package.with_suffix(".oci.tar")
                store.save(store.make(package, options.suite, source.epoch), archive)
                print(archive)
    print(f"all in {(time.monotonic() - began) / 60:.1f} minutes", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"scripts/package: {error}")
