"""python3 -m plots [--controller NAME] [TARGET...]: see scripts/plots."""

import argparse
import json
import pathlib
import tempfile

from targets._simulate import simulate

from .draw import draw
from .experiments import WAN, plots

ROOT = pathlib.Path(__file__).resolve().parents[2]


def read(path, plot):
    """The samples of the subflows that are drawn."""
    series = {subflow: [] for subflow in plot.subflows}
    with open(path) as lines:
        for line in lines:
            sample = json.loads(line)
            if sample["subflow"] in series:
                series[sample["subflow"]].append(sample)
    missing = [subflow for subflow, samples in series.items() if not samples]
    if missing:
        raise RuntimeError(f"{path}: nothing of {', '.join(missing)}")
    return series


def main():
    parser = argparse.ArgumentParser(prog="scripts/plots")
    parser.add_argument("--controller", default=WAN, help="whose plots rate.2 to rate.6 are")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "evaluation")
    parser.add_argument("targets", nargs="*", help="all unless given")
    options = parser.parse_args()
    known = plots(options.controller)
    unknown = [name for name in options.targets if name not in known]
    if unknown:
        parser.error(f"no plot of {', '.join(unknown)}; there are: {', '.join(known)}")
    wanted = {name: known[name] for name in options.targets or known}
    controllers = {name: options.controller if plot.controller == WAN else plot.controller
                   for name, plot in wanted.items()}
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        files = {name: pathlib.Path(folder) / name for name in wanted}
        runs = simulate("sim_rate", {name: [*plot.arguments, "--controller", controllers[name],
                                            "--series", files[name],
                                            "--interval", plot.interval * 1000] for name, plot in wanted.items()})
        for name, plot in wanted.items():
            steps = runs[name].get("trace_mbit")
            path = options.out / f"{name}.svg"
            draw(plot, controllers[name], read(files[name], plot), (range(len(steps)), steps) if steps else None, path)
            print(f"{path}: {path.stat().st_size // 1000} KB")


if __name__ == "__main__":
    main()
