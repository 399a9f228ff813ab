"""The addresses in a lab: of the concentrator, the server, and each site with its edge, client and links.

    client --lan0-- edge ==wifi==lte== concentrator --lan0-- server
    192.168.10.2    .1   10.0.0.1 .2   203.0.113.1  .1       192.168.100.2  through Braid
    fd00:0:0:10::2  ::1  10.0.1.1 .2   2001:db8::1  ::1      192.168.100.3  over the first link without Braid
                                                             192.168.100.4  over the second, and so on

The edge knows the concentrator by its public address, reached by one default route per uplink, as in the field. Site s
has LAN 192.168.(10+s).0/24 and fd00:0:0:(10+s)::/64, and its link i is 10.s.i.0/24 and fd01:0:s:i::/64.
"""

PUBLIC = ("203.0.113.1", "2001:db8::1")  # the concentrator's public addresses, on its loopback
SERVER_LAN = ("192.168.100.0/24", "fd00:0:0:100::/64")


def server_addresses(link=None):
    """The server's addresses (v4, v6): for traffic through Braid, or over the link of that index without it."""
    host = 2 if link is None else 3 + link
    return f"192.168.100.{host}", f"fd00:0:0:100::{host}"


class Site:
    """An edge gateway, the client behind it, and its links to the concentrator."""

    def __init__(self, lab, number, links):
        self.number = number
        self.links = links
        suffix = str(number) if number else ""
        self.client = lab.namespace("client" + suffix)
        self.edge = lab.namespace("edge" + suffix)
        self.lan = (f"192.168.{10 + number}.0/24", f"fd00:0:0:{10 + number}::/64")
        self.client_address = (f"192.168.{10 + number}.2", f"fd00:0:0:{10 + number}::2")
        self.gateway = None

    @property
    def lan_addresses(self):
        """Those of the edge in its LAN, with prefix length."""
        v4, v6 = self.client_address
        return v4[:-1] + "1/24", v6[:-1] + "1/64"

    def device(self, index):
        """The uplink's device at the edge: wifi0, lte0."""
        return f"{self.links[index].name}0"

    def far_device(self, index):
        """The same link's device at the concentrator: one per site."""
        return f"{self.links[index].name}{self.number}"

    def link_name(self, index):
        return self.links[index].name + (f".{self.number}" if self.number else "")

    def link_addresses(self, index):
        """((edge v4, concentrator v4), (edge v6, concentrator v6)) of a link."""
        v4, v6 = f"10.{self.number}.{index}.", f"fd01:0:{self.number}:{index}::"
        return (v4 + "1", v4 + "2"), (v6 + "1", v6 + "2")

    def configure_uplink(self, index):
        """Gives the edge's end of a link its addresses and routes. Call it again after the device was down."""
        (near4, far4), (near6, far6) = self.link_addresses(index)
        device = self.device(index)
        self.edge.address(device, near4 + "/24", near6 + "/64")
        metric = 100 * (index + 1)
        self.edge.route("0.0.0.0/0", "via", far4, "dev", device, "metric", metric)
        self.edge.route("::/0", "via", far6, "dev", device, "metric", metric)
        for address, far in zip(server_addresses(index), (far4, far6)):
            self.edge.route(f"{address}/{128 if ':' in address else 32}", "via", far, "dev", device)
