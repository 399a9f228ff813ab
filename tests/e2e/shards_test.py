"""Two daemons on one machine, each with its own edges: neither is affected by the other's end."""

import signal
import subprocess
import time
import unittest

from lab import Link
from lab.gateway import LISTEN, binary
from lab.measure import Echoes, longest_gap
from lab.shards import Shards
from pair_case import V4, V6, PairCase

NOTICED = 0.5  # seconds without an answer or a byte
TABLES = {"braid-braid0", "braid_nat-braid0", "braid-braid1", "braid_nat-braid1"}


class TwoDaemons(PairCase):
    """Edges 0 and 2 use the first daemon, 1 and 3 the second. Pings are carried as packets, downloads as streams."""

    LINKS = [Link("wifi", 50, 20)]
    SITES = 4
    GATEWAYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.make_gateways(edge={"streams": {"enabled": "on"}},
                              concentrator={"streams": {"enabled": "on"}, "nat": "on", "forwarding": "on"})
        cls.shards = Shards(cls.lab, 2)
        cls.first, cls.second = cls.shards.deal(2)
        config, far = cls.lab.edge_gateway.config, cls.lab.sites[1].lan
        config["device"]["routes"] += far
        config["peers"][0]["prefixes"] += far
        for gateway in (cls.first, cls.second, *(site.gateway for site in cls.lab.sites)):
            gateway.start()

    def setUp(self):
        for gateway in (self.first, self.second):
            if gateway.process is None:
                gateway.start()
        self.ready(self.lab.sites)

    def ready(self, sites):
        for site in sites:
            site.gateway.wait_up()
            self.eventually(lambda: site.gateway.status()["streams"].get("intercepting"), "connections are taken over")

    def tell(self):
        for gateway in (self.first, self.second):
            print(gateway.status())
        super().tell()

    def tables(self):
        """The nf_tables tables at the machine."""
        out = self.lab.concentrator.run("nft", "list", "tables")
        return {line.split()[2] for line in out.splitlines()}

    def test_each_carries_its_own_peers(self):
        path = self.file(6_000_000)
        for download in [self.download(path, address, namespace=site.client, name=f"curl{site.number}{len(address)}")
                         for site in self.lab.sites for address in (V4, V6)]:
            self.verify(download)
        for number, gateway in enumerate((self.first, self.second)):
            names = {site.gateway.name for site in self.shards.sites(number, 2)}
            peers = gateway.status()["peers"]
            self.assertEqual({peer["name"] for peer in peers}, names)
            for peer in peers:
                self.assertGreater(sum(flow["sent_bytes"] for flow in peer["subflows"]), 10_000_000, peer["name"])

    def test_what_they_leave_on_the_machine_is_each_ones_own(self):
        self.assertEqual(self.tables(), TABLES)
        for gateway in (self.first, self.second):
            for path in (gateway.socket, self.lab.directory / f"{gateway.name}.state.initiators"):
                self.assertTrue(path.exists(), path)

    def test_one_is_killed_and_the_others_peers_do_not_notice(self):
        self.attempts(self.kill_the_second)

    def kill_the_second(self):
        echoes = Echoes(self.lab, self.lab.sites[0].client, V4)
        download = self.download(self.file(25_000_000), namespace=self.lab.sites[2].client)
        download.wait_for_size(3_000_000)
        at = download.elapsed()
        self.second.stop(signal.SIGKILL)
        self.assertEqual(self.tables(), {name for name in TABLES if name.endswith("braid0")})
        time.sleep(1)
        self.assertEqual(self.ping(namespace=self.lab.sites[1].client, wait=0.2), 0)
        self.second.start()
        self.ready(self.shards.sites(1, 2))
        self.assertEqual(self.tables(), TABLES)
        for site in self.shards.sites(1, 2):
            self.assertEqual(self.ping(namespace=site.client), 5)
            self.verify(self.download(self.file(1_000_000), namespace=site.client, name=f"curl{site.number}"))
        self.verify(download)
        stalls = {"download": download.longest_stall(begin=at), "ping": longest_gap(echoes.stop())}
        self.in_time(max(stalls.values()) < NOTICED, f"seconds of silence of the first one's peers: {stalls}")

    def test_the_machine_goes_on_forwarding_when_one_ends(self):
        """It was off before, so each daemon has switched it on and off."""
        self.attempts(self.end_the_first)

    def end_the_first(self):
        hub = self.lab.concentrator
        for gateway in (self.first, self.second):
            if gateway.process:  # not in a second attempt
                gateway.stop()
        hub.sysctl(net__ipv4__ip_forward=0)
        try:
            self.setUp()
            echoes = Echoes(self.lab, self.lab.sites[1].client, V4)
            time.sleep(0.5)
            self.first.stop()
            time.sleep(1)
            gap = longest_gap(echoes.stop())
            self.assertEqual(self.ping(namespace=self.lab.sites[1].client), 5)
            self.in_time(gap < NOTICED, f"the second one's peers heard nothing for {gap:.2f} s")
        finally:
            for gateway in (self.first, self.second):
                if gateway.process:
                    gateway.stop()
            hub.sysctl(net__ipv4__ip_forward=1)  # a setting that was on stays on

    def test_edges_of_one_reach_those_of_the_other_through_the_machine(self):
        near, far = self.lab.sites[:2]
        self.assertEqual(self.ping(far.client_address[0], namespace=near.client), 5)

    def test_what_the_first_one_has_the_second_does_not_get(self):
        self.second.stop()
        for change, words in (({"listen": LISTEN}, "another program listens there"),
                              ({"device": {**self.second.config["device"], "name": "braid0"}}, "the name is taken"),
                              ({"control": {"socket": str(self.first.socket)}},
                               "another daemon has the control socket")):
            with self.subTest(change):
                config = self.second.config
                self.second.config = {**config, **change}
                self.second.write_config()
                self.second.config = config
                done = subprocess.run(self.lab.concentrator.words(binary("braidd"), "--config", self.second.path),
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                                      timeout=20)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(words, done.stdout)
        for site in self.shards.sites(0, 2):
            self.assertEqual(self.ping(namespace=site.client), 5)
        self.assertIsNotNone(self.first.status())


if __name__ == "__main__":
    unittest.main()
