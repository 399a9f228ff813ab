"""Imports every end-to-end test of the project, those of `scripts/test --nightly` too, so that a test which cannot even
be read is noticed on the day on which it breaks: tests/rules/imports.py PROJECT."""

import importlib
import pathlib
import sys


def main(project):
    folder = project / "tests" / "e2e"
    sys.path[:0] = [str(folder), str(project / "tools")]
    broken = 0
    for file in sorted(folder.glob("*_test.py")):
        try:
            importlib.import_module(file.stem)
        except Exception as error:  # whatever it is, the test cannot run
            print(f"{file.relative_to(project)}: {type(error).__name__}: {error}")
            broken += 1
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
