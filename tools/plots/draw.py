"""One figure of four panels from a time series of sim_rate."""

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  (the backend comes first)

# The same data gives the same bytes.
pyplot.rcParams.update({"svg.hashsalt": "braid", "svg.fonttype": "none", "font.size": 9, "axes.grid": True,
                        "grid.linewidth": 0.3,
                        "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1})
NO_DATE = {"Date": None, "Creator": None}
LARGEST = 200_000  # bytes of a file


def _panel(axes, label):
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)


def draw(plot, controller, series, capacity, path):
    """Writes an SVG. `series`: {subflow: its samples in order}; `capacity`: (times in s, Mbit/s) of the path, or None.
    """
    scale = 1000 if plot.milliseconds else 1
    figure, (windows, rates, rtts, queues) = pyplot.subplots(4, 1, sharex=True, figsize=(8, 8.5), layout="constrained")

    def column(subflow, field, factor):
        return [None if sample[field] is None else sample[field] * factor for sample in series[subflow]]

    def times(subflow):
        return [sample["t"] * scale for sample in series[subflow]]

    for number, (subflow, name) in enumerate(plot.subflows.items()):
        t, color = times(subflow), f"C{number}"
        windows.plot(t, column(subflow, "window", 1e-3), color=color, label=name)
        rates.plot(t, column(subflow, "rate", 8e-6), color=color)
        rates.plot(t, column(subflow, "delivery", 8e-6), color=color, alpha=0.4, linewidth=0.7)
        rtts.plot(t, column(subflow, "rtt", 1e3), color=color)
        if subflow in plot.queues:
            queues.plot(t, column(subflow, "queue", 1e-3), color=color, label=plot.queues[subflow])
    if capacity:
        at, mbit = capacity
        rates.step(at, mbit, where="post", color="black", linewidth=0.8, linestyle=":", label="capacity")
        rates.legend(loc="upper right", fontsize=8)
    _panel(windows, "window, KB")
    _panel(rates, "pacing rate\n(pale: delivery rate), Mbit/s")
    _panel(rtts, "smoothed RTT, ms")
    _panel(queues, "queue, KB")
    queues.set_ylim(top=max(1, queues.get_ylim()[1]))  # a policer has none
    queues.set_xlabel("ms" if plot.milliseconds else "s")
    windows.legend(loc="upper right", fontsize=8)
    if len(plot.queues) > 1:
        queues.legend(loc="upper right", fontsize=8)
    figure.suptitle(f"{controller}: {plot.title}", fontsize=10)
    figure.savefig(path, format="svg", metadata=NO_DATE)
    pyplot.close(figure)
    if path.stat().st_size > LARGEST:
        raise RuntimeError(f"{path} has {path.stat().st_size} bytes: sample less often")
