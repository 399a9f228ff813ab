"""The base class of the tests whose edge is a whole machine: a Debian with its own systemd, which runs the daemon and
the programs that configure the host. With scripts/test --nightly: the Debian has to be made first (lab/boot.py)."""

from guard_case import ELSEWHERE, EVERYTHING, GuardCase, InClear, Sender
from lab import Wire
from lab.boot import Machine, programs_tree
from lab.gateway import PORT
from lab.site import PUBLIC
from pair_case import V4, V6, PairCase

LOOK_OUT_FOR = [V4, V6, *ELSEWHERE]
FORWARDING = "net.ipv4.ip_forward = {0}\nnet.ipv6.conf.all.forwarding = {0}\n"
AT_ONCE = "net.ipv6.conf.{}.accept_dad = 0\n"  # IPv6 leaves as early as IPv4 could


class BootedCase(PairCase):
    """Each test prepares the machine and boots it, in a network namespace that is as new as after power-up."""

    LINKS = [Wire("wifi"), Wire("lte")]
    GATEWAYS = False
    SUITE = "bookworm"
    FORWARDS = True  # by the host's own configuration
    HAS_LAN = True  # from the beginning
    NSPAWN = ()  # more words for systemd-nspawn

    @classmethod
    def setUpClass(cls):
        cls.base = programs_tree(cls.SUITE)
        super().setUpClass()
        cls.lab.make_gateways(cls.EDGE, cls.CONCENTRATOR)
        cls.lab.gateway.start()
        for key in ("control", "state"):  # the unit's are in /run/braid and /var/lib/braid
            cls.lab.edge_gateway.config.pop(key)

    def setUp(self):
        self.edge, self.gateway, self.site = self.lab.edge, self.lab.edge_gateway, self.lab.sites[0]
        self.machine = Machine(self.base, "edge", self.lab.directory / self._testMethodName)
        self.addCleanup(self._close)
        self.machine.prepare()
        self.install()
        devices = [*(self.site.device(index) for index in range(len(self.site.links))), "lan0"]
        self.machine.write("etc/sysctl.d/60-router.conf", FORWARDING.format(int(self.FORWARDS)) + "".join(
            AT_ONCE.format(device) for device in devices))

    def install(self):
        self.machine.install()

    def tell(self):
        super().tell()
        print(self.journal)

    def _close(self):
        self.journal = self.machine.told("-b", "-n", "150")
        self.machine.close()

    def configure(self):
        self.machine.configure(self.gateway.config, self.lab.directory)

    def renew(self):
        """The network of a machine that is switched on."""
        self.machine.power_off()
        self.lab.renew_edge()

    def boot(self):
        self.machine.boot(f"--network-namespace-path=/run/netns/{self.edge.name}", *self.NSPAWN)

    def reaches(self, addresses=(V4, V6)):
        """Waits until a LAN host gets through the tunnel."""
        self.machine.wait(self.machine.up, "a session")
        self.eventually(lambda: all(self.ping(address, count=1, wait=1) for address in addresses), "a way", 20)

    # ---- programs that configure the network

    def networkd(self):
        for index in range(len(self.site.links)):
            (near4, far4), (near6, far6) = self.site.link_addresses(index)
            routes = "".join(f"[Route]\nGateway={far}\nMetric={100 * (index + 1)}\n" for far in (far4, far6))
            self.networkd_file(self.site.device(index), [near4 + "/24", near6 + "/64"], routes)
        if self.HAS_LAN:
            self.networkd_file("lan0", self.site.lan_addresses)
        self.machine.enable("systemd-networkd")

    def networkd_file(self, device, addresses, more=""):
        text = "".join(f"Address={address}\n" for address in addresses)
        self.machine.write(f"etc/systemd/network/10-{device}.network",
                           f"[Match]\nName={device}\n[Network]\nIPv6AcceptRA=no\n{text}{more}")

    def network_manager(self):
        """By DHCP and router advertisements, see serve_leases()."""
        devices = [self.site.device(index) for index in range(len(self.site.links))]
        # It leaves interfaces of this kind alone otherwise.
        names = ",".join(f"interface-name:{device}" for device in (*devices, "lan0"))
        self.machine.write("etc/NetworkManager/conf.d/lab.conf", f"[device-lab]\nmatch-device={names}\nmanaged=1\n")
        for index, device in enumerate(devices):
            metric = f"method=auto\nroute-metric={100 * (index + 1)}\n"
            self._profile(device, metric, metric)
        self._profile("lan0", *(f"method=manual\naddress1={address}\n" for address in self.site.lan_addresses))
        self.machine.enable("NetworkManager")

    def _profile(self, device, ipv4, ipv6):
        self.machine.write(f"etc/NetworkManager/system-connections/{device}.nmconnection",
                           f"[connection]\nid={device}\ntype=ethernet\ninterface-name={device}\n"
                           f"[ipv4]\n{ipv4}[ipv6]\n{ipv6}", 0o600)

    def ifupdown(self, more=""):
        """IPv4 of the uplinks by DHCP, see serve_leases(). `more`: lines for the IPv6 of the first one."""
        text = ""
        for index in range(len(self.site.links)):
            device, (near6, far6) = self.site.device(index), self.site.link_addresses(index)[1]
            metric = 100 * (index + 1)
            text += (f"auto {device}\niface {device} inet dhcp\n  metric {metric}\niface {device} inet6 static\n"
                     f"  address {near6}/64\n  gateway {far6}\n  metric {metric}\n{'' if index else more}")
        lan4, lan6 = self.site.lan_addresses
        text += f"auto lan0\niface lan0 inet static\n  address {lan4}\niface lan0 inet6 static\n  address {lan6}\n"
        self.machine.write("etc/network/interfaces", f"auto lo\niface lo inet loopback\n{text}")
        self.machine.enable("networking")

    def serve_leases(self, *options):
        """A DHCP server and router advertisements at the far end of each uplink, where the DNS server is, too. With
        `options` of dnsmasq."""
        words = ["dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--port=0", "--user=root", "--log-dhcp",
                 "--log-facility=-", "--bind-dynamic", "--dhcp-authoritative", "--enable-ra",
                 f"--dhcp-leasefile={self.lab.directory}/leases-of-{self._testMethodName}", *options]
        for index in range(len(self.site.links)):
            (_, far4), (_, far6) = self.site.link_addresses(index)
            network = far4.rpartition(".")[0]
            words += [f"--interface={self.site.far_device(index)}",
                      f"--dhcp-range=set:link{index},{network}.50,{network}.59,255.255.255.0,2m",
                      f"--dhcp-range=set:link{index},{far6.removesuffix('2')},ra-only,64,10m",
                      f"--dhcp-option=tag:link{index},option:dns-server,{far4}",
                      f"--dhcp-option=tag:link{index},option6:dns-server,[{far6}]"]
        server = self.lab.start(self.lab.concentrator, "leases", words)
        self.addCleanup(self.lab.stop, server)


class GuardedCase(BootedCase):
    """A gateway that takes everything and guards the host, and a look-out for what leaves past it."""

    seen = GuardCase.seen

    def setUp(self):
        super().setUp()
        peer = self.gateway.config["peers"][0]
        peer.update({"prefixes": EVERYTHING, "endpoints": [f"{PUBLIC[0]}:{PORT}", f"[{PUBLIC[1]}]:{PORT}"]})
        self.gateway.config["device"].update({"routes": EVERYTHING, "when-down": "block"})
        self.configure()
        self.clear = None
        self._watchers = []
        self.addCleanup(self._unwatch)

    def _unwatch(self):
        while self._watchers:
            self._watchers.pop().close()

    def renew(self):
        self._unwatch()
        super().renew()

    def watch(self, *senders):
        """Looks out at the far ends of the uplinks, while these namespaces send without a pause."""
        self.clear = InClear(self.lab.concentrator, [self.site.far_device(i) for i in range(len(self.site.links))])
        self._watchers += [self.clear, *(Sender(namespace, LOOK_OUT_FOR) for namespace in senders)]

    def boot_seen(self, *senders):
        """How many datagrams leave in clear from power-up until after the boot: [IPv4, IPv6]. These namespaces send, by
        default a host of the LAN and the machine itself."""
        self.renew()
        self.watch(*(senders or (self.lab.client, self.edge)))
        return self.seen(self.boot)

    def seen_at(self, *command):
        """What leaves in clear while a command runs in the machine, and a moment longer."""
        return self.seen(lambda: self.machine.run(*command))
