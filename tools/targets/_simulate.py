"""Runs of the programs of virtual time."""

import concurrent.futures
import json
import subprocess

from lab import binary

PROCESSES = 2


def simulate(program, runs):
    """Runs the program for each {key: arguments}, two at a time. Returns {key: its figures}."""
    def one(arguments):
        done = subprocess.run([binary(program), *map(str, arguments)], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        pending = {key: pool.submit(one, arguments) for key, arguments in runs.items()}
        return {key: future.result() for key, future in pending.items()}
