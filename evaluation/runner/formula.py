"""The formulas of an experiment's file: arithmetic, calls of a few functions, names; nothing else of Python."""

import ast
import functools
import math
from statistics import fmean

_PARTS = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Constant,
          ast.Load, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub)


class Formula:
    """`text` as a function of names. Raises ValueError when it is more than a formula."""

    def __init__(self, text):
        self.text = text
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except SyntaxError as error:
            raise ValueError(f"is no formula: {error.msg}") from None
        for part in ast.walk(tree):
            name = getattr(part, "id", getattr(part, "attr", ""))
            method = isinstance(part, ast.Call) and not isinstance(part.func, ast.Name)
            if not isinstance(part, _PARTS) or name.startswith("_") or method:
                raise ValueError(f"has {name or type(part).__name__}, which no formula may have")
        self.names = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
        self._code = compile(tree, text, "eval")

    def __call__(self, names):
        missing = self.names - names.keys()
        if missing:
            raise ValueError(f"{self.text}: no {', '.join(sorted(missing))} among {', '.join(names)}")
        return eval(self._code, {"__builtins__": {}}, names)


class Fields(dict):
    """A JSON object whose members formulas name with a dot."""

    def __getattr__(self, name):
        if name not in self:
            raise ValueError(f"no {name} among {', '.join(self)}")
        return fields(self[name])


def fields(value):
    return Fields(value) if isinstance(value, dict) else value


def percentile(values, share):
    """A percentile by nearest rank, as in the simulators."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]


# The functions that a formula may call on the results of one run. Programs print no figures with these names.
OF_A_RUN = {"percentile": percentile, "mean_of": fmean, "sum_of": sum, "max_of": max, "min_of": min, "count": len}


def of_a_run(formula, result):
    """The value of a formula of one run's JSON object. `member("links", "4g")` is what names with dots are, for
    those that are no names."""
    names = {**{key: fields(value) for key, value in result.items()}, **OF_A_RUN}
    names["member"] = lambda *path: fields(functools.reduce(dict.__getitem__, path, result))
    value = formula(names)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{formula.text} is no number but {value!r}")
    return value
