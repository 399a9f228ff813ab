"""The concentrator of a lab as several daemons on one machine. Each has its own peers, port, device, tunnel network and
files (docs/operations.md, "Several daemons on one machine"):

    edge  ----.                   .-- UDP 4433, braid0, 10.255.0.0/24: edge, edge2, ...
    edge1 ----+-- concentrator ---+
    edge2 ----'   203.0.113.1     '-- UDP 4434, braid1, 10.255.1.0/24: edge1, edge3, ...
"""

import copy

from .gateway import PORT, Gateway, make_identities
from .site import PUBLIC


def addresses(shard, host):
    """(v4, v6) of a gateway in the tunnel's network of a shard."""
    return f"10.255.{shard}.{host}", f"fd00:0:{shard}:ff::{host:x}"


class Shards:
    """`count` daemons for the sites of a lab. The lab's gateways are made but not started; `lab.gateway` is not used
    any more."""

    def __init__(self, lab, count):
        self._lab = lab
        self._pins = make_identities(lab.directory, [f"shard{number}" for number in range(count)])
        self._whole = copy.deepcopy(lab.gateway.config)
        self.gateways = [Gateway(lab, name, lab.concentrator, None) for name in self._pins]

    def deal(self, count):
        """Distributes the sites to the first `count` daemons in turn. Running daemons and edges must be restarted.
        Returns those daemons."""
        for number, gateway in enumerate(self.gateways[:count]):
            gateway.config = self._config(number, self.sites(number, count))
        for site in self._lab.sites:
            number = site.number % count
            (near4, near6), (far4, far6) = addresses(number, 2 + site.number), addresses(number, 1)
            config = site.gateway.config
            config["device"]["addresses"] = [f"{near4}/24", f"{near6}/64"]
            peer = config["peers"][0]
            peer.update(pin=self._pins[f"shard{number}"], endpoints=[f"{PUBLIC[0]}:{PORT + number}"],
                        prefixes=[f"{far4}/32", f"{far6}/128", *peer["prefixes"][2:]])
        return self.gateways[:count]

    def sites(self, number, count):
        """The sites of a daemon when there are `count` daemons."""
        return [site for site in self._lab.sites if site.number % count == number]

    def _config(self, number, sites):
        name = self.gateways[number].name
        config = copy.deepcopy(self._whole)
        config["identity"] = {"key": f"{name}.key", "certificate": f"{name}.crt"}
        config["control"] = {"socket": str(self.gateways[number].socket)}
        config["state"] = str(self._lab.directory / f"{name}.state")
        config["listen"] = [f"0.0.0.0:{PORT + number}", f"[::]:{PORT + number}"]
        v4, v6 = addresses(number, 1)
        config["device"] |= {"name": f"braid{number}", "addresses": [f"{v4}/24", f"{v6}/64"],
                             "routes": [prefix for site in sites for prefix in site.lan]}
        config["peers"] = [config["peers"][site.number] for site in sites]
        for site, peer in zip(sites, config["peers"]):
            v4, v6 = addresses(number, 2 + site.number)
            peer["prefixes"] = [f"{v4}/32", f"{v6}/128", *site.lan]
        return config
