"""Hosts with another TCP than the kernel's: the programs of tools/stacks, each behind a device of a host of the lab.

    peer --lwip0-- client --lan0-- edge ...      the peer has an address of the client's LAN, which the client forwards

A peer sends and receives; tools/stacks/lwip_peer.cc describes its protocol.
"""

import json
import pathlib
import subprocess
import sys
import threading

from .gateway import binary

PORT = 7100
SOURCES = pathlib.Path(__file__).resolve().parents[1] / "stacks"
BLOCKS = {"lwip": 128, "netstack": 132}  # the stack's /30 network in its host's LAN (last byte)
GIVE_UP = 120  # seconds that a flow may take; a peer itself gives up after 30 s of silence


class Peer:
    """One stack at one host: "kernel", "lwip" or "netstack" at lab.client (of lab.sites[0]) or lab.server."""

    def __init__(self, lab, stack, host):
        self.stack = stack
        site = lab.sites[0]
        if host is site.client:
            gateway, address = site.edge, site.client_address[0]
        else:
            gateway, address = lab.concentrator, lab.server_addresses()[0]
        self.address = address
        if stack != "kernel":
            self.address = self._attach(host, gateway, address)
        words = {"kernel": lambda: [sys.executable, "-u", SOURCES / "kernel_peer.py", PORT],
                 "lwip": lambda: [binary("lwip_peer"), self._device, self.address, PORT],
                 "netstack": lambda: [binary("netstack_peer"), self._device, self.address, PORT]}[stack]()
        self.served_resets = 0
        self._results, self._changed = {}, threading.Condition()
        self._process = lab.start(host, f"{stack}.{host.name.rpartition('-')[2]}", words, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{stack}: did not start\n" + lab.log_tail(self._process.lab_name))
        threading.Thread(target=self._read, daemon=True).start()

    def _attach(self, host, gateway, host_address):
        """Makes the device and the routes; returns the peer's address."""
        block = BLOCKS[self.stack]
        net = host_address.rpartition(".")[0]
        self._device = f"{self.stack}0"
        host.ip("tuntap", "add", "dev", self._device, "mode", "tun")
        host.address(self._device, f"{net}.{block + 1}/30")
        gateway.route(f"{net}.{block}/30", "via", host_address)
        return f"{net}.{block + 2}"

    def _read(self):
        for line in self._process.stdout:
            report = json.loads(line)
            with self._changed:
                if "serve" in report:
                    self.served_resets += 1
                else:
                    self._results[report["seed"]] = report
                self._changed.notify_all()

    def fetch(self, sender, seed, size):
        """Gets `size` bytes from another peer and returns this peer's report. Blocks; may be called from any thread."""
        with self._changed:
            self._process.stdin.write(f"{sender.address} {PORT} {seed} {size}\n")
            self._process.stdin.flush()
            if not self._changed.wait_for(lambda: seed in self._results or self._process.poll() is not None, GIVE_UP):
                return {"seed": seed, "bytes": 0, "seconds": GIVE_UP, "connect": 0, "gap": GIVE_UP, "ok": False,
                        "end": "silent"}
            if seed not in self._results:
                raise RuntimeError(f"{self._process.lab_name} ended with {self._process.returncode}")
            return self._results.pop(seed)
