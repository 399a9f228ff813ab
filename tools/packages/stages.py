"""What a build does now and how long each stage took, told as it goes."""

import sys
import time


class Stages:
    """Stages of one piece of work, a line each: "bookworm amd64: compile ... 140 s". Use as a context manager. `of`:
    the work; `out`: a stream, by default the standard error."""

    def __init__(self, of, out=None, clock=time.monotonic):
        self._of, self._out, self._clock = of, out or sys.stderr, clock
        self._running = False
        self._began = 0

    def begin(self, what):
        """The stage before has ended, and this one begins."""
        self._end("")
        self._began, self._running = self._clock(), True
        self._tell(f"{self._of}: {what} ...")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self._end("failed after " if kind else "")

    def _end(self, how):
        if self._running:
            self._running = False
            self._tell(f" {how}{self._clock() - self._began:.0f} s\n")

    def _tell(self, text):
        self._out.write(text)
        self._out.flush()
