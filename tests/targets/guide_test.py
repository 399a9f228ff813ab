"""The newcomer's walk (see.3): which commands it takes from the guide, how it types them, and what it objects to."""

import contextlib
import pathlib
import re
import tempfile
import unittest
from unittest import mock

from targets import see_guide
from targets._fresh import Fresh, lines_of
from targets._guide import GUIDE, Command, commands_of, file_of

MACHINES = ["server", "edge"]
PAGE = """# Guide

## Install

    scripts/package      # on a third machine

## Five commands

    apt install ./braid_*_amd64.deb   # server
    braidctl invite van --network ::/0   # server: prints one line # and no more
    braidctl join   # edge: asks for it

Afterwards:

    braidctl status   # edge

### A router

```ini
# /etc/systemd/network/10-lan.network
[Match]
Name=lan0
```
"""
LINE = "braid-invitation-1/" + "x" * 200


class Extractor(unittest.TestCase):
    def test_takes_the_first_block_of_the_section_and_the_machine_of_each_line(self):
        self.assertEqual(commands_of(PAGE, "Five commands", MACHINES), [
            Command("server", "apt install ./braid_*_amd64.deb"),
            Command("server", "braidctl invite van --network ::/0"),
            Command("edge", "braidctl join")])

    def test_takes_the_file(self):
        self.assertEqual(file_of(PAGE, "A router"),
                         ("/etc/systemd/network/10-lan.network", "[Match]\nName=lan0\n"))

    def test_refuses_what_it_cannot_type(self):
        cases = [("0 sections", PAGE, "Six commands", MACHINES), ("2 sections", PAGE * 2, "Five commands", MACHINES),
                 ("at which of", PAGE, "Install", ["server"]), ("nothing is typed at hub", PAGE, "Five commands",
                                                                [*MACHINES, "hub"]),
                 ("at which of", PAGE.replace("  # edge: asks", "  # asks"), "Five commands", MACHINES),
                 ("at which of", PAGE.replace("# edge:", "# laptop:"), "Five commands", MACHINES),
                 ("no block", PAGE, "A router", MACHINES)]
        for message, text, heading, machines in cases:
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                commands_of(text, heading, machines)
        with self.assertRaisesRegex(ValueError, "no file"):
            file_of(PAGE, "Install")

    def test_the_guide_itself(self):
        text = GUIDE.read_text(encoding="utf-8")
        commands = commands_of(text, "Five commands", MACHINES)
        self.assertLessEqual(len(commands), see_guide.MOST)
        for machine in MACHINES:
            lines = [command.line for command in commands if command.machine == machine]
            self.assertTrue(lines[0].startswith("apt install ./braid_"), lines)
        self.assertEqual(commands[-1], Command("edge", "braidctl join"))
        path, lan = file_of(text, "A router from a fresh Debian")
        self.assertEqual(pathlib.Path(path).parent, pathlib.Path("/etc/systemd/network"))
        self.assertIn(f"Address={see_guide.GATEWAY}/24\n", lan)


class Typing(unittest.TestCase):
    def test_answers(self):
        answer = see_guide.answer_with(LINE)
        for prompt, reply in (
                ("The invitation, as 'braidctl invite' printed it (it is not shown): ", LINE),
                ("Networks behind this gateway (none: only this machine) [192.168.10.0/24]: ", ""),
                ("Do you want to continue? [Y/n] ", ""), ("Shall the edges reach each other's networks? [y/N] ", ""),
                ("Name of the uplink host0 [host0]: ", ""),
                ("Is host0 paid for by volume? Then it carries only what the others cannot. [y/N] ", ""),
                ("Everything will go through the tunnel. Go on? [Y/n] ", ""),
                ("Is this machine still reached? [y/N] ", "y"),
                ("0% [Working] ", None), ("uplinks: host0, wan1", None), ("", None)):
            with self.subTest(prompt):
                self.assertEqual(answer(prompt), reply)

    def test_the_invitation_reaches_the_question_for_it(self):
        server, edge = mock.Mock(), mock.Mock()
        server.type_at_terminal.return_value = f"{LINE}\r\nGood for one gateway\r\n"
        edge.type_at_terminal.side_effect = lambda _, answer: answer("The invitation: ")
        shown = see_guide.type_in(commands_of(PAGE, "Five commands", MACHINES), {"server": server, "edge": edge})
        self.assertEqual(list(shown), ["server: apt install ./braid_*_amd64.deb",
                                       "server: braidctl invite van --network ::/0", "edge: braidctl join"])
        self.assertEqual(shown["edge: braidctl join"], LINE)

    @contextlib.contextmanager
    def shell(self):
        """A machine that is this one."""
        with tempfile.TemporaryDirectory() as home:
            machine = Fresh.__new__(Fresh)
            machine.name, machine.typed, machine.HOME = "here", [], home
            machine.words = lambda *command: list(command)
            yield machine, pathlib.Path(home)

    def test_a_terminal_shows_asks_and_ends(self):
        with self.shell() as (machine, home):
            (home / "a_1.deb").touch()
            shown = machine.type_at_terminal('stty size; ls ./a_*.deb; printf "Go on? [Y/n] "; read a; echo "<$a>"',
                                             see_guide.answer_with(""), 20)
            self.assertEqual([line for line in lines_of(shown) if line],
                             ["40 100", "./a_1.deb", "Go on? [Y/n] ", "<>"])
            self.assertEqual(len(machine.typed), 1)
            with self.assertRaisesRegex(RuntimeError, "(?s)false: exit 1.*"):
                machine.type_at_terminal("false", see_guide.answer_with(""), 20)
            with self.assertRaisesRegex(RuntimeError, "does not end"):
                machine.type_at_terminal("sleep 30", see_guide.answer_with(""), 0.5)

    def test_what_stands_on_a_terminal(self):
        self.assertEqual(lines_of("0%\r100%\r\n\x1b[1mbold\x1b[0m\r\nSetting\x1b7\x1b[41;0f[### ]\n\x1b8 up\n"),
                         ["100%", "bold", "Setting up", ""])


class Objections(unittest.TestCase):
    def test_wide_lines(self):
        fits, wide = "x" * 100, "y" * 101
        self.assertEqual(see_guide.wide_lines(f"{fits}\r\n{wide}\r\n{LINE}\nUnpacking {wide}\nnote: {LINE}\n"),
                         [wide, f"note: {LINE}"])

    def test_warnings(self):
        journal = ("Nov 30 02:00:01 edge systemd-networkd[20]: lan0: Lost carrier\n"
                   "Nov 30 02:00:02 edge braidd[33]: uplink wan1 is down\n-- No entries --\n")
        explained = [(re.compile(r"^systemd-networkd\["), "")]
        self.assertEqual(see_guide.unexplained(journal, explained), ["braidd[33]: uplink wan1 is down"])
        self.assertEqual(len(see_guide.unexplained(journal, [])), 2)


if __name__ == "__main__":
    unittest.main()
