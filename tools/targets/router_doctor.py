"""Target of `braidctl doctor` on the hosts of issue 48."""

from . import _broken_hosts, _broken_networks, _broken_settings, _broken_ways, always, option, require, target
from ._broken import Place, judge_all
from ._broken_hosts import guarded
from ._broken_networks import streams
from .router import KINDS

SETUPS = [setup for module in (_broken_hosts, _broken_networks, _broken_settings, _broken_ways)
          for setup in module.SETUPS]
LEAST = 40  # set-ups that count
LEAST_MENDED = 40  # set-ups whose remedy is tried


def counts(setups):
    """How many there are of each kind, program and family, and how many remedies are tried."""
    def of(value):
        found = {}
        for setup in setups:
            found[value(setup)] = found.get(value(setup), 0) + 1
        return dict(sorted(found.items()))

    return {"kinds": of(lambda s: s.kind), "families": of(lambda s: s.family), "programs": of(lambda s: s.program),
            "remedies tried": sum(setup.is_mended for setup in setups)}


def healthy_router(place):
    """The findings of doctor at a pair whose edge is a guarded router of a LAN with streams. There must be none."""
    place.reset()
    guarded(place)
    streams(place)
    place.edge.config["forwarding"] = place.hub.config["forwarding"] = "on"
    place.connect()
    answers = {gateway.name: place.doctor(gateway) for gateway in (place.edge, place.hub)}
    place.reset()
    return [f"healthy router, {name}: exit {code}\n{said}" for name, (code, said) in answers.items() if code != 0]


@target("router.4", "broken set-ups of real hosts (issue 48: routes, guards, interfaces, firewalls, streams, names, "
        "settings of the kernel, lines, clouds), each made for real, for which doctor does not name cause and remedy, "
        "or in which it still finds something wrong after the remedy; a healthy pair must give no finding",
        "set-ups", at_most=0, programs=["braidd", "braidctl"],
        options=[option("--only", metavar="WORD", help="those with this word in their name"),
                 option("--kind", type=int, default=0, metavar="N", help="those of this kind only"),
                 option("--show", always, action="store_true", help="print what was said")])
def broken_hosts(only, kind, show):
    """Every broken set-up, and a healthy pair before and after them."""
    setups = [setup for setup in SETUPS if kind in (0, setup.kind)]
    with Place(sites=2) as place:
        failed, done = judge_all(place, setups, only, show)
        for finding in healthy_router(place) if not only else []:
            failed[finding] = ["a finding where nothing is wrong"]
    detail = {"set-ups": len(done), **counts(setups), "failed": failed}
    require(detail, len(done) >= LEAST, f"{len(done)} of at least {LEAST} set-ups")
    tried = detail["remedies tried"]
    require(detail, tried >= LEAST_MENDED, f"the remedies of {tried} set-ups are tried, of at least {LEAST_MENDED}")
    missing = set(KINDS) - {setup.kind for setup in setups}
    require(detail, not missing, f"no set-up of the kinds {sorted(missing)}")
    return len(failed), detail
