"""What is drawn: for each plot a run of sim_rate, and which of its subflows."""

import dataclasses

WAN = "wan"


@dataclasses.dataclass
class Plot:
    """`subflows`: label in the series -> in the legend. `queues`: one subflow of each bottleneck -> its name. Times
    are in seconds."""

    title: str
    arguments: list
    interval: float  # between samples: at most a few hundred fit on a page
    subflows: dict
    queues: dict
    controller: str = WAN
    milliseconds: bool = False  # on the time axis


def _tunnels(controller, rivals):
    return {f"{controller} 0": controller, **{f"cubic {i}": "cubic" if rivals == 1 else f"cubic {i}"
                                              for i in range(1, rivals + 1)}}


def plots(controller):
    """All plots, those of `wan` with this controller instead."""
    home = {"wifi": "WiFi 50 Mbit/s, 20 ms", "lte": "LTE 30 Mbit/s, 60 ms"}
    return {
        "rate.1": Plot("Incast of 30 senders with 4 subflows each: the 15th sender", ["incast", "--rounds", 1], 10e-6,
                       {f"path{56 + i}": f"subflow {i + 1}" for i in range(4)}, {"path56": "the port"},
                       controller="amp", milliseconds=True),
        "rate.1b": Plot("One connection of 4 subflows beside 8 of DCTCP (the first of these is drawn)",
                        ["syndrome", "--multipath", 1, "--singles", 8, "--time", 20], 50e-6,
                        {**{f"path{i}": f"subflow {i + 1}" for i in range(4)}, "path4": "DCTCP"},
                        {"path0": "the port"}, controller="amp",
                        milliseconds=True),
        "rate.1d": Plot("S3 leaves the lower path at 20 ms, S1 comes to the upper one",
                        ["shifting", "--time", 10], 75e-6,
                        {"S2 upper": "S2 upper", "S2 lower": "S2 lower", "S1": "S1", "S3": "S3"},
                        {"S2 upper": "upper", "S2 lower": "lower"}, controller="amp", milliseconds=True),
        "rate.2": Plot("One download, 1 % loss on WiFi, 0.1 % on LTE", ["bulk", "--seconds", 17], 50e-3, home, home),
        "rate.3": Plot("A path whose capacity changes every second", ["trace", "--seconds", 60, "--seed", 4], 160e-3,
                       {"4g": "4G"}, {"4g": "4G"}),
        "rate.4": Plot("Beside two CUBIC flows, 50 Mbit/s, 40 ms, 1 BDP of queue",
                       ["cubic-share", "--rivals", 2, "--seconds", 20], 75e-3,
                       _tunnels(controller, 2), {f"{controller} 0": "the queue"}),
        "rate.5": Plot("A policer of 20 Mbit/s with 64 KiB on a path of 100 Mbit/s, 40 ms",
                       ["policer", "--seconds", 10], 50e-3,
                       {"policed": "policed"}, {"policed": "of the link behind it"}),
        "rate.6": Plot("A download beside the interactive exchanges, no loss", ["interactive", "--seconds", 17], 50e-3,
                       home, home),
    }
