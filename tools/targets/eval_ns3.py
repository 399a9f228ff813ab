"""Targets of Braid's own simulator against ns-3 and Linux (evaluation/ns3, evaluation/linux)."""

import json
import subprocess

from . import target
from ._builds import ROOT


def _compared(script):
    """(what it found, its explained differences in words)."""
    done = subprocess.run([ROOT / "evaluation" / script / "compare"], stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    return result, {f"{pair['case']}, {pair['figure']}": f"{pair['difference']:+.1%}: {pair['explained']}"
                    for pair in result["pairs"] if "explained" in pair}


@target("eval.4", "Braid's own models of TCP and switches against ns-3, means of several seeds: worst difference "
        "after what is explained", "share", at_most=0.10)
def against_ns3():
    result, explained = _compared("ns3")
    return result.pop("worst"), {"explained": explained, **result}


@target("eval.4b", "the same without the cases of 0.1 s, in which the slow start of a late flow is measured, too",
        "share", at_most=0.10)
def against_ns3_settled():
    result, explained = _compared("ns3")
    counted = [abs(pair["difference"]) for pair in result["pairs"]
               if "explained" not in pair and pair["settled"]]
    return max(counted), {"explained": explained, "with the cases of 0.1 s": result.pop("worst"), **result}


@target("eval.4c", "Braid's own model of TCP against this machine's kernel, means of several seeds: worst difference "
        "after what is explained", "share", at_most=0.10)
def against_linux():
    result, explained = _compared("linux")
    return result.pop("worst"), {"explained": explained, **result}
