"""Target of the size of classes (functions and data members), counted by universal-ctags."""

import collections
import json

from lab.netns import run

from . import target
from ._builds import ROOT, dependencies

CLASSES = {"class", "struct", "union"}
COUNTED = {"prototype": "functions", "function": "functions", "member": "data"}  # ctags' kinds of C++
MOST_NAMED = 10


def _tags():
    """What ctags finds in src: each with name, path, line, kind, and end and scope where they have one."""
    out = run("ctags", "--recurse", "--languages=C++", "--langmap=C++:.h.cc", "--kinds-C++=pfmcsu", "--fields=+neKZs",
              "--sort=no", "--output-format=json", "-f", "-", "src", cwd=ROOT)
    return [json.loads(line) for line in out.splitlines()]


def _named_scope(tag):
    """The class that a tag stands in. A struct or union without a name is part of the class around it."""
    parts = tag.get("scope", "").split("::")
    while parts and parts[-1].startswith("__anon"):
        parts.pop()
    return "::".join(parts)


def members():
    """{(file, class): {"functions": n, "data": n}} of every class, struct and union in src.

    Everything inside the braces counts: public or not, static or not, constants, constructors, operators, and
    functions that are defined there. A class inside of another counts for itself.
    """
    tags = _tags()
    counts, bodies = collections.defaultdict(lambda: {"functions": 0, "data": 0}), {}
    for tag in tags:
        if tag["kind"] in CLASSES and "end" in tag and not tag["name"].startswith("__anon"):
            name = "::".join(filter(None, [tag.get("scope"), tag["name"]]))
            bodies[tag["path"], name] = range(tag["line"], tag["end"] + 1)
            counts[tag["path"], name]  # a class without members is one, too
    for tag in tags:
        place = tag["path"], _named_scope(tag)
        if tag["kind"] in COUNTED and tag["line"] in bodies.get(place, ()):
            counts[place][COUNTED[tag["kind"]]] += 1
    return dict(counts)


@target("house.4", "member functions plus data members of the largest class in src", "members", at_most=60)
def largest_class():
    dependencies()
    counts = members()
    rows = sorted(((sum(parts.values()), name.removeprefix("braid::"), parts, path)
                   for (path, name), parts in counts.items()), key=lambda row: -row[0])
    return rows[0][0], {"classes": len(counts),
                        "largest": [f"{name} {all_}: {parts['functions']} functions, {parts['data']} data, {path}"
                                    for all_, name, parts, path in rows[:MOST_NAMED]]}
