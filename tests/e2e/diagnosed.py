"""Handling of other programs on the machine, for all end-to-end tests: a failing test reports how busy the machine was,
and checks of time limits may be repeated."""

import unittest

from lab.machine import Machine, wait_for_calm

ATTEMPTS = 3


class Late(AssertionError):
    """A limit of time or speed was missed, perhaps because another program had the CPU."""


class DiagnosedCase(unittest.TestCase):
    """A test case that shows figures of the machine when it fails. Subclasses add to it with tell()."""

    def run(self, result=None):
        machine = Machine()
        bad = _bad(result)
        super().run(result)
        if _bad(result) > bad:
            print(f"\n{self.id()} failed; the machine meanwhile: {machine.told()}")
            print(_last(result), flush=True)  # first, as the runner of the tests may cut what comes later
            self.tell()
            print(flush=True)
        return result

    def tell(self):
        """Prints what helps to understand a failure."""

    def in_time(self, holds, what):
        """Checks a limit of time or speed inside attempts(). `what` has the figures."""
        if not holds:
            raise Late(what)

    def attempts(self, experiment):
        """Repeats the experiment when a limit of in_time() is missed, up to three times. The limits do not change, and
        all must hold in the same experiment. Any other failure fails the test at once."""
        missed = []
        while len(missed) < ATTEMPTS:
            if missed:
                wait_for_calm()
            machine = Machine()
            try:
                experiment()
                break
            except Late as late:
                missed.append(f"attempt {len(missed) + 1}: {self.id()}: {late} ({machine.told()})")
                print("\n" + missed[-1], flush=True)
        if len(missed) == ATTEMPTS:
            self.fail(f"missed in every attempt, lastly {missed[-1]}")


def _bad(result):
    return len(result.failures) + len(result.errors) if result else 0


def _last(result):
    """The tracebacks of the failures and of the errors that were recorded last, their last lines."""
    return "\n".join(text[-1500:] for found in (result.failures, result.errors) for _, text in found[-1:])
