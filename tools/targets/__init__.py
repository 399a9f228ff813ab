"""Measured performance targets. A family is one file here; a target is one function in it:

    @target("pair.2", "longest stall ...", "s", at_most=0.28, programs=["braidd", "braidctl", "linkemu"])
    def wifi_dies():
        ...
        return value, {"what the value rests on": ...}

A target may have options, which the command line gives to the function by name. With a value other than the default a
measurement has no verdict, unless the option says otherwise:

    @target("house.6", ..., options=[option("--runs", at_least(20), type=int, default=20, help="how many")])
    def busy_neighbour(runs): ...

A detail named MISSING says what a measurement lacks for a verdict. The target is then not met, whatever its value.
"""

import dataclasses
import importlib
import pathlib
import pkgutil
from typing import Callable, NamedTuple

REGISTRY = {}
MISSING = "missing"


@dataclasses.dataclass
class Target:
    """A number that a function measures, and its bound."""

    id: str
    what: str
    unit: str
    measure: Callable
    at_least: float | None
    at_most: float | None
    programs: list
    options: list

    def bound(self):
        return f">= {self.at_least}" if self.at_least is not None else f"<= {self.at_most}"

    def looks(self, options):
        """Flags of those of `options`, {name: value}, with which a measurement has no verdict."""
        return [each.flag for each in self.options if not each.judged(options[each.name])]

    def met(self, value):
        if value is None:
            return False
        if self.at_least is not None:
            return value >= self.at_least
        return value <= self.at_most


class Option(NamedTuple):
    """An option of a target."""

    flag: str
    settings: dict  # of argparse's add_argument()
    judged: Callable  # function(value): True when a measurement with this value has a verdict

    @property
    def name(self):
        return self.flag.lstrip("-").replace("-", "_")


def option(flag, judged=None, **settings):
    """An Option. `judged`: by default only the default value is."""
    default = settings.get("default", False if "action" in settings else None)
    return Option(flag, settings, judged or (lambda value: value == default))


def at_least(number):
    """For option(): a measurement has a verdict with this number or more."""
    return lambda value: value >= number


def always(_):
    """For option(): a measurement has a verdict whatever the value."""
    return True


def require(detail, holds, text):
    """Adds a second condition to a target, without which the target is not met. An earlier reason is kept."""
    if not holds:
        before = detail.get(MISSING) or []
        detail[MISSING] = "; ".join([*([before] if isinstance(before, str) else before), text])


def target(name, what, unit, at_least=None, at_most=None, programs=(), options=()):
    """Registers the decorated function as a target. `programs` are built before it runs."""
    if (at_least is None) == (at_most is None):
        raise ValueError(f"{name}: give at_least or at_most")

    def register(function):
        if name in REGISTRY:
            raise ValueError(f"{name} is there twice")
        REGISTRY[name] = Target(name, what, unit, function, at_least, at_most, list(programs), list(options))
        return function

    return register


def load():
    """Imports every family, which fills the registry."""
    for module in pkgutil.iter_modules([str(pathlib.Path(__file__).parent)]):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
    return REGISTRY
