"""A LAN behind a bridge of the edge, beside br_netfilter as Docker switches it on: the web of the LAN works, as packets
while the kernel would lose what becomes a stream."""

import time
import unittest

from lab import Wire
from pair_case import V4, V6, PairCase
from unit_sandbox import sandboxed

LAN = ["192.168.10.0/24", "fd00:0:0:10::/64"]
LOOK = 3  # seconds until the daemon has seen a change of the setting; it looks once a second
STREAMS = {"streams": {"enabled": "on"}}


class Bridges(PairCase):
    LINKS = [Wire("dsl")]
    EDGE = {**STREAMS, "device": {"networks": LAN}}
    CONCENTRATOR = STREAMS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        edge = cls.lab.edge
        edge.ip("link", "add", "br-lan", "type", "bridge")
        edge.ip("address", "flush", "dev", "lan0", "scope", "global")
        edge.ip("link", "set", "lan0", "master", "br-lan")
        edge.address("br-lan", "192.168.10.1/24", "fd00:0:0:10::1/64")
        cls.lab.edge_gateway.wait_up()

    def call(self, v4, v6):
        for name, on in (("iptables", v4), ("ip6tables", v6)):
            self.lab.edge.run("sysctl", "-qw", f"net.bridge.bridge-nf-call-{name}={on}")

    def streams(self, address):
        """How many streams a page from that address makes. The page must be whole."""
        gateway = self.lab.edge_gateway
        before = gateway.status()["streams"]["accepted"]
        self.verify(self.download(self.file(100_000), address), 8)
        return gateway.status()["streams"]["accepted"] - before

    def test_connections_are_carried_as_packets_while_br_netfilter_would_lose_them(self):
        for settings in ((1, 1), (0, 0), (1, 0), (0, 1)):
            with self.subTest(settings=settings):
                self.call(*settings)
                time.sleep(LOOK)
                self.assertEqual([self.streams(address) for address in (V4, V6)], [1 - on for on in settings])

    def test_the_module_is_loaded_while_the_service_runs(self):
        """A test cannot load a module: another folder stands for what the host shows of it, where it appears later."""
        shown = self.lab.directory / "shown"
        for folder in ("net/ipv4/conf", "net/ipv6/conf", "module"):
            (shown / folder).mkdir(parents=True)

        def show(on):
            self.call(on, on)
            (shown / "module/br_netfilter").mkdir(exist_ok=True)
            (shown / "net/bridge").mkdir(exist_ok=True)
            for name in ("iptables", "ip6tables"):
                (shown / f"net/bridge/bridge-nf-call-{name}").write_text(f"{on}\n", encoding="ascii")

        self.call(0, 0)
        gateway = self.lab.edge_gateway
        gateway.stop()
        gateway.wrapper = sandboxed(before=f"""
            for family in ipv4 ipv6; do mount --bind /proc/sys/net/$family/conf {shown}/net/$family/conf; done
            mount --rbind {shown}/net /proc/sys/net
            mount --bind {shown}/module /sys/module""")
        try:
            gateway.start()
            gateway.wait_up()
            self.assertEqual([self.streams(address) for address in (V4, V6)], [1, 1])
            for on in (1, 0, 1, 0):
                with self.subTest(on=on):
                    show(on)
                    time.sleep(LOOK)
                    self.assertEqual([self.streams(address) for address in (V4, V6)], [1 - on] * 2)
        finally:
            gateway.stop()
            gateway.wrapper = []
            gateway.start()
            gateway.wait_up()


if __name__ == "__main__":
    unittest.main()
