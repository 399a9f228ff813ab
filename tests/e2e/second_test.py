"""The second implementation of docs/protocol.md (tests/second) agrees with the daemon, in all checks of
tests/second.yaml that take less than three seconds; and its table is whole."""

import subprocess
import unittest

from targets import guard_second

READ = "import sys; from second import checks, run; run.read(sys.stdin.read(), checks.load())"


class Second(unittest.TestCase):
    def test_the_daemon_holds_what_the_second_implementation_checks(self):
        told = guard_second.run("--quick")
        self.assertGreaterEqual(told["checks"], guard_second.LEAST)
        self.assertEqual(told["failed"], {})

    def read(self, text):
        """Whether the text is a table of checks."""
        words = [guard_second.DEBIAN_PYTHON, "-c", READ]
        return subprocess.run(words, input=text, text=True, stderr=subprocess.DEVNULL, env=guard_second.environment(),
                              check=False).returncode == 0

    def test_a_row_that_nothing_checks_is_refused(self):
        row = "{id: %s, section: 3, does: a, observed: b}"
        self.assertTrue(self.read(f"checks: [{row % 'datagram.runt'}]"))
        for wrong in (row % "datagram.none", f"{row % 'datagram.runt'}, {row % 'datagram.runt'}",
                      "{id: datagram.runt, section: 3, does: a}"):
            self.assertFalse(self.read(f"checks: [{wrong}]"), wrong)


if __name__ == "__main__":
    unittest.main()
