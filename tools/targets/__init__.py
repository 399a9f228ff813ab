"""Measured performance targets. A family is one file here; a target is one function in it:

    @target("pair.2", "longest stall ...", "s", at_most=0.28, programs=["braidd", "braidctl", "linkemu"])
    def wifi_dies():
        ...
        return value, {"what the value rests on": ...}

A target may have options, which the command line gives to the function by name:

    @target("house.6", ..., options=[option("--runs", type=int, default=20, help="how many")])
    def busy_neighbour(runs): ...

A detail named MISSING says what a measurement still lacks for a verdict: the target is not met, whatever the value.
"""

import dataclasses
import importlib
import pathlib
import pkgutil
from typing import Callable

REGISTRY = {}
MISSING = "missing"


@dataclasses.dataclass
class Target:
    """A number that a function measures, and the bound that it must keep."""

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

    def met(self, value):
        if value is None:
            return False
        if self.at_least is not None:
            return value >= self.at_least
        return value <= self.at_most


def option(flag, **settings):
    """An option of a target, with the settings of argparse's add_argument()."""
    return flag, settings


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
    """Imports every family, and so fills the registry."""
    for module in pkgutil.iter_modules([str(pathlib.Path(__file__).parent)]):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
    return REGISTRY
