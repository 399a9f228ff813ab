"""The ready configurations of conf/, filled in as their comments say, carry traffic."""

import pathlib
import re
import unittest

from lab import Link, binary, run
from lab.gateway import Gateway, make_identities
from lab.site import PUBLIC, SERVER_LAN
from pair_case import V4, V6, PairCase

CONF = pathlib.Path(__file__).resolve().parents[2] / "conf"


def filled(name, lab, gateway, **values):
    """The text of an example with its placeholders replaced, and a control socket in the lab's directory."""
    text = (CONF / name).read_text(encoding="utf-8")
    for placeholder, value in values.items():
        text = text.replace(f"CHANGE_ME_{placeholder}", value)
    text = re.sub(r"^  (key|certificate): \w+\.(key|crt)", rf"  \1: {gateway}.\2", text, flags=re.MULTILINE)
    return text + f"\ncontrol:\n  socket: {lab.directory}/{gateway}.sock\n"


class Examples(PairCase):
    GATEWAYS = False

    @classmethod
    def start(cls, texts):
        cls.lab.gateway, cls.lab.edge_gateway = gateways = [
            Gateway(cls.lab, "concentrator", cls.lab.concentrator, None),
            Gateway(cls.lab, "edge", cls.lab.edge, None)]
        for gateway, text in zip(gateways, texts):
            gateway.path.write_text(text, encoding="utf-8")
            run(binary("braidctl"), "check", gateway.path)
            gateway.start()


class EdgeAndConcentrator(Examples):
    def test_they_carry_a_download(self):
        pins = make_identities(self.lab.directory, ["concentrator", "edge"])
        site = self.lab.sites[0]
        self.start([filled("concentrator.yaml", self.lab, "concentrator", PEER_PIN=pins["edge"],
                           EDGE_NETWORK=", ".join(site.lan)),
                    filled("edge.yaml", self.lab, "edge", PEER_PIN=pins["concentrator"], PEER_ADDRESS=PUBLIC[0],
                           FIRST_INTERFACE="wifi0", SECOND_INTERFACE="lte0", REMOTE_NETWORK=", ".join(SERVER_LAN))])
        self.lab.edge_gateway.wait_up(subflows=2)
        for address in (V4, V6):
            self.verify(self.download(self.file(3_000_000), address))


class Racks(Examples):
    LINKS = [Link("fabric", 200, 2)]

    def test_they_carry_a_download(self):
        pins = make_identities(self.lab.directory, ["concentrator", "edge"])
        site = self.lab.sites[0]
        (near, far), _ = site.link_addresses(0)
        self.start([filled("rack.yaml", self.lab, "concentrator", PEER_PIN=pins["edge"], PEER_ADDRESS=near,
                           OWN_TUNNEL_ADDRESS="10.99.0.1/30", FABRIC_INTERFACE="fabric0",
                           REMOTE_NETWORK=", ".join(site.lan)),
                    filled("rack.yaml", self.lab, "edge", PEER_PIN=pins["concentrator"], PEER_ADDRESS=far,
                           OWN_TUNNEL_ADDRESS="10.99.0.2/30", FABRIC_INTERFACE="fabric0",
                           REMOTE_NETWORK=", ".join(SERVER_LAN))])
        self.lab.edge_gateway.wait_up(subflows=2)
        for address in (V4, V6):
            self.verify(self.download(self.file(10_000_000), address))


if __name__ == "__main__":
    unittest.main()
