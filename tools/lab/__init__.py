"""The network lab: network namespaces, emulated links, gateways, real services and measurements.

    client -- edge ==links== concentrator -- server

The demo, the end-to-end tests and the measured targets all use it. See site.py for the addresses.
"""

from .clean import remove_leftovers
from .gateway import Gateway, binary
from .lab import Lab
from .links import Link, Wire
from .measure import Download, longest_gap, median, percentile
from .netns import Namespace, run

__all__ = ["Download", "Gateway", "Lab", "Link", "Namespace", "Wire", "binary", "longest_gap",
           "median", "percentile", "remove_leftovers", "run"]
