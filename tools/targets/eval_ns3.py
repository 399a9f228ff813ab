"""Target of Braid's own simulator against ns-3 (docs/evaluation/ns3.md)."""

import json
import subprocess

from . import target
from ._builds import ROOT


@target("eval.4", "Braid's own models of TCP and switches against ns-3, means of several seeds: worst difference "
        "after what is explained", "share", at_most=0.10)
def against_ns3():
    done = subprocess.run([ROOT / "sim" / "ns3" / "compare"], stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    explained = {f"{pair['case']}, {pair['figure']}": f"{pair['difference']:+.1%}: {pair['explained']}"
                 for pair in result["pairs"] if "explained" in pair}
    return result.pop("worst"), {"explained": explained, **result}
