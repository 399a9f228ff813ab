"""Target of what the first message says to people who make a mistake."""

from . import always, option, require, target
from ._mistakes import TABLE, judge_all, read

LEAST = 30  # mistakes that count


@target("see.4", "typical mistakes (tests/mistakes.yaml), each made for real, whose first message does not name cause "
        "and remedy in one line", "mistakes", at_most=0, programs=["braidd", "braidctl"],
        options=[option("--only", metavar="WORD", help="those with this word in their name"),
                 option("--show", always, action="store_true", help="print what was said")])
def mistakes(only, show):
    """Every mistake, once."""
    rows = [row for row in read(TABLE.read_text(encoding="utf-8")) if not only or only in row["mistake"] + row["made"]]
    failed = judge_all(rows, show)
    detail = {"mistakes": len(rows), "failed": failed}
    require(detail, len(rows) >= LEAST, f"{len(rows)} of at least {LEAST} mistakes")
    return len(failed), detail
