"""python3 -m packages: see scripts/package."""

import argparse
import os
import pathlib
import sys

from .deb import Build
from .image import Store
from .source import RELEASES, ROOT, Source, uncommitted
from .trees import FOREIGN, NATIVE, Tree


def parse():
    parser = argparse.ArgumentParser(prog="scripts/package", allow_abbrev=False,
                                     description="Builds Debian packages of what is committed, as root, and has "
                                     "lintian look at them. Debian trees to build in are kept in /var/cache/braid.")
    parser.add_argument("--suite", choices=sorted(RELEASES), default="bookworm",
                        help="release of Debian that the packages are for (bookworm)")
    parser.add_argument("--arch", choices=[NATIVE, *FOREIGN], action="append",
                        help="architecture, as often as wanted (amd64 and arm64)")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/packages",
                        help="folder for the packages (build/packages)")
    parser.add_argument("--tests", action="store_true",
                        help="build and run the unit tests as well, those of another architecture by qemu")
    parser.add_argument("--image", action="store_true", help="also make a container image of the package for amd64")
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
    failed = False
    for arch in options.arch or [NATIVE, *FOREIGN]:
        Tree(options.suite, arch).prepare()
        if options.prepare:
            continue
        build = Build(source, options.suite, arch)
        package, _ = build.run(options.output, tests=options.tests, sources=arch == NATIVE)
        print(package)
        if complaints := build.complaints(options.output):
            print("\n".join(complaints), file=sys.stderr)
            failed = True
        if options.image and arch == NATIVE:
            with Store() as store:
                archive = package.with_suffix(".oci.tar")
                store.save(store.make(package, options.suite, source.epoch), archive)
                print(archive)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(f"scripts/package: {error}")
