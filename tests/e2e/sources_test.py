"""Of whose connections streams are made, and what they reach at the far side: containers behind the edge's NAT,
networks that the concentrator's host keeps apart, hosts that policy routing sends elsewhere."""

import unittest

from lab import Link
from lab.netns import join
from lab.lab import tune
from pair_case import V4, V6, PairCase
from streams_test import connect, listen, receive, rest

STREAMS = {"streams": {"enabled": "on", "match": [{"ports": "8080-8090"}]}}
LAN = ["192.168.10.0/24", "fd00:0:0:10::/64"]
APART = (("192.168.101.1", "192.168.101.2", "/24"), ("fd00:0:0:101::1", "fd00:0:0:101::2", "/64"))
CONTAINER = ("172.17.0.1", "172.17.0.2")


class Sources(PairCase):
    LINKS = [Link("wifi", 50, 4), Link("lte", 30, 4)]
    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lab = cls.lab
        cls.apart, cls.container = lab.namespace("apart"), lab.namespace("container")
        for space in (cls.apart, cls.container):
            tune(space)
        join(lab.concentrator, "lan1", cls.apart, "lan0")
        join(lab.edge, "docker0", cls.container, "eth0")
        networks = []
        for near, far, length in APART:
            lab.concentrator.address("lan1", near + length)
            cls.apart.address("lan0", far + length)
            cls.apart.route("::/0" if ":" in near else "0.0.0.0/0", "via", near)
            networks.append(near[:-1] + ("/64" if ":" in near else "0/24"))
        lab.edge.address("docker0", CONTAINER[0] + "/16")
        cls.container.address("eth0", CONTAINER[1] + "/16")
        cls.container.route("0.0.0.0/0", "via", CONTAINER[0])
        lab.make_gateways(STREAMS, STREAMS)
        edge = lab.edge_gateway.config
        edge["device"]["networks"] = LAN
        edge["device"]["routes"] += networks
        edge["peers"][0]["prefixes"] += networks
        for gateway in lab.gateways():
            gateway.start()
        lab.edge_gateway.wait_up(subflows=2)
        for gateway in lab.gateways():
            lab.wait_for(lambda gateway=gateway: gateway.status()["streams"].get("intercepting"),
                         f"{gateway.name} to take connections over")

    def accepted(self):
        return self.lab.edge_gateway.status()["streams"]["accepted"]

    def crosses(self, namespace, server, address, port):
        """How a connection went ("whole", "reset", "nothing"), and how many streams it made."""
        before = self.accepted()
        with listen(server, address, port) as listener:
            listener.settimeout(2)
            try:
                with connect(namespace, address, port, timeout=2) as client:
                    client.sendall(b"question")
                    try:
                        end, _ = listener.accept()
                    except TimeoutError:
                        return rest(client)[0], self.accepted() - before
                    with end:
                        end.sendall(receive(end, 8))
                    self.assertEqual(receive(client, 8), b"question")
                    return "whole", self.accepted() - before
            except ConnectionError:
                return "reset", self.accepted() - before
            except OSError:
                return "nothing", self.accepted() - before

    def reload(self, gateway):
        log = self.lab.log(gateway.name)
        count = log.read_text(errors="replace").count("configuration read again")
        gateway.reload()
        self.eventually(lambda: log.read_text(errors="replace").count("configuration read again") > count, "the reload")

    def test_containers(self):
        """Docker's masquerading of a bridge. The first connection to each server arrives, as packets; those of hosts of
        the LAN are streams."""
        rule = ("POSTROUTING", "-s", "172.17.0.0/16", "!", "-o", "docker0", "-j", "MASQUERADE")
        self.lab.edge.run("iptables", "-t", "nat", "-A", *rule)
        self.addCleanup(self.lab.edge.run, "iptables", "-t", "nat", "-D", *rule)
        for number in range(50, 60):
            address = f"192.168.100.{number}"
            self.lab.server.address("lan0", address + "/24")
            self.addCleanup(self.lab.server.ip, "address", "del", address + "/24", "dev", "lan0")
            self.assertEqual(self.crosses(self.container, self.lab.server, address, 8080), ("whole", 0), address)
        self.assertEqual(self.crosses(self.lab.client, self.lab.server, V4, 8080), ("whole", 1))

    def test_networks_apart_at_the_far_side(self):
        """The host's forward chain keeps a network from the tunnel for packets, `streams.accept` for streams."""
        self.lab.concentrator.run("nft", "add table inet apart; add chain inet apart f { type filter hook forward "
                                  "priority 0; }; add rule inet apart f iifname braid0 oifname lan1 drop")
        self.addCleanup(self.lab.concentrator.run, "nft", "delete table inet apart")
        hub = self.lab.gateway
        hub.config["streams"] = STREAMS["streams"] | {
            "accept": [{"network": "192.168.100.0/24"}, {"network": "fd00:0:0:100::/64"}]}
        self.addCleanup(self.reload, hub)
        self.addCleanup(hub.config.update, STREAMS)
        self.reload(hub)
        for (_, apart, _), address in zip(APART, (V4, V6)):
            with self.subTest(address=apart):
                self.assertEqual(self.crosses(self.lab.client, self.apart, apart, 9000), ("nothing", 0), "as packets")
                self.assertEqual(self.crosses(self.lab.client, self.apart, apart, 8080), ("reset", 1), "as a stream")
                self.assertEqual(self.crosses(self.lab.client, self.lab.server, address, 8081), ("whole", 1))

    def test_what_a_mark_sends_elsewhere_over_ipv6(self):
        edge, (_, far) = self.lab.edge, self.lab.sites[0].link_addresses(0)[1]
        edge.run("nft", "add table ip6 own; add chain ip6 own pre { type filter hook prerouting priority mangle; }; "
                 f"add rule ip6 own pre iifname lan0 ip6 daddr {V6} tcp dport 8082 meta mark set 0x5; "
                 "add chain ip6 own out { type filter hook postrouting priority 0; }; "
                 "add rule ip6 own out oifname wifi0 tcp dport 8082 counter")
        self.addCleanup(edge.run, "nft", "delete table ip6 own")
        edge.ip("-6", "rule", "add", "priority", "900", "fwmark", "0x5", "lookup", "55")
        self.addCleanup(edge.ip, "-6", "rule", "del", "priority", "900")
        edge.ip("-6", "route", "add", V6, "via", far, "dev", self.lab.sites[0].device(0), "table", "55")
        self.addCleanup(edge.ip, "-6", "route", "flush", "table", "55")
        self.assertEqual(self.crosses(self.lab.client, self.lab.server, V6, 8082), ("whole", 0))
        self.assertGreater(edge.nft_packets("ip6", "own"), 2)
        self.assertEqual(self.crosses(self.lab.client, self.lab.server, V6, 8083), ("whole", 1))


if __name__ == "__main__":
    unittest.main()
