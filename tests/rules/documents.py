"""Functions that the rules about documents share."""

import re
import sys

QUOTED = re.compile(r"`([^`]+)`")


def lines(root, document):
    """(number, line, text in backquotes) of each line."""
    for number, line in enumerate((root / document).read_text().splitlines(), 1):
        yield number, line, QUOTED.findall(line)


def judge(document, checked, wrong):
    """Ends the script as failed when something is wrong, or when nothing was checked."""
    if checked == 0:
        sys.exit(f"no names found in {document}: nothing was checked")
    if wrong:
        sys.exit(f"{document} does not fit what is there:\n  " + "\n  ".join(wrong))
    print(f"{checked} names, all there")
