"""The checks of tests/second.yaml. Each is a function(place, row) that raises AssertionError when it does not hold."""

import importlib
import pathlib
import pkgutil

CHECKS = {}


def check(function):
    """Registers a function as the check of its name."""
    if function.__name__ in CHECKS:
        raise ValueError(f"{function.__name__} is there twice")
    CHECKS[function.__name__] = function
    return function


def expect(holds, text):
    if not holds:
        raise AssertionError(text)


def load():
    """Imports all files of checks, which fills CHECKS."""
    for module in pkgutil.iter_modules([str(pathlib.Path(__file__).parent)]):
        importlib.import_module(f"{__name__}.{module.name}")
    return CHECKS
