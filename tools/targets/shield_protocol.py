"""Target of docs/protocol.md: tests must cover its rules and vectors."""

import concurrent.futures
import re
import tempfile

from . import MISSING, target
from ._builds import ROOT, build_tests
from ._gtest import cases

DOCUMENT = ROOT / "docs" / "protocol.md"
# Where the tests of rules and vectors are: program, and which of its tests.
SUITES = {"unit_tunnel": "*", "unit_gateway": "Dtls*:IdentityTest*:Join*", "sim_scenarios": "Hostile*:Tap*:Restart*",
          "sim_stream_scenarios": "*"}


def _documented():
    """(vectors of the appendix, rules of section 12), as sets of ids."""
    text = DOCUMENT.read_text(encoding="utf-8")
    ranges = text.partition("\n## 12. Ranges\n")[2].partition("\n## ")[0]
    appendix = text.partition("\n## Appendix: test vectors\n")[2]
    rules = re.findall(r"^\| `([a-z]+\.[a-z]+)` \|", ranges, re.MULTILINE)
    rows = len(re.findall(r"^\| ", ranges, re.MULTILINE)) - 2  # without the head
    vectors = re.findall(r"^\*\*(V\d+)\*\* ", appendix, re.MULTILINE)
    if not vectors or len(rules) != rows or len(set(rules)) != rows or len(set(vectors)) != len(vectors):
        raise RuntimeError(f"{DOCUMENT.name}: {len(vectors)} vectors, and {len(rules)} ids in {rows} rows of ranges")
    return set(vectors), set(rules)


def _run(program, tests, folder):
    """[(name, passed, {property: set of ids})] of the tests with such a property, or None: it crashed, or leaked."""
    ran = cases(program, tests, folder)
    if ran is None:
        return None
    named = [(each, {kind: set(each.properties.get(kind, "").split()) for kind in ("vector", "rule")}) for each in ran]
    return [(each.name, each.passed, ids) for each, ids in named if any(ids.values())]


@target("shield.10", "test vectors of docs/protocol.md that the code does not reproduce, and rules of its field table "
        "without a test that passes", "ids", at_most=0)
def document():
    vectors, rules = _documented()
    programs = build_tests(list(SUITES))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = dict(zip(SUITES, pool.map(lambda suite: _run(programs / suite[0], suite[1], folder), SUITES.items())))
    cases = [case for run in runs.values() for case in run or []]
    held = {"vector": set(), "rule": set()}
    failed = sorted(name for name, passed, _ in cases if not passed)
    for _, passed, named in cases:
        for kind, ids in named.items():
            if passed:
                held[kind] |= ids
    for _, passed, named in cases:  # all tests of an id must pass
        for kind, ids in named.items():
            if not passed:
                held[kind] -= ids
    lacking = sorted(vectors - held["vector"]) + sorted(rules - held["rule"])
    detail = {"vectors": len(vectors), "rules": len(rules), "tests": len(cases), "lacking": lacking, "failed": failed,
              "ids that the document does not have": sorted((held["vector"] - vectors) | (held["rule"] - rules))}
    missing = [f"an end of {program}" for program, run in runs.items() if run is None]
    if detail["ids that the document does not have"]:
        missing.append("rows for ids that tests name")
    if missing:
        detail[MISSING] = missing
    return len(lacking), detail
