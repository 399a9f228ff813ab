"""A `braidctl join` that does not come to its end, or cuts its user off, is taken back."""

import contextlib
import os
import pty
import signal
import subprocess
import time
import unittest

from join_case import JoinCase
from lab import binary
from pair_case import unbroken


class Undone(JoinCase):
    def at_a_terminal(self, line, *words, answer, then=None, agreed=b"y\n"):
        """(exit status, output) of a join at a terminal of its own, at which `answer` is given to the question whether
        the machine is still reached, and `agreed` to that before, whether everything shall go through the tunnel. b"":
        none. `then`: is called with the terminal after that."""
        ours, theirs = pty.openpty()
        joining = subprocess.Popen(self.edge.words("setsid", "--ctty", "--wait", binary("braidctl"), "join", line,
                                                   "--keep-router", "--network", "none", "--metered", "none",
                                                   "--uplink", "wifi0", "--uplink", "lte0", *words),
                                   stdin=theirs, stdout=theirs, stderr=theirs,
                                   env={**os.environ, "PATH": self.edge.path}, start_new_session=True)
        os.close(theirs)
        told = b""
        try:
            with contextlib.suppress(OSError):  # that the other side is closed
                while part := os.read(ours, 4096):
                    told += part
                    if agreed and b"Go on?" in told:
                        os.write(ours, agreed)
                        agreed = b""
                    if answer and b"still reached?" in told:
                        os.write(ours, answer)
                        answer = b""
                        if then:
                            then(ours)
            return joining.wait(60), told.decode()
        finally:
            joining.kill()
            os.close(ours)

    def test_what_cuts_its_user_off_is_taken_back(self):
        whole, parts = ("0.0.0.0/0", "::/0"), ("0.0.0.0/1", "128.0.0.0/1", "2000::/3")
        for name, networks, answer, words in (("van", whole, b"", ("--confirm-within", "1s")),
                                              ("boat", whole, b"n\n", ()), ("tram", parts, b"n\n", ())):
            line = self.invite(name, *(word for network in networks for word in ("--network", network)))
            status, told = self.at_a_terminal(line, *words, answer=answer)
            self.assertEqual(status, 1, told)
            self.assertIn("first packet went through", told)
            self.assertIn("nothing of this attempt is left here", told)
            self.assertEqual(self.edge.files("/etc/braid"), [])
            self.assertNotIn("braid", self.edge.call("nft", "list", "tables").stdout)
            self.assertNotIn("braid0", self.edge.call("ip", "-6", "rule", "list").stdout +
                             self.edge.call("ip", "route", "get", "198.51.100.1").stdout)
        line = self.invite("bus", "--network", "0.0.0.0/0", "--network", "::/0")
        status, told = self.at_a_terminal(line, answer=b"y\n")
        self.assertEqual(status, 0, told)
        self.assertIn("dev braid0", self.lab.edge.ip("route", "get", "198.51.100.1"))

    def test_names_and_meters_of_uplinks_are_asked(self):
        ours, theirs = pty.openpty()
        joining = subprocess.Popen(self.edge.words("setsid", "--ctty", "--wait", binary("braidctl"), "join",
                                                   self.invite("van"), "--network", "none", "--dry-run"),
                                   stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        answers = [("uplink wifi0 [wifi0]: ", "home"), ("uplink lte0 [lte0]: ", "home"),
                   ("both be called home; name one anew", ""), ("Is home paid", ""), ("Is lte0 paid", "y"),
                   ("a month, such as 50GB [no cap]: ", "50"), ("'50' is no cap", "50GB")]
        told, new = "", ""
        try:
            with contextlib.suppress(OSError):  # that the other side is closed
                while part := os.read(ours, 4096):
                    told, new = told + part.decode(), new + part.decode()
                    if answers and answers[0][0] in new and new.endswith((": ", "] ")):
                        os.write(ours, f"{answers.pop(0)[1]}\n".encode())
                        new = ""
            self.assertEqual((joining.wait(20), answers), (0, []), told)
        finally:
            joining.kill()
            os.close(ours)
        self.assertIn("# uplinks: home (wifi0), lte0 (metered, 50GB a month)", told)
        self.assertIn('name: "home"', told)
        self.assertIn("metered: {cap: 50GB}", told)

    def test_who_does_not_want_everything_in_the_tunnel_says_so_before(self):
        line = self.invite("van", "--network", "0.0.0.0/0", "--network", "::/0")
        status, told = self.at_a_terminal(line, answer=b"", agreed=b"n\n")
        self.assertEqual(status, 1, told)
        self.assertIn("note: once this gateway runs, all IPv4 and IPv6 traffic", unbroken(told))
        notes, _, _ = told.partition("not wanted: ")
        self.assertEqual([line for line in notes.splitlines() if len(line) > 100 and "braid-invitation" not in line],
                         [])
        self.assertIn("not wanted: nothing of this attempt is left here", told)
        self.assertNotIn("first packet", told)
        self.assertEqual(self.edge.files("/etc/braid"), [])

    def test_who_came_in_by_an_uplink_is_warned(self):
        line = self.invite("van", "--network", "0.0.0.0/0", "--network", "::/0")
        ssh = ["env", "SSH_CONNECTION=198.51.100.7 50000 10.0.0.1 22", "sh", "-c",
               'env -u SSH_CONNECTION "$0" "$@"; exit $?', binary("braidctl")]  # as behind sudo
        done = self.edge.call(*ssh, "join", "--yes", "--network", "none", given=line + "\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: you are logged in from 198.51.100.7 by wifi0's address 10.0.0.1", unbroken(done.stdout))
        self.assertIn("Nobody will ask whether you still reach this machine", unbroken(done.stdout))

    def test_a_second_control_c_does_not_end_what_takes_it_back(self):
        stopping = self.lab.directory / "edge.stopping"
        self.edge.starts(True, pause=f"touch {stopping}; sleep 1")
        self.addCleanup(self.edge.starts, True)

        def again(terminal):
            self.lab.wait_for(stopping.exists, "the service manager to be stopping it")
            os.write(terminal, b"\x03")

        status, told = self.at_a_terminal(self.invite("van", "--network", "0.0.0.0/0"), answer=b"\x03", then=again)
        self.assertEqual(status, 1, told)
        self.assertIn("interrupted", told)
        self.assertEqual(self.edge.files("/etc/braid"), [])
        self.assertNotIn("edge.sock", self.edge.files("/run/braid"), "the daemon has ended")
        self.assertNotIn("braid", self.edge.call("nft", "list", "tables").stdout)

    def rules(self):
        return [self.edge.call("ip", family, "rule", "list").stdout for family in ("-4", "-6")]

    def test_a_gateway_that_does_not_start_leaves_no_guard(self):
        before = self.rules()
        guard = f"{binary('braidctl')} guard apply /etc/braid/$name.yaml >>{{directory}}/logs/{{machine}}.log 2>&1"
        self.edge.starts(True, guard=guard, braidd="false")
        self.addCleanup(self.edge.starts, True)
        time.sleep(1)  # journalctl counts seconds, and the daemon of another test may have failed just now
        line = self.invite("van", "--network", "0.0.0.0/0")
        done = self.edge.call(binary("braidctl"), "join", "--yes", "--network", "none", given=line + "\n")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("braid@edge does not start; 'journalctl -u braid@edge' says why", done.stderr)
        self.assertIn("Nothing of this attempt is left", done.stderr)
        self.assertIn("or not at all", self.lab.log("edge").read_text(), "there was a guard")
        self.assertEqual(self.edge.files("/etc/braid"), [])
        self.assertNotIn("braid", self.edge.call("nft", "list", "tables").stdout)
        self.assertEqual(self.rules(), before)

    def test_a_failure_shows_the_daemons_own_line(self):
        self.edge.starts(True, braidd="unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/net; "
                                      f"exec {binary('braidd')} \"$@\"' -")
        self.addCleanup(self.edge.starts, True)
        line = self.invite("van")
        done = self.edge.call(binary("braidctl"), "join", "--yes", "--network", "none", given=line + "\n")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("braid@edge does not start: cannot open /dev/net/tun: No such file or directory; load the "
                      "kernel module (modprobe tun)", done.stderr)
        self.assertIn("Nothing of this attempt is left", done.stderr)
        self.assertNotIn("journalctl", done.stderr)
        self.assertEqual(self.edge.files("/etc/braid"), [])

    def test_who_keeps_his_own_ways_is_not_asked(self):
        status, told = self.at_a_terminal(self.invite("van"), answer=b"")
        self.assertEqual(status, 0, told)
        self.assertNotIn("still reached", told)

    def ended_in_the_middle(self, line, how):
        """A join in which the daemon does not start, ended by that signal while it waits for the first packet."""
        self.edge.starts(False)
        joining = subprocess.Popen(self.edge.words(binary("braidctl"), "join", "--yes"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "PATH": self.edge.path}, start_new_session=True)
        try:
            joining.stdin.write(line + "\n")
            joining.stdin.close()
            while "joined as" not in (said := joining.stdout.readline()):
                self.assertNotEqual(said, "", joining.stderr)
            time.sleep(0.3)
            joining.send_signal(how)
            return joining.wait(20), joining.stderr.read()
        finally:
            joining.kill()
            joining.stdout.close()
            joining.stderr.close()
            self.edge.starts(True)

    def test_who_interrupts_it_leaves_nothing(self):
        line = self.invite("van")
        status, told = self.ended_in_the_middle(line, signal.SIGINT)
        self.assertEqual(status, 1)
        self.assertIn("interrupted", told)
        self.assertEqual(self.edge.files("/etc/braid"), [])
        self.assertIn("first packet went through", self.join(line))

    def test_what_was_killed_in_the_middle_is_done_by_the_next_attempt(self):
        line = self.invite("van")
        status, _ = self.ended_in_the_middle(line, signal.SIGKILL)
        self.assertEqual(status, -signal.SIGKILL)
        self.assertIn("edge.yaml", self.edge.files("/etc/braid"))
        self.hub.call("systemctl", "disable", "--now", "braid@concentrator")
        self.hub.call("systemctl", "enable", "--now", "braid@concentrator")
        self.assertIn("first packet went through", self.join(line))
        self.assertNotIn("NOT FINISHED", self.edge.call("cat", "/etc/braid/edge.yaml").stdout)


if __name__ == "__main__":
    unittest.main()
