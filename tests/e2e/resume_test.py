"""Daemons whose machine was suspended, or goes on from a snapshot: a library between them and the kernel moves their
clocks."""

import mmap
import pathlib
import re
import struct
import subprocess
import unittest

from lab import Link
from pair_case import V4, PairCase

# The library adds to two clocks what a file says, which the test writes while the daemon runs.
CLOCKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec* out) {
  static int (*real)(clockid_t, struct timespec*);
  static volatile int64_t* ahead;  // seconds of CLOCK_BOOTTIME, of CLOCK_REALTIME
  if (!real) {
    *(void**)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int file = open(getenv("CLOCKS_AHEAD"), O_RDONLY);
    ahead = mmap(0, 16, PROT_READ, MAP_SHARED, file, 0);
  }
  int result = real(clock, out);
  if (clock == CLOCK_BOOTTIME) out->tv_sec += ahead[0];
  if (clock == CLOCK_REALTIME) out->tv_sec += ahead[1];
  return result;
}
"""
SESSION = re.compile("all sessions end, and new ones begin")


class Resume(PairCase):
    LINKS = [Link("wifi", 100, 5)]
    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.lab.directory
        (folder / "clocks.c").write_text(CLOCKS, encoding="ascii")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "clocks.so", folder / "clocks.c", "-ldl"], check=True,
                       timeout=60)
        cls.lab.make_gateways()
        cls.clocks = {}
        for gateway in cls.lab.gateways():
            path = folder / f"{gateway.name}.ahead"
            path.write_bytes(bytes(16))
            gateway.wrapper = ["env", f"LD_PRELOAD={folder / 'clocks.so'}", f"CLOCKS_AHEAD={path}"]
            with open(path, "r+b") as file:
                cls.clocks[gateway.name] = mmap.mmap(file.fileno(), 16)
                cls.addClassCleanup(cls.clocks[gateway.name].close)
            gateway.start()
        cls.lab.edge_gateway.wait_up()

    def move(self, gateway, boot, wall):
        """Moves the clocks of a daemon by so many seconds."""
        clocks = self.clocks[gateway.name]
        before = struct.unpack("=qq", clocks[:])
        clocks[:] = struct.pack("=qq", before[0] + boot, before[1] + wall)

    def said(self, gateway):
        return len(SESSION.findall(self.lab.log(gateway.name).read_text(errors="replace")))

    def age(self):
        return self.lab.edge_gateway.status()["peers"][0]["age_s"]

    def older_than(self, seconds):
        self.eventually(lambda: self.age() > seconds, "the session gets older")

    def test_who_was_suspended_begins_anew_and_tells_the_other(self):
        for gateway in self.lab.gateways():
            with self.subTest(gateway.name):
                self.lab.edge_gateway.wait_up()
                self.older_than(4)
                before = self.said(gateway)
                self.move(gateway, 3600, 3600)
                self.eventually(lambda gateway=gateway: self.said(gateway) == before + 1, "it is noticed", 15)
                self.eventually(lambda: self.lab.edge_gateway.up() and self.age() < 3, "a new session", 5)
                self.assertGreaterEqual(self.ping(V4), 4)
                self.assertIn("this machine was suspended for 3600 s", self.lab.log(gateway.name).read_text())

    def test_a_clock_that_is_set_back_or_by_little_ends_nothing(self):
        self.lab.edge_gateway.wait_up()
        self.older_than(1)
        before = [self.said(gateway) for gateway in self.lab.gateways()]
        age = self.age()
        for wall in (-3600, 5, 5, -5):
            for gateway in self.lab.gateways():
                self.move(gateway, 0, wall)
            self.assertGreaterEqual(self.ping(V4), 4)
        self.assertEqual([self.said(gateway) for gateway in self.lab.gateways()], before)
        self.assertGreater(self.age(), age)

    def test_a_clock_that_is_set_forward_by_far_counts_in_a_virtual_machine(self):
        virtual = " hypervisor " in pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii").replace("\n", " ")
        gateway = self.lab.edge_gateway
        gateway.wait_up()
        before = self.said(gateway)
        self.move(gateway, 0, 3600)
        if virtual:
            self.eventually(lambda: self.said(gateway) == before + 1, "it is noticed", 15)
        self.eventually(gateway.up, "a session", 5)
        self.assertGreaterEqual(self.ping(V4), 4)
        self.assertEqual(self.said(gateway), before + virtual)


if __name__ == "__main__":
    unittest.main()
