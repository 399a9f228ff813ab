"""System faults under a running pair: refused calls, refused starts, stopped daemons. scripts/target shield.7 tests all
of them."""

import unittest

from diagnosed import DiagnosedCase
from lab import Lab, Link
from lab.faults import FaultLab, suspend


class Faults(DiagnosedCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab([Link("wifi", 50, 20), Link("lte", 30, 60)])
        cls.lab.__enter__()
        cls.addClassCleanup(cls.lab.close)
        cls.faults = FaultLab(cls.lab)
        cls.faults.__enter__()
        cls.addClassCleanup(cls.faults.__exit__)

    def setUp(self):
        for gateway in self.lab.gateways():
            if gateway.process is None or gateway.process.poll() is not None:
                gateway.start()
        self.lab.edge_gateway.wait_up(subflows=2)
        self.faults.problems.clear()
        self.faults.refused.clear()

    def tell(self):
        print(self.lab.told())

    def test_refused_calls_of_a_running_daemon(self):
        for call, error in (("sendmmsg", "ENOBUFS"), ("recvmmsg", "ENOMEM"), ("epoll_ctl", "ENOMEM"),
                            ("socket", "EMFILE"), ("sendto", "ENOBUFS"), ("accept4", "EMFILE"),
                            ("openat", "EMFILE"), ("timerfd_settime", "EPERM")):
            with self.subTest(call=call, error=error):
                self.faults.refuse(self.lab.edge_gateway, call, error)
                self.assertEqual(self.faults.problems, [])
        self.assertGreaterEqual(self.faults.refused.total(), 7, self.faults.untested())

    def test_refused_calls_of_a_start(self):
        self.lab.edge_gateway.stop()
        found = self.faults.start_calls()
        for call, error in (("socket", "EMFILE"), ("ioctl", "EBUSY"), ("sendto", "ENOBUFS"), ("sendto", "EPERM"),
                            ("timerfd_create", "EMFILE"), ("bind", "ENOMEM")):
            before, count = found[call]
            for number in {1, (count + 1) // 2, count}:
                with self.subTest(call=call, error=error, number=number):
                    self.faults.refuse_at_start(call, error, before + number)
                    self.assertEqual(self.faults.problems, [])
        self.assertGreaterEqual(self.faults.refused.total(), 12, self.faults.untested())

    def test_a_daemon_stands_still_for_five_seconds(self):
        for gateway in self.lab.gateways():
            with self.subTest(gateway.name):
                pid = gateway.process.pid
                running = self.faults.download()
                running.wait_for_size(500_000)
                suspend(gateway.process, 5)
                running.finish(60)
                self.faults.check(running, gateway.name)
                self.assertEqual(self.faults.problems, [])
                self.lab.edge_gateway.wait_up(subflows=2)
                self.assertEqual(gateway.process.pid, pid)
                self.assertIsNone(gateway.process.poll())

    def test_the_end_leaves_the_host_as_it_was(self):
        gateway = self.lab.edge_gateway
        self.assertEqual(gateway.stop(), 0)
        self.assertEqual(self.faults.left(self.lab.edge), [])


if __name__ == "__main__":
    unittest.main()
