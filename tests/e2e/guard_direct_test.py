"""`device.when-down: direct`: hosts have a way while no peer is up."""

import signal
import socket
import time
import unittest

from guard_case import GuardCase
from pair_case import V4, V6


class Direct(GuardCase):
    WHEN_DOWN = "direct"

    def reaches(self, address=V4):
        return self.ping(address, count=1, wait=0.2) == 1

    def test_hosts_use_the_hosts_own_way_while_the_hub_is_away(self):
        self.up()
        self.assertEqual(self.seen(), [0, 0])
        self.lab.gateway.stop(signal.SIGKILL)
        try:
            began = time.monotonic()
            self.eventually(lambda: self.reaches(V4) and self.reaches(V6), "there is a way", timeout=6)
            self.assertLess(time.monotonic() - began, 3)
            self.assertIn("leave by the host's own routes, in clear", self.log())
            events = self.gateway.ctl("explain")
            self.assertIn("host's own routes", events)
        finally:
            self.lab.gateway.start()
        self.eventually(lambda: "go through the tunnel" in self.log().split("in clear")[-1], "the way back", timeout=20)
        self.eventually(lambda: self.seen() == [0, 0], "what was on the links has arrived")
        self.assertEqual([self.ping(V4), self.ping(V6)], [5, 5])

    def flow(self, address):
        """A flow of datagrams of a LAN host, to an echo. Returns a function: sends the next one; whether it is
        answered. It must be called again and again, so that the flow does not end."""
        kind = socket.AF_INET6 if ":" in address else socket.AF_INET
        echo = self.lab.server.inside(socket.socket, kind, socket.SOCK_DGRAM)
        client = self.lab.client.inside(socket.socket, kind, socket.SOCK_DGRAM)
        for end in (echo, client):
            self.addCleanup(end.close)
            end.settimeout(0.1)
        echo.bind((address, 7070))

        def answered():
            try:
                client.sendto(b"ask", (address, 7070))
                data, source = echo.recvfrom(100)
                echo.sendto(data, source)
                return client.recv(100) == b"ask"
            except OSError:
                return False

        return answered

    def test_flows_of_datagrams_go_on_by_the_other_way(self):
        """They keep their ports, so the kernel knows them from before the change."""
        flows = [self.flow(V4), self.flow(V6)]

        def go_on():
            return all([flow() for flow in flows])  # each of them, in any case

        self.up()
        self.eventually(go_on, "through the tunnel")
        self.lab.gateway.stop(signal.SIGKILL)
        try:
            self.eventually(lambda: go_on() and "in clear" in self.log(), "past it", timeout=6)
        finally:
            self.lab.gateway.start()
        self.eventually(lambda: go_on() and "go through the tunnel" in self.log().split("in clear")[-1],
                        "through it again", timeout=20)

    def test_before_the_first_session_and_after_the_end(self):
        self.lab.gateway.stop()
        try:
            self.gateway.start()
            self.assertTrue(self.reaches(V4) and self.reaches(V6))
        finally:
            self.lab.gateway.start()
        self.gateway.wait_up(subflows=2)
        self.eventually(lambda: self.seen() == [0, 0], "the tunnel is used")
        self.gateway.stop()
        self.assertEqual(self.host(), self.before)


if __name__ == "__main__":
    unittest.main()
