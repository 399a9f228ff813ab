"""The differences for people: as a table in Markdown, and in the document."""

import math

BEGIN, END = "<!-- compare --write: from here -->", "<!-- compare --write: to here -->"


def number(value):
    """A number with three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def with_interval(mean, half):
    return number(mean) if math.isnan(half) else f"{number(mean)} ± {number(half)}"


def lines(result, rival):
    """A table of the result of compare(), with a line for each pair. `rival`: the program with which Braid is
    compared."""
    yield f"| case | figure | seeds | Braid | {rival} | difference |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for pair in result["pairs"]:
        note = f", explained: {pair['explained']}" if "explained" in pair else ""
        ours, theirs = (with_interval(pair[name], pair[f"{name}_interval"]) for name in ("ours", "theirs"))
        yield (f"| {pair['case']} | {pair['figure']} | {pair['seeds']} | {ours} | {theirs} | "
               f"{pair['difference']:+.1%}{note} |")


def written(text, result, rival):
    """The document with the table in its marked section. Throws ValueError when it has none."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the document has no section for the table")
    worst = "nothing counts" if result["worst"] is None else f"worst of what nothing explains: {result['worst']:.1%}"
    flows = "".join(f"\nOne flow's goodput in {name} differs by {share:.1%} of the mean, on average."
                    for name, share in result["flow_by_flow"].items())
    table = "\n".join(lines(result, rival))
    return f"{before}{BEGIN}\nMeans with 95 % intervals; {worst}.{flows}\n\n{table}\n{END}{after}"
