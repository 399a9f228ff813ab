"""Which datagram flows are kept in order, tested with unmodified programs: QUIC, VPNs, and a SIP call."""

import json
import shutil
import unittest

from lab.quic import Ngtcp2
from lab.wireguard import PORT as WIREGUARD
from lab.wireguard import WireGuard, keys
from pair_case import V4, PairCase

CLIENT = "192.168.10.2"
OPENVPN, SIP, RTP = 1194, 5060, 6000  # sipp's server receives media on the last port
NEAR, FAR, AROUND = "10.99.0.1", "10.99.0.2", 80  # addresses within a VPN, bytes that WireGuard adds
EXTENSIONS = "keyUsage=digitalSignature\nextendedKeyUsage={}Auth\n"


class Order(PairCase):
    def delivery(self, port):
        """{"up" or "down": {delivery of each flow from or to that port}}; empty sets while there are none."""
        known = {}
        for way, gateway in (("up", self.lab.edge_gateway), ("down", self.lab.gateway)):
            [peer] = json.loads(gateway.ctl("flows", "--json"))["peers"]
            ends = [(flow, [end.rpartition(":")[2] for end in flow["name"].split()[1::2]]) for flow in peer["flows"]]
            known[way] = {flow["delivery"] for flow, ports in ends if str(port) in ports}
        return known

    @unittest.skipUnless(shutil.which("gtlsclient"), "no ngtcp2 here")
    def test_http3_is_kept_in_order(self):
        stack = Ngtcp2(self.lab, V4, 60_000_000)
        self.assertGreater(stack.download(2), 5)
        self.assertEqual(self.delivery(stack.port), {"up": {"ordered"}, "down": {"ordered"}})

    @unittest.skipUnless(shutil.which("wireguard-go"), "no wireguard-go here")
    def test_wireguard_is_kept_in_order(self):
        near, far = keys(), keys()
        mtu = 1420
        for space, own, peer, address, other, endpoint in (
                (self.lab.server, far, near, FAR, NEAR, None), (self.lab.client, near, far, NEAR, FAR, V4)):
            WireGuard(self.lab, space, own[0]).start(shutil.which("wireguard-go"), peer[1], [f"{other}/32"],
                                                     endpoint=endpoint, mtu=mtu, own=f"{address}/32")
        self.assertGreaterEqual(self.ping(FAR, count=10), 9)
        self.assertEqual(self.delivery(WIREGUARD), {"up": {"ordered"}, "down": {"ordered"}})

    @unittest.skipUnless(shutil.which("openvpn"), "no openvpn here")
    def test_openvpn_is_kept_in_order(self):
        root = self.lab.directory / "openvpn"
        root.mkdir()
        server, client = self.lab.server, self.lab.client
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        server.run("openssl", "req", "-x509", *curve, "-keyout", root / "ca.key", "-out", root / "ca.crt", "-subj",
                   "/CN=ca")
        for name in ("server", "client"):
            (root / "extensions").write_text(EXTENSIONS.format(name), encoding="ascii")
            server.run("openssl", "req", *curve, "-keyout", root / f"{name}.key", "-out", root / "request", "-subj",
                       f"/CN={name}")
            server.run("openssl", "x509", "-req", "-in", root / "request", "-CA", root / "ca.crt", "-CAkey",
                       root / "ca.key", "-CAcreateserial", "-out", root / f"{name}.crt", "-extfile",
                       root / "extensions")
        server.run("openvpn", "--genkey", "tls-crypt-v2-server", root / "server.v2")
        server.run("openvpn", "--tls-crypt-v2", root / "server.v2", "--genkey", "tls-crypt-v2-client",
                   root / "client.v2")
        common = ["--dev", "tun", "--disable-dco", "--ca", root / "ca.crt"]
        for space, name, words in (
                (server, "server", ["--server", "10.98.0.0", "255.255.255.0", "--topology", "subnet", "--dh", "none",
                                    "--local", V4, "--lport", OPENVPN]),
                (client, "client", ["--client", "--nobind", "--remote", V4, OPENVPN])):
            self.lab.start(space, f"openvpn.{name}", ["openvpn", *common, "--cert", root / f"{name}.crt", "--key",
                                                      root / f"{name}.key", "--tls-crypt-v2", root / f"{name}.v2",
                                                      *words])
        self.eventually(lambda: self.ping("10.98.0.1", count=1, wait=1), "OpenVPN to carry a ping", timeout=30)
        self.assertEqual(self.delivery(OPENVPN), {"up": {"ordered"}, "down": {"ordered"}})

    @unittest.skipUnless(shutil.which("sipp"), "no sipp here")
    def test_a_sip_call_with_sound_is_not(self):
        self.lab.start(self.lab.server, "sipp.server", ["sipp", "-sn", "uas", "-i", V4, "-mi", V4, "-p", SIP,
                                                        "-rtp_echo", "-nostdin"], cwd=self.lab.directory)
        self.lab.wait_for(lambda: self.lab.server.run("ss", "-Hlun", f"sport = :{SIP}"), "sipp to listen")
        scenario = self.lab.directory / "call.xml"
        built_in = self.lab.client.run("sipp", "-sd", "uac_pcap", check=False)  # its exit code says nothing
        scenario.write_text(built_in.replace("pcap/", "/usr/share/sip-tester/"), encoding="utf-8")
        self.lab.client.run("sipp", "-sf", scenario, "-i", CLIENT, "-mi", CLIENT, "-m", 1, "-nostdin", f"{V4}:{SIP}",
                            timeout=60, cwd=self.lab.directory)  # fails when the call does
        for port in (SIP, RTP):
            self.assertEqual(self.delivery(port), {"up": {"timely"}, "down": {"timely"}}, port)


if __name__ == "__main__":
    unittest.main()
