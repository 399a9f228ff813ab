"""The differences for people: as a table in Markdown, and in the document."""

from statistics import mean

BEGIN, END = "<!-- compare --write: from here -->", "<!-- compare --write: to here -->"


def number(value):
    """With three digits that say something."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def lines(result):
    """Of what compare() returns, a line for each pair."""
    yield "| case | figure | Braid | ns-3 | difference |"
    yield "| --- | --- | --- | --- | --- |"
    for pair in result["pairs"]:
        note = f", explained: {pair['explained']}" if "explained" in pair else ""
        yield (f"| {pair['case']} | {pair['figure']} | {number(pair['ours'])} | {number(pair['ns3'])} | "
               f"{pair['difference']:+.1%}{note} |")


def alone(cases, runs):
    """Of one program's runs: the mean and the range of each figure."""
    yield "| case | figure | mean | least | most | timeouts |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for case in cases:
        timeouts = sum(run.get("timeouts", 0) for run in runs[case.name])
        for key in case.keys:
            values = [run[key] for run in runs[case.name]]
            yield (f"| {case.name} | {key} | {number(mean(values))} | {number(min(values))} | {number(max(values))} | "
                   f"{timeouts} |")


def written(text, result, seeds):
    """The document with the table in its marked section. Throws ValueError when it has none."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the document has no section for the table")
    worst = "nothing counts" if result["worst"] is None else f"worst of what nothing explains: {result['worst']:.1%}"
    table = "\n".join(lines(result))
    return f"{before}{BEGIN}\nMeans of {seeds} seeds; {worst}.\n\n{table}\n{END}{after}"
