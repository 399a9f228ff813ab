"""python3 -m targets list | ID: see scripts/target."""

import json
import os
import pathlib
import subprocess
import sys
import time

from . import load

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build(programs):
    """Builds the release programs of a target, quietly: the compiler's words only come out on failure."""
    if not programs or "BRAID_BIN" in os.environ:
        return
    jobs = os.environ.get("BRAID_JOBS", str(os.cpu_count()))
    for command in ([str(ROOT / "scripts" / "deps")], ["cmake", "--preset", "release"],
                    ["cmake", "--build", "--preset", "release", "-j", jobs, "--target", *programs]):
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.stderr.write(done.stdout)
            sys.exit(f"target: '{' '.join(command)}' failed")


def main():
    targets = load()
    wanted = sys.argv[1]
    if wanted == "list":
        for entry in targets.values():
            print(f"{entry.id:10} {entry.bound():>8} {entry.unit:8} {entry.what}")
        return 0
    if wanted not in targets:
        sys.exit(f"no target '{wanted}'; there are: {', '.join(targets)}")
    entry = targets[wanted]
    build(entry.programs)
    began = time.monotonic()
    value, detail = entry.measure()
    detail["seconds"] = round(time.monotonic() - began, 1)
    met = entry.met(value)
    print(json.dumps({"id": entry.id, "what": entry.what, "value": round(value, 4), "unit": entry.unit,
                      "target": entry.bound(), "pass": met, "detail": detail}))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
