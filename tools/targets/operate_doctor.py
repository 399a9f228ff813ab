"""Target of `braidctl doctor`: it must name cause and remedy of set-ups that are broken on purpose."""

from . import always, option, require, target
from ._doctor_lab import SETUPS, Place, healthy, judge

LEAST = 25  # set-ups that count


@target("operate.4", "broken set-ups, each made for real, for which doctor, check or the log does not name cause and "
        "remedy; a healthy pair must give no finding", "set-ups", at_most=0, programs=["braidd", "braidctl"],
        options=[option("--only", metavar="WORD", help="those with this word in their name"),
                 option("--show", always, action="store_true", help="print what was said")])
def broken_setups(only, show):
    """Every broken set-up, and a healthy pair before and after them."""
    failed, done = {}, []
    with Place() as place:
        def look(when):
            for finding in healthy(place) if not only else []:
                failed[f"{when}: {finding}"] = ["a finding where nothing is wrong"]

        look("before")
        for setup in SETUPS:
            if only and only not in setup.name:
                continue
            missing, said = judge(place, setup)
            done.append(setup.name)
            if missing:
                failed[setup.name] = [*missing, said[-3000:]]
            if show or missing:
                print(f"=== {setup.name}: {'lacks ' + ', '.join(map(str, missing)) if missing else 'named'}\n{said}",
                      flush=True)
        look("after")
        place.reset()
    detail = {"set-ups": len(done), "failed": failed, "done": done}
    require(detail, len(done) >= LEAST, f"{len(done)} of at least {LEAST} set-ups")
    return len(failed), detail
