"""What every end-to-end test does about other programs on the machine: a failing test tells how busy it was, and what
is promised about time may be tried again."""

import unittest

from lab.machine import Machine, wait_for_calm

ATTEMPTS = 3


class Late(AssertionError):
    """A bound on time or speed that was missed, perhaps because another program had the CPU."""


class DiagnosedCase(unittest.TestCase):
    """A test case that shows figures of the machine when it fails. Subclasses say more with tell()."""

    def run(self, result=None):
        machine = Machine()
        bad = _bad(result)
        super().run(result)
        if _bad(result) > bad:
            print(f"\n{self.id()} failed; the machine meanwhile: {machine.told()}")
            self.tell()
            print(flush=True)
        return result

    def tell(self):
        """Prints what helps to understand a failure."""

    def in_time(self, holds, what):
        """A bound on time or speed inside of attempts(); `what` has the figures."""
        if not holds:
            raise Late(what)

    def attempts(self, experiment):
        """Makes the experiment again when a bound of in_time() does not hold, up to three times. The bounds stay what
        they are, and all of them must hold in one and the same experiment; whatever else is wrong fails the test at
        once."""
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
