"""The ack shim between the kernel and lwIP's TCP, which has neither SACK nor timestamps: a lossy hop to the receiver.
"""

import threading
import unittest

from lab import Link
from lab.stacks import Peer
from pair_case import PairCase

LOSS = 0.03  # of the hop to the receiver
FLOWS, SIZE, LARGE = 60, 14600, 200_000  # flows one after the other, and one large one
STALL = 5  # s


class Lwip(PairCase):
    LINKS = [Link("dsl", 100, 8)]
    LANS = dict.fromkeys(("client", "server"), Link("lan", 1000, 2))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.peers = {(stack, host): Peer(cls.lab, stack, getattr(cls.lab, host))
                     for stack in ("kernel", "lwip") for host in ("client", "server")}

    def check(self, source, target, lossy):
        """Both stacks send at the same time, each to the other stack."""
        self.lab.links.set(lossy, direction="ba", loss=LOSS)
        self.addCleanup(self.lab.links.set, lossy, direction="ba", loss=0)
        flows = []

        def run(sender, receiver):
            for i, size in enumerate([SIZE] * FLOWS + [LARGE]):
                flows.append(self.peers[receiver, target].fetch(self.peers[sender, source],
                                                                f"{self.id()}.{sender}.{i}", size))

        threads = [threading.Thread(target=run, args=pair) for pair in (("kernel", "lwip"), ("lwip", "kernel"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        bad = [flow for flow in flows if not flow["ok"] or flow["end"] != "complete" or flow["gap"] > STALL]
        self.assertEqual((len(flows), bad), (2 * (FLOWS + 1), []))
        self.assertEqual(sum(peer.served_resets for peer in self.peers.values()), 0)
        gateway = self.lab.edge_gateway if source == "server" else self.lab.gateway
        shim = {entry["name"]: entry for entry in gateway.status()["ack_shim"]["actuators"]}
        print(f"{self.id()}: {sum(flow['seconds'] for flow in flows):.1f} s", shim)
        self.assertGreater(shim["far_replay"]["useful"], 0)

    def test_download(self):
        self.check("server", "client", "lan.client")

    def test_upload(self):
        self.check("client", "server", "lan.server")


if __name__ == "__main__":
    unittest.main()
