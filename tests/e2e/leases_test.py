"""Programs that give an uplink its addresses and routes, beside a gateway that takes everything into its tunnel and
guards the host: dhclient, dhcpcd, radvd, systemd-networkd."""

import re
import signal
import time
import unittest

from lab import Wire
from lab.gateway import PORT
from lab.site import PUBLIC
from pair_case import V4, V6
from routes_test import ANYWHERE, EverythingCase

DEVICE = "wifi0"
LEASED = "10.0.0.5"  # how the addresses of leases begin
# dhclient's script, without what it does to files and services of this machine
DHCLIENT = """
hooks=/etc/dhcp/dhclient-exit-hooks.d
rules=$(cat $hooks/rfc3442-classless-routes)
mount -t tmpfs none $hooks
echo "$rules" > $hooks/rfc3442-classless-routes
mount -t tmpfs none /etc/dhcp/dhclient-enter-hooks.d
echo 'make_resolv_conf() { :; }' > /etc/dhcp/dhclient-enter-hooks.d/none
exec "$@"
"""
DHCPCD = "for folder in /run /var/lib/dhcpcd; do mount -t tmpfs none $folder; done; exec \"$@\""
ROUTER = """
interface %s {
  AdvSendAdvert on;
  MinRtrAdvInterval 3; MaxRtrAdvInterval 4;
  AdvDefaultLifetime 1800;
  prefix 2001:db8:51::/64 { AdvOnLink on; AdvAutonomous on; };
  route 2001:db8:77::/48 { AdvRoutePreference high; };
};
"""

# It waits for no udev where /sys is read-only, as in a container.
NETWORKD = """
mount -o remount,ro /sys
for folder in /run /etc/systemd/network; do mount -t tmpfs none $folder; done
mkdir -p /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp
chown -R systemd-network: /run/systemd/netif
cat > /etc/systemd/network/modem.network
exec env SYSTEMD_LOG_TARGET=console "$@"
"""
MODEM = """
[Match]
Name=lte0
[Network]
DHCP=no
IPv6AcceptRA=no
Address=%s/24
Address=%s/64
Gateway=10.0.1.2
Gateway=fd01:0:0:1::2
"""


class Leases(EverythingCase):
    """wifi gets its IPv4 by DHCP, and its IPv6 by router advertisement; lte is as the lab makes it."""

    LINKS = [Wire("wifi"), Wire("lte")]  # DHCP needs Ethernet

    def setUp(self):
        super().setUp()
        self.gateway.config["peers"][0]["endpoints"] = [f"{PUBLIC[0]}:{PORT}", f"[{PUBLIC[1]}]:{PORT}"]
        self.gateway.config["device"].pop("when-down", None)
        self.addCleanup(self.lab.restore_uplink, 0)
        self.addCleanup(self.edge.ip, "address", "flush", "dev", DEVICE)

    def tearDown(self):
        super().tearDown()
        self.gateway.config["device"].pop("when-down", None)
        self.edge.run(self.lab.binary("braidctl"), "release", self.gateway.path)

    def serve(self, *options):
        """A DHCP server at the far end of wifi."""
        self.edge.ip("-4", "address", "flush", "dev", DEVICE)
        server = self.lab.start(self.lab.concentrator, "dhcp", [
            "dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--port=0", "--user=root", "--log-dhcp",
            "--log-facility=-",
            f"--interface={self.lab.sites[0].far_device(0)}", "--bind-interfaces", "--dhcp-authoritative",
            f"--dhcp-leasefile={self.lab.directory}/leases", "--dhcp-range=10.0.0.50,10.0.0.59,255.255.255.0,2m",
            "--dhcp-option=option:router,10.0.0.2", *options])
        self.addCleanup(self.lab.stop, server)

    def leases(self):
        log = self.lab.log("dhcp")
        return len(re.findall(r"DHCPACK\(", log.read_text(errors="replace"))) if log.exists() else 0

    def client(self, mounts, *words):
        self.program = self.lab.start(self.edge, words[0], ["unshare", "--mount", "sh", "-ec", mounts, "sh", *words])
        self.addCleanup(self.lab.stop, self.program, signal.SIGKILL)
        self.eventually(lambda: LEASED in self.edge.ip("-4", "address", "show", "dev", DEVICE), "a lease")

    def dhclient(self):
        place = self.lab.directory
        (place / "dhclient.conf").write_text("supersede dhcp-renewal-time 2;\n", encoding="ascii")
        self.client(DHCLIENT, "dhclient", "-d", "-cf", place / "dhclient.conf", "-lf", place / "dhclient.leases",
                    "-pf", place / "dhclient.pid", DEVICE)

    def dhcpcd(self):
        config = self.lab.directory / "dhcpcd.conf"
        config.write_text("ipv4only\nnoarp\nnoipv4ll\nnohook resolv.conf, hostname, timesyncd.conf\n"
                          "option classless_static_routes, routers\n", encoding="ascii")
        self.client(DHCPCD, "dhcpcd", "--nobackground", "--config", config, DEVICE)

    def advertise(self):
        """Router advertisements are the only IPv6 of wifi, and take the host's default of lte from it."""
        self.edge.sysctl(**{f"net__ipv6__conf__{DEVICE}__{name}": value for name, value in (
            ("accept_ra", 2), ("accept_ra_rt_info_max_plen", 64))})
        self.addCleanup(self.edge.sysctl, **{f"net__ipv6__conf__{DEVICE}__accept_ra": 0})
        self.edge.ip("-6", "route", "del", "default", "dev", DEVICE)
        config = self.lab.directory / "radvd.conf"
        far = self.lab.sites[0].far_device(0)
        config.write_text(ROUTER % far, encoding="ascii")
        router = self.lab.start(self.lab.concentrator, "radvd", [
            "radvd", "--nodaemon", "--config", config, "--pidfile", self.lab.directory / "radvd.pid"])
        self.addCleanup(self.lab.stop, router)
        self.eventually(lambda: "proto ra" in self.edge.ip("-6", "route", "show", "default", "dev", DEVICE),
                        "a default route by router advertisement")

    def stays(self):
        self.assertEqual(self.ways(), ["braid0", "braid0"])
        self.assertEqual([self.ping(V4), self.ping(V6)], [5, 5])

    def renewed(self):
        """The client renews its lease, by the uplink: dhclient by itself, dhcpcd when it is told to, and is done with
        the time before."""
        count, told = self.leases(), 0

        def is_renewed():
            nonlocal told
            if "dhcpcd" in self.program.args and time.monotonic() > told + 1:
                self.program.send_signal(signal.SIGUSR1)
                told = time.monotonic()
            return self.leases() > count

        self.eventually(is_renewed, "the lease is renewed", timeout=8)

    def test_dhclient_sets_another_default(self):
        self.serve()
        self.gateway.start()
        self.gateway.wait_up()
        self.dhclient()
        self.assertRegex(self.edge.ip("route", "show", "default"), r"default via 10\.0\.0\.2 dev wifi0 *\n", "metric 0")
        self.gateway.wait_up(subflows=4)
        self.stays()
        self.renewed()
        self.stays()

    def test_option_121_of_dhcpcd(self):
        self.serve("--dhcp-option=option:classless-static-route,0.0.0.0/1,10.0.0.2,198.51.100.0/24,10.0.0.2,"
                   "0.0.0.0/0,10.0.0.2")
        self.gateway.start()
        self.gateway.wait_up()
        self.dhcpcd()
        self.assertIn("198.51.100.0/24 via 10.0.0.2 dev wifi0", self.edge.ip("route", "show"))
        self.gateway.wait_up(subflows=4)
        self.stays()

    def test_router_advertisements(self):
        self.gateway.start()
        self.gateway.wait_up()
        self.advertise()
        self.assertIn("2001:db8:77::/48", self.edge.ip("-6", "route", "show", "dev", DEVICE))
        self.stays()

    def test_what_passes_the_guard(self):
        """Leases, neighbours and router advertisements, before the gateway starts and after it was killed."""
        self.serve()
        self.gateway.config["device"]["when-down"] = "block"
        self.gateway.write_config()
        self.edge.run(self.lab.binary("braidctl"), "guard", "apply", self.gateway.path)
        self.assertEqual(self.ping(V4, count=1, wait=0.3, namespace=self.edge), 0, "guarded")
        self.dhcpcd()
        self.advertise()
        self.renewed()
        self.gateway.start()
        self.gateway.wait_up(subflows=2)
        self.renewed()
        self.gateway.stop(signal.SIGKILL)
        self.renewed()
        leased = re.search(LEASED.replace(".", r"\.") + r"\d", self.edge.ip("-4", "address", "show", "dev", DEVICE))[0]
        for near in (leased, self.lab.sites[0].link_addresses(0)[1][0]):
            for space, device in ((self.edge, DEVICE), (self.lab.concentrator, self.lab.sites[0].far_device(0))):
                space.ip("neighbour", "flush", "dev", device)
            self.assertEqual(self.ping(near, namespace=self.lab.concentrator), 5, "neighbours are found, and answered")


class Networkd(EverythingCase):
    """systemd-networkd has the interface of lte."""

    LINKS = [Wire("wifi"), Wire("lte")]
    ADDRESSES = ("10.0.1.1", "fd01:0:0:1::1")

    def setUp(self):
        super().setUp()
        self.gateway.config["peers"][0]["endpoints"] = [f"{PUBLIC[0]}:{PORT}", f"[{PUBLIC[1]}]:{PORT}"]
        self.network = self.lab.directory / "modem.network"
        self.addCleanup(self.lab.restore_uplink, 1)
        self.addCleanup(self.edge.ip, "address", "flush", "dev", "lte0")

    def networkd(self, addresses):
        self.network.write_text(MODEM % addresses, encoding="ascii")
        with open(self.network, "rb") as text:
            program = self.lab.start(self.edge, "networkd", [
                "unshare", "--mount", "sh", "-ec", NETWORKD, "sh", "/lib/systemd/systemd-networkd"], stdin=text)
        self.addCleanup(self.lab.stop, program)
        return program

    def lte(self):
        """{address: (number of the subflow, state)} of the paths by lte."""
        return {path["local"]: (path["id"], path["state"]) for path in
                self.gateway.paths() if path["uplink"] == "lte"}

    def carry(self, addresses):
        return [state for _, state in map(lambda address: self.lte().get(address, (None, "none")), addresses)] == \
            ["active", "active"]

    def test_a_later_modem_and_another_address_of_one_family(self):
        for family in ANYWHERE:
            self.edge.ip(family, "address", "flush", "dev", "lte0")
        self.gateway.start()
        self.gateway.wait_up(subflows=2)
        program = self.networkd(self.ADDRESSES)
        self.eventually(lambda: self.carry(self.ADDRESSES), "the modem carries")
        for family, metric in (("-4", ""), ("-6", " metric 1024")):
            self.assertRegex(self.edge.ip(family, "route", "show", "default", "dev", "lte0"),
                             rf"via \S+ proto static{metric} ", "networkd has set its default")
        self.assertEqual(self.ways(), ["braid0", "braid0"])
        kept = self.lte()[self.ADDRESSES[1]]
        others = [path["id"] for path in self.gateway.paths() if path["uplink"] == "wifi"]
        self.lab.stop(program)
        changed = ("10.0.1.9", self.ADDRESSES[1])
        self.edge.ip("address", "del", self.ADDRESSES[0] + "/24", "dev", "lte0")  # networkd itself leaves it
        seen = set()  # of the subflow of IPv6
        self.eventually(lambda: seen.add(self.lte().get(self.ADDRESSES[1])) or
                        self.lte().get(self.ADDRESSES[0], (0, ""))[1] != "active", "the address is gone")
        self.networkd(changed)
        self.eventually(lambda: seen.add(self.lte().get(self.ADDRESSES[1])) or self.carry(changed),
                        "the other address carries")
        self.assertEqual(seen, {kept}, "the subflow of IPv6 is the same")
        self.assertEqual([path["id"] for path in self.gateway.paths() if path["uplink"] == "wifi"], others)
        self.assertEqual(self.ways(), ["braid0", "braid0"])
        self.assertEqual([self.ping(V4), self.ping(V6)], [5, 5])


if __name__ == "__main__":
    unittest.main()
