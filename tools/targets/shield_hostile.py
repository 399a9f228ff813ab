"""Target of attacking peers: the service that an honest peer of the same gateway still gets, in virtual time."""

import json
import subprocess

from lab import binary

from . import MISSING, at_least, option, target
from ._simulate import simulate

SEEDS = 3


@target("shield.4", "virtual time: goodput of an honest peer beside one hostile peer / alone; the worst of all "
        "attacks and seeds, both directions", "ratio", at_least=0.8, programs=["sim_hostile"],
        options=[option("--seeds", at_least(SEEDS), type=int, default=SEEDS, help="of each attack"),
                 option("--attack", metavar="NAME", help="only this one: a look, and no verdict")])
def hostile_peer(seeds, attack):
    listed = subprocess.run([binary("sim_hostile"), "--list"], stdout=subprocess.PIPE, check=True)
    attacks = json.loads(listed.stdout)
    names = [attack] if attack else list(attacks)
    runs = simulate("sim_hostile", {(name, seed): ["--attack", name, "--seed", seed]
                                    for name in names for seed in range(1, seeds + 1)})
    detail = {}
    for name in names:
        of_name = [runs[name, seed] for seed in range(1, seeds + 1)]
        detail[name] = {"what": attacks[name], "shares": [round(run["share"], 3) for run in of_name],
                        "call datagrams lost of 250": [run["call_lost"] for run in of_name],
                        "drops of the gateway": of_name[0]["drops"],
                        "buffers in use, most": max(run["pool_most"] for run in of_name),
                        "of": of_name[0]["pool_limit"],
                        "sent by the attacker": sum(run["datagrams"] + run["inner_packets"] for run in of_name),
                        "CPU of one, us": round(max(run["hostile_cpu_us"] for run in of_name), 1)}
    broken = [f"{name}, seed {seed}: {run['broken']}" for (name, seed), run in runs.items() if run["broken"]]
    if broken:
        detail[MISSING] = broken
    return min(run["share"] for run in runs.values()), detail
