"""An experiment to test with: two variants over two axes, whose program is a few lines of shell."""

import os
import pathlib
import tempfile
import unittest
from unittest import mock

from runner import spec

TEXT = """\
paper: fuso
title: Two ways
command: program {variant} --loss {loss} {where} --flows {flows} --seed {seed}
settings: {flows: 100}
axes:
  loss: [0.01, 0.10]
  where: {inside: "", edge: --edge}
variants: {none: --policy none, fuso: --policy fuso}
seeds: 5
quick:
  seeds: 2
  axes: {loss: [0.10]}
  settings: {flows: 10}
reports:
  p99: {figure: 6a, what: p99 of the time, unit: ms, value: p99 * 1000, against: none}
  late: {figure: [6b, 6d], what: late flows, value: "count(late) + queue.max", log: yes}
claims:
  tail: {figure: 6a, what: largest p99, unit: ms, value: max(p99(fuso)), paper: 2.4, relation: at most}
  gain:
    figure: abstract
    what: least p99 against none at the edge
    value: 1 - min(p99(fuso, where="edge") / p99(none, where="edge"))
    paper: up to 82 %
    limit: 0.823
    relation: at least
    why: other timers
why: other sizes
"""
# Prints its seed and loss so that reports differ by both; `none` takes twice as long.
PROGRAM = """#!/bin/bash
echo run >>"$(dirname "$0")/runs"
while (($#)); do
  case $1 in --seed) seed=$2 ;; --loss) loss=$2 ;; --policy) policy=$2 ;; esac
  shift
done
[[ $policy == none ]] && factor=2 || factor=1
echo "{\\"p99\\": $((factor * seed)).${loss#0.}e-3, \\"late\\": [1, 2], \\"queue\\": {\\"max\\": 3}}"
"""


class Case(unittest.TestCase):
    """Has a folder of its own, the programs that it makes there, and the experiment."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        environment = mock.patch.dict(os.environ, BRAID_BIN=folder.name)
        environment.start()
        self.addCleanup(environment.stop)

    def program(self, text=PROGRAM, name="program"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def load(self, text=TEXT, name="two-ways"):
        file = self.folder / f"{name}.yaml"
        file.write_text(text, encoding="utf-8")
        return spec.load(file)
