"""Target of `braidctl doctor`: it must name cause and remedy of set-ups that are broken on purpose."""

from . import always, option, require, target
from ._broken import Place, judge_all
from ._doctor_lab import SETUPS

LEAST = 25  # set-ups that count


@target("operate.4", "broken set-ups, each made for real, for which doctor, check or the log does not name cause and "
        "remedy; a healthy pair must give no finding", "set-ups", at_most=0, programs=["braidd", "braidctl"],
        options=[option("--only", metavar="WORD", help="those with this word in their name"),
                 option("--show", always, action="store_true", help="print what was said")])
def broken_setups(only, show):
    """Every broken set-up, and a healthy pair before and after them."""
    with Place() as place:
        failed, done = judge_all(place, SETUPS, only, show)
    detail = {"set-ups": len(done), "failed": failed, "done": done}
    require(detail, len(done) >= LEAST, f"{len(done)} of at least {LEAST} set-ups")
    return len(failed), detail
