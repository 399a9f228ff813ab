"""Target of `braidctl join` on the hosts of issue 48: from the invitation to a page that a host of the LAN loads."""

import re

import yaml
from lab.host_state import differences, state_of

from . import option, require, target
from ._join_hosts import CUT, GUARD, KINDS, Home

LEAST = 10  # kinds of host
MOST = 2  # commands
# What join tells to do where it may not do it unasked
_ADVICE = re.compile(r"braidctl firewall allow \S+(?: --into-chains)?")


class _Failed(Exception):
    pass


def networks_of(text):
    """The LANs that a configuration of an edge has, sorted."""
    return sorted(yaml.safe_load(text)["device"].get("networks", []))


def fail_once(home, words, line):
    """A join on this host that fails at its last step, as no datagram leaves any more. What is left of it."""
    before = state_of(home.machine)
    cut, mend = CUT
    home.machine.starts(True, guard=f"{GUARD}; {cut}")
    done = home.machine.call("braidctl", *words, given=line, timeout=90)
    home.call("sh", "-c", mend)
    home.machine.starts(True, guard=GUARD)
    if done.returncode != 1 or "was not reached by the tunnel" not in done.stderr:
        raise _Failed(f"a join that cannot end: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return differences(before, state_of(home.machine))


def join_on(kind):
    """{commands, networks, wrong, left} of a kind of host; _Failed when no page is loaded."""
    with Home(kind.routed) as home:
        plug = kind.make(home)
        line = home.invite(kind.endpoint)
        words = ("join", "--yes", *kind.words)
        left = fail_once(home, words, line)
        typed, told = [], ""

        def type_in(*command, given=None):
            nonlocal told
            typed.append(" ".join(("braidctl", *command)))
            done = home.machine.call("braidctl", *command, given=given, timeout=90)
            told += done.stdout + done.stderr
            if done.returncode != 0:
                raise _Failed(f"{typed}: exit {done.returncode}\n{told}")

        type_in(*words, given=line)
        if plug:
            plug()
        taken = networks_of(home.call("cat", "/etc/braid/edge.yaml"))
        missing = [page for page in kind.pages if not home.loads(page)]
        advice = _ADVICE.search(told)
        if missing and advice:
            type_in(*advice[0].split()[1:])
            missing = [page for page in kind.pages if not home.loads(page)]
        if missing:
            doctor = home.machine.call("braidctl", "doctor").stdout
            raise _Failed(f"no page from {missing} after {typed}\n{told}\n{doctor}")
        return {"commands": typed, "networks": taken, "wrong": taken != sorted(kind.lans), "left": left}


def judge(kinds, run=join_on):
    """(most commands of a kind of host, detail). None: on some host no page was loaded at all."""
    detail, most = {}, 0
    wrong, left, failed = [], [], []
    for kind in kinds:
        try:
            result = run(kind)
        except (_Failed, RuntimeError, OSError, TimeoutError) as error:
            failed.append(kind.name)
            detail[kind.name] = str(error)[-3000:]
            continue
        detail[kind.name] = result
        most = max(most, len(result["commands"]))
        wrong += [kind.name] if result["wrong"] else []
        left += [kind.name] if result["left"] else []
    require(detail, not failed, f"no page on {failed}")
    require(detail, not wrong, f"other networks than those of the LAN on {wrong}")
    require(detail, not left, f"a join that fails leaves something on {left}")
    require(detail, len(kinds) >= LEAST, f"{len(kinds)} of at least {LEAST} kinds of host")
    return None if failed else most, detail


@target("router.3", f"commands that a user types on a host (at least {LEAST} kinds: uplinks, families, bridges, "
        "containers, tunnels, firewalls), with an invitation at hand, until a host of its LAN loads a page, most of all"
        " kinds; no wrong LAN is taken, and a join that fails leaves nothing", "commands", at_most=MOST,
        programs=["braidd", "braidctl"],
        options=[option("--only", metavar="WORD", help="kinds with this word in their name")])
def join_hosts(only):
    return judge([kind for kind in KINDS if not only or only in kind.name])
