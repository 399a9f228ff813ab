"""Runs the simulation programs."""

import concurrent.futures
import json
import shlex
import subprocess

from lab import binary

from . import require

PROCESSES = 2
SEEDS = range(1, 6)  # the programs' default and four more


def simulate(program, runs, check=True):
    """Runs the program, with a group of its experiments ("braid-sim rate"), for each {key: arguments}, two at a time.
    Returns {key: its figures}, the last line it writes. `check`: it must end well."""
    name, *group = shlex.split(program)

    def one(arguments):
        done = subprocess.run([binary(name), *group, *map(str, arguments)], stdout=subprocess.PIPE, check=check)
        return json.loads(done.stdout.splitlines()[-1])

    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        pending = {key: pool.submit(one, arguments) for key, arguments in runs.items()}
        return {key: future.result() for key, future in pending.items()}


def require_complete(detail, runs):
    """Checks that every flow of {key: figures} has ended. (An unfinished one would count in a percentile with the time
    that it had.)"""
    for key, figures in runs.items():
        count = figures.get("incomplete")
        require(detail, not count, f"{key}: {count} flows did not end")


def by_seed(program, runs, wanted, figure):
    """[figure(runs), and what it is of the same with the seeds after the first]. `wanted`: {name: arguments} of the
    runs that it takes; in `runs` they are with the first seed."""
    others = simulate(program, {(name, seed): [*arguments, "--seed", seed] for seed in SEEDS[1:]
                                for name, arguments in wanted.items()})
    return [figure(runs), *(figure({name: others[name, seed] for name in wanted}) for seed in SEEDS[1:])]
