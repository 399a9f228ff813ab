"""Two booted machines, one of each Debian that is looked at, with a tunnel between them: what their targets share."""

from lab.gateway import PORT, make_identities

SUITES = {"bookworm": ("edge", "198.51.100.2", "10.99.0.2"), "trixie": ("hub", "198.51.100.3", "10.99.0.3")}


def configure(machines, keys):
    """Writes configurations and identities of an edge and a hub into the machines; {name: inner address}."""
    pins = make_identities(keys, [machine.name for machine in machines])
    edge, hub = machines
    inner = {name: address for name, _, address in SUITES.values()}
    for own, other in ((edge, hub), (hub, edge)):
        peer = {"name": other.name, "pin": pins[other.name], "prefixes": [inner[other.name] + "/32"]}
        config = {"identity": {"key": f"{own.name}.key", "certificate": f"{own.name}.crt"},
                  "device": {"addresses": [inner[own.name] + "/32"], "routes": [inner[other.name] + "/32"]},
                  "peers": [peer]}
        if own is edge:
            peer["endpoints"] = [f"{hub.address}:{PORT}"]
            config["uplinks"] = [{"interface": "host0", "metered": {"cap": "100GB"}, "gateway": "none"}]
        else:
            config["listen"] = [f"0.0.0.0:{PORT}"]
        own.configure(config, keys)
    return inner


class Checks:
    """The checks of a machine, one line each. Failed ones are recorded."""

    def __init__(self):
        self.done, self.failed = [], []

    def check(self, what, holds, machine):
        try:
            good = holds()
        except (RuntimeError, TimeoutError) as error:
            good, what = False, f"{what}: {error}"
        self.done.append(what)
        if not good:
            self.failed.append(f"{machine.suite}: {what}\n{machine.told()[-1500:]}")


def ping(machine, address):
    """True when none of three pings is lost."""
    return " 0% packet loss" in machine.run("ping", "-n", "-q", "-c", "3", "-i", "0.2", "-W", "2", address,
                                            check=False)
