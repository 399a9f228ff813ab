"""What happens to a gateway and its host, one event after the other: see router_leaks.py."""

import collections
import contextlib
import random
import signal
import socket
import time
from typing import Callable, NamedTuple

from lab.gateway import PORT, binary
from lab.site import PUBLIC

from ._leak_lab import ELSEWHERE, ENDPOINT, INNER

CLASSLESS = ["198.51.100.0/24", "192.168.100.0/24", "0.0.0.0/1", "128.0.0.0/1", "2001:db8:77::/64", "fd00:0:0:100::/64",
             "2000::/3"]
RULES = range(6000, 7000)  # priorities of Braid's rules


class Event(NamedTuple):
    """`running`: whether the daemon must run before it; None: either."""

    name: str
    happen: Callable
    running: bool | None


EVENTS = []


def event(name, running=None):
    def register(function):
        EVENTS.append(Event(name, function, running))
        return function

    return register


class World:
    """The Place with what is known of its state."""

    TUNNEL_RULE = 6200

    def __init__(self, place, seed, variants):
        self.place, self.lab, self.edge, self.gateway = place, place.lab, place.edge, place.gateway
        self.choose = random.Random(seed)
        self.down = None  # the uplink that is without addresses or link
        self.variant = {name: False for name in variants}  # of the configuration (VARIANTS), by reloads

    @property
    def running(self):
        return self.gateway.process is not None

    def up(self, wait=True):
        """Starts the daemon as systemd/braid@.service does."""
        self.gateway.write_config()
        self.edge.run(binary("braidd"), "--check", "--config", self.gateway.path)
        self.gateway.start()
        self.place.braidctl("dns", "set", check=False)
        if wait:
            self.gateway.wait_up()

    def stop(self, number=signal.SIGTERM):
        self.gateway.stop(number)
        self.place.braidctl("dns", "remove", check=False)

    def router(self, index, v6):
        return self.place.site.link_addresses(index)[v6][1]

    def some_uplink(self):
        return self.choose.choice([index for index in (0, 1) if index != self.down])

    def restore(self, index):
        self.lab.concentrator.ip("link", "set", self.place.site.far_device(index), "up")
        self.edge.ip("link", "set", self.place.devices[index], "up")
        self.lab.restore_uplink(index)
        if self.down == index:
            self.down = None

    def restore_all(self):
        for index in (0, 1):
            self.restore(index)

    def quiet(self, *words):
        """`ip` at the edge, where it may have nothing to do."""
        self.edge.run("ip", *words, check=False)


@event("boot", running=False)
def _boot(world):
    """As after power-up: nothing of Braid is at the host, then the guard's unit, the network, the daemon."""
    for device in world.place.devices:
        world.edge.ip("link", "set", device, "down")
        world.edge.ip("address", "flush", "dev", device, "scope", "global")
    world.place.braidctl("release")
    for family in ("-4", "-6"):
        for line in world.edge.ip(family, "rule").splitlines():
            priority = line.split(":")[0]
            if int(priority) in RULES:
                world.quiet(family, "rule", "del", "priority", priority)
    world.place.braidctl("guard", "apply")
    world.restore_all()
    time.sleep(0.4)
    world.up()


@event("start", running=False)
def _start(world):
    world.up(wait=world.choose.random() < 0.7)


@event("stop", running=True)
def _stop(world):
    world.stop()


@event("kill -9", running=True)
def _kill(world):
    world.gateway.stop(signal.SIGKILL)


@event("kill -9, then the supervisor's start", running=True)
def _supervised(world):
    world.gateway.stop(signal.SIGKILL)
    time.sleep(0.1)
    world.up()


@event("kill -9 during the start", running=False)
def _kill_early(world):
    world.gateway.write_config()
    world.gateway.process = world.lab.start(world.edge, world.gateway.name,
                                            [binary("braidd"), "--config", world.gateway.path])
    time.sleep(world.choose.uniform(0.01, 0.3))
    world.gateway.stop(signal.SIGKILL)


@event("stop during the start", running=False)
def _stop_early(world):
    world.gateway.write_config()
    world.gateway.process = world.lab.start(world.edge, world.gateway.name,
                                            [binary("braidd"), "--config", world.gateway.path])
    time.sleep(world.choose.uniform(0.05, 0.3))
    world.gateway.stop()


@event("upgrade", running=True)
def _upgrade(world):
    """What packaging/debian/braid.postinst does: try-restart of braid@NAME, which finds its guard's unit active. Some
    administrators restart that one, too."""
    world.stop()
    if world.choose.random() < 0.5:
        world.place.braidctl("guard", "apply")
    world.up()


VARIANTS = {
    "endpoints": lambda world, config: config["peers"][0].update(
        endpoints=[f"{ENDPOINT if world.variant['endpoints'] else PUBLIC[0]}:{PORT}"]),
    "mac": lambda world, config: config.update(uplinks=[
        {"name": device[:-1], **({"mac": mac_of(world, device)} if world.variant["mac"] else {"interface": device})}
        for device in world.place.devices]),
    "streams": lambda world, config: config.update(streams={"enabled": "on" if world.variant["streams"] else "off"}),
    "one family": lambda world, config: config["device"].update(
        routes=["0.0.0.0/0"] if world.variant["one family"] else ["0.0.0.0/0", "::/0"]),
}


def mac_of(world, device):
    return world.edge.run("cat", f"/sys/class/net/{device}/address").strip()


def change(world):
    """Switches a variant of the configuration to the other value. Returns its name."""
    name = world.choose.choice(sorted(world.variant))
    world.variant[name] = not world.variant[name]
    VARIANTS[name](world, world.gateway.config)
    return f"{name}: {'on' if world.variant[name] else 'off'}"


@event("reload", running=True)
def _reload(world):
    what = change(world)
    world.gateway.reload()
    return what


@event("two reloads at once", running=True)
def _reload_twice(world):
    what = [change(world), change(world)]
    world.gateway.reload()
    time.sleep(world.choose.uniform(0, 0.05))
    what.append(change(world))
    world.gateway.reload()
    return "; ".join(what)


@event("changed while it does not run, guard applied again", running=False)
def _applied_again(world):
    what = change(world)
    world.place.braidctl("guard", "apply")
    return what


@event("lease renewal")
def _lease(world):
    """What dhclient-script and dhcpcd do at a renewal; a client's unicast datagram goes out before it."""
    index = world.some_uplink()
    device, router = world.place.devices[index], world.router(index, False)

    def renew():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            end.bind(("0.0.0.0", 68))
            with contextlib.suppress(OSError):
                end.sendto(b"request", (router, 67))

    world.edge.inside(renew)
    world.edge.ip("-4", "address", "replace", f"{world.place.near(index)[0]}/24", "dev", device,
                  "valid_lft", "600", "preferred_lft", "600")
    world.quiet("-4", "route", "replace", "default", "via", router, "dev", device)
    world.quiet("-6", "route", "replace", "default", "via", world.router(index, True), "dev", device, "metric", "10",
                "proto", "ra", "expires", "600")
    return device


@event("lease with another address")
def _another_lease(world):
    index = world.some_uplink()
    device, near = world.place.devices[index], world.place.near(index)
    other = near[0][:-1] + "77"
    world.edge.ip("-4", "address", "flush", "dev", device)
    world.edge.address(device, f"{other}/24")
    world.quiet("-4", "route", "replace", "default", "via", world.router(index, False), "dev", device)
    time.sleep(world.choose.uniform(0.2, 0.8))
    world.edge.ip("-4", "address", "flush", "dev", device)
    world.lab.restore_uplink(index)
    return device


@event("option 121 and routes of an advertisement")
def _classless(world):
    index = world.some_uplink()
    for prefix in CLASSLESS:
        family = "-6" if ":" in prefix else "-4"
        world.quiet(family, "route", "replace", prefix, "via", world.router(index, ":" in prefix), "dev",
                    world.place.devices[index])
    return world.place.devices[index]


@event("option 121 for single hosts, on the link")
def _on_link(world):
    index = world.some_uplink()
    for address in [*INNER, *ELSEWHERE]:
        world.quiet("-6" if ":" in address else "-4", "route", "replace", address, "dev", world.place.devices[index])
        world.quiet("-6" if ":" in address else "-4", "neighbour", "replace", address, "lladdr", "02:00:00:00:00:01",
                    "dev", world.place.devices[index])
    return world.place.devices[index]


@event("those routes are withdrawn")
def _withdrawn(world):
    for prefix in [*CLASSLESS, *INNER, *ELSEWHERE]:
        world.quiet("-6" if ":" in prefix else "-4", "route", "del", prefix)


def _falls(world, act):
    """Something happens to an uplink while the other one is there; one that was without comes back first."""
    if world.down is not None:
        world.restore(world.down)
    index = world.choose.choice((0, 1))
    act(world.place.devices[index], index)
    world.down = index
    return world.place.devices[index]


@event("uplink down")
def _down(world):
    return _falls(world, lambda device, _: world.edge.ip("link", "set", device, "down"))


@event("carrier lost")
def _carrier(world):
    return _falls(world, lambda _, index: world.lab.concentrator.ip("link", "set", world.place.site.far_device(index),
                                                                    "down"))


@event("addresses flushed")
def _flushed(world):
    return _falls(world, lambda device, _: world.edge.ip("address", "flush", "dev", device, "scope", "global"))


@event("addresses of one family flushed")
def _one_family(world):
    family = world.choose.choice(("-4", "-6"))

    def flush(device, _):
        world.edge.ip(family, "address", "flush", "dev", device, "scope", "global")

    return f"{family} {_falls(world, flush)}"


@event("both uplinks down")
def _both(world):
    for device in world.place.devices:
        world.edge.ip("link", "set", device, "down")
    time.sleep(world.choose.uniform(0.1, 0.6))
    world.restore_all()


@event("uplink up")
def _uplink_up(world):
    if world.down is None:
        _down(world)
        time.sleep(0.2)
    world.restore(world.down)


@event("uplink under another name")
def _renamed(world):
    """As udev does, or a modem that is plugged in elsewhere. Only where the uplinks are known by their MAC address."""
    if not world.variant.get("mac"):
        return "not tried"
    index = world.choose.choice((0, 1))
    if world.down is not None:
        world.restore(world.down)
    device, name = world.place.devices[index], f"wlx{index}"
    for old, new in ((device, name), (name, device)):
        world.edge.ip("link", "set", old, "down")
        world.edge.ip("link", "set", old, "name", new)
        world.edge.address(new, f"{world.place.near(index)[0]}/24", f"{world.place.near(index)[1]}/64")
        for default, v6 in (("0.0.0.0/0", False), ("::/0", True)):
            world.edge.route(default, "via", world.router(index, v6), "dev", new, "metric", 10)
        time.sleep(world.choose.uniform(0.4, 0.8))
    for family in ("-4", "-6"):
        world.quiet(family, "route", "del", "default", "dev", device, "metric", "10")
    world.restore(index)
    return device


@event("rules taken away by another program", running=True)
def _rules(world):
    for family in ("-4", "-6"):
        for line in world.edge.ip(family, "rule").splitlines():
            if int(line.split(":")[0]) in RULES:
                world.quiet(family, "rule", "del", "priority", line.split(":")[0])


@event("the hub goes and comes")
def _hub(world):
    world.lab.gateway.stop(signal.SIGKILL)
    time.sleep(world.choose.uniform(0.3, 0.8))
    world.lab.gateway.start()


def sequence(world, count):
    """`count` events, those that can happen and have happened least often first."""
    done = collections.Counter()
    for _ in range(count):
        able = [each for each in EVENTS if each.running in (None, world.running)]
        least = min(done[each.name] for each in able)
        chosen = world.choose.choice([each for each in able if done[each.name] == least])
        done[chosen.name] += 1
        yield chosen
