"""Other programs at a gateway's host that steer packets by marks, rules and tables of their own, and connections of
theirs. Each is set up as its own documents or scripts do it.

    Mwan3      LAN hosts and services by a chosen uplink (the scripts of OpenWrt's mwan3)
    WgQuick    WireGuard for everything, by wg-quick and wireguard-go
    Tailscale  wireguard-go with the rules of tailscaled
    Squid      a transparent proxy (https://wiki.squid-cache.org/Features/Tproxy4)
    SecondBraid  another gateway, with a peer of its own
"""

import contextlib
import copy
import json
import os
import re
import socket
import threading
import time

from .gateway import PORT, Gateway, binary, make_identities
from .lab import DIRECT_RULE
from .site import PUBLIC, server_addresses

V4, V6 = server_addresses()
UPLINKS = ((1, "wifi0"), (2, "lte0"))
FAMILIES = (("-4", "iptables"), ("-6", "ip6tables"))
EVERYTHING = ["0.0.0.0/0", "::/0"]
WEB = 8080  # the port of squid's servers; nginx of the tests has 80
PAUSE = 0.03  # seconds between two requests of a Talk


def _family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


class Talk:
    """An HTTP/1.1 connection over which one request follows the other, until close(). A connection at either end that
    breaks is counted."""

    def __init__(self, name, near, far, address, port, source=None, mark=None):
        """From `near` to `address`, which is in `far`. `mark`: of the client's socket, as a program may set it."""
        self.name, self.answered, self.error, self._asker = name, 0, None, None
        self.sources, self.via = [], None
        self._host = (f"[{address}]" if ":" in address else address).encode()
        self._stopped = False
        self._ends = []
        self._listener = far.inside(self._listen, address, port)
        threading.Thread(target=self._accept, daemon=True).start()
        try:
            self._client = near.inside(self._connect, (address, port), source, mark)
        except OSError as error:
            self.error = error
            return
        self._client.settimeout(30)
        self._asker = threading.Thread(target=self._ask, daemon=True)
        self._asker.start()

    @staticmethod
    def _listen(address, port):
        listener = socket.socket(_family(address), socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
        return listener

    @staticmethod
    def _connect(to, source, mark):
        client = socket.socket(_family(to[0]), socket.SOCK_STREAM)
        client.settimeout(5)
        if mark:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
        if source:
            client.bind((source, 0))
        client.connect(to)
        return client

    def _accept(self):
        with contextlib.suppress(OSError):
            while not self._stopped:
                end, source = self._listener.accept()
                self.sources.append(source[0])
                self._ends.append(end)
                threading.Thread(target=self._serve, args=(end,), daemon=True).start()

    def _serve(self, end):
        data = b""
        with contextlib.suppress(OSError):
            while part := end.recv(4096):
                data += part
                while b"\r\n\r\n" in data:
                    request, _, data = data.partition(b"\r\n\r\n")
                    self.via = b"\r\nvia:" in request.lower()
                    number = request.split()[1][1:]
                    end.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(number), number))

    def _ask(self):
        number = 0
        try:
            while not self._stopped:
                number += 1
                self._client.sendall(b"GET /%08d HTTP/1.1\r\nHost: %s\r\n\r\n" % (number, self._host))
                data = b""
                while not data.endswith(b"\r\n\r\n%08d" % number):
                    part = self._client.recv(4096)
                    if not part:
                        raise ConnectionError("the connection was ended")
                    data += part
                    if b"HTTP/1.1 200" not in data[:12] and len(data) >= 12:
                        raise ConnectionError(data[:60])
                self.answered = number
                time.sleep(PAUSE)
        except OSError as error:
            if not self._stopped:
                self.error = error

    def breaks(self, timeout=15):
        """How many connections broke: 0 when a new request is answered, over the first connection at both ends."""
        before, deadline = self.answered, time.monotonic() + timeout
        while not self.error and self.answered <= before + 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        return int(self.error is not None or self.answered <= before + 1) + max(0, len(self.sources) - 1)

    def told(self):
        return {"name": self.name, "answered": self.answered, "connections": len(self.sources), "error": self.error}

    def close(self):
        """Ends it after the answer that is under way: to what arrives for a socket that was closed with unread data the
        kernel answers with resets that do not have the socket's mark."""
        self._stopped = True
        if self._asker:
            self._asker.join(timeout=2)
        for end in (self._listener, getattr(self, "_client", None), *self._ends):
            if end:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()


class Neighbour:
    """A program at the edge. Use as a context manager; `guarded`: the connections that a guard leaves to it."""

    NEEDS_THE_TUNNEL = False  # True when its connections go through the gateway's tunnel

    def __init__(self, lab):
        self.lab, self.edge = lab, lab.edge
        self._undo = []

    def __enter__(self):
        try:
            self.up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for namespace, words in reversed(self._undo):
            namespace.run(*words, check=False)
        self._undo.clear()

    def _do(self, words, undo=None, namespace=None):
        space = namespace or self.edge
        space.run(*words.split())
        if undo:
            self._undo.append((space, undo.split()))

    def talks(self, guarded=False):
        """The arguments of Talk for each of its connections."""
        raise NotImplementedError

    def reachable(self, talk):
        """What must be true of a connection that is this neighbour's own: None, or what is wrong."""
        return None


class Mwan3(Neighbour):
    """TCP to port 9100 leaves by lte, masqueraded; what comes in by lte is answered by it."""

    POLICY, SERVICE = 9100, 2222

    def up(self):
        for family, iptables in FAMILIES:
            for number, device in UPLINKS:
                near, far = self.lab.sites[0].link_addresses(number - 1)[family == "-6"]
                self._do(f"ip {family} route add default via {far} dev {device} table {number}",
                         f"ip {family} route flush table {number}")
                for route in self.edge.ip(family, "route", "show", "dev", "lan0").splitlines():  # as mwan3 copies it
                    self._do(f"ip {family} route add {route.split()[0]} dev lan0 table {number}")
                for priority, words in ((1000, f"iif {device}"), (2000, f"fwmark {number:#x}00/0x3f00")):
                    rule = f"priority {priority + number} {words} lookup {number}"
                    self._do(f"ip {family} rule add {rule}", f"ip {family} rule del {rule}")
                self._do(f"{iptables} -t nat -A POSTROUTING -o {device} -p tcp --dport {self.POLICY} -j MASQUERADE",
                         f"{iptables} -t nat -D POSTROUTING -o {device} -p tcp --dport {self.POLICY} -j MASQUERADE")
            self._do(f"{iptables} -t mangle -N mwan3_hook")
            for rule in ("-j CONNMARK --restore-mark --nfmask 0x3f00 --ctmask 0x3f00",
                         *(f"-i {device} -m mark --mark 0x0/0x3f00 -j MARK --set-xmark {number:#x}00/0x3f00"
                           for number, device in UPLINKS),
                         f"-p tcp --dport {self.POLICY} -m mark --mark 0x0/0x3f00 -j MARK --set-xmark 0x200/0x3f00",
                         "-j CONNMARK --save-mark --nfmask 0x3f00 --ctmask 0x3f00"):
                self._do(f"{iptables} -t mangle -A mwan3_hook {rule}")
            for chain in ("PREROUTING", "OUTPUT"):
                self._do(f"{iptables} -t mangle -A {chain} -j mwan3_hook", f"{iptables} -t mangle -F")

    def talks(self, guarded=False):
        inward = [(self.lab.concentrator, self.edge, near, self.SERVICE, source) for (near, _), source in
                  zip(self.lab.sites[0].link_addresses(1), PUBLIC)]
        outward = [(self.lab.client, self.lab.server, address, self.POLICY) for address in (V4, V6)]
        return inward if guarded else inward + outward


class WgQuick(Neighbour):
    """A WireGuard tunnel of the edge to the concentrator's host, with AllowedIPs of everything."""

    NET4, NET6, PEER_PORT = "10.44.0.", "fd44::", 51821
    EDGE = "AllowedIPs = 0.0.0.0/0, ::/0"
    SETTINGS = ""

    def up(self):
        name = f"q{os.getpid() % 100000}{type(self).__name__[0].lower()}"
        self.device = name + "e"
        files = {side: self.lab.directory / f"{name}{side}.conf" for side in "eh"}
        keys = {}
        for side in "eh":
            private = self.edge.run("wg", "genkey").strip()
            public = self.edge.run("sh", "-c", f"echo {private} | wg pubkey").strip()
            keys[side] = private, public
        hub, edge = (f"Address = {self.NET4}{host}/24, {self.NET6}{host}/64" for host in (1, 2))
        files["h"].write_text(f"[Interface]\nPrivateKey = {keys['h'][0]}\nListenPort = {self.PEER_PORT}\n{hub}\n"
                              f"[Peer]\nPublicKey = {keys['e'][1]}\nAllowedIPs = {self.NET4}2/32, {self.NET6}2/128\n",
                              encoding="ascii")
        files["e"].write_text(f"[Interface]\nPrivateKey = {keys['e'][0]}\n{edge}\n{self.SETTINGS}\n"
                              f"[Peer]\nPublicKey = {keys['h'][1]}\n{self.EDGE}\nPersistentKeepalive = 1\n"
                              f"Endpoint = {PUBLIC[0]}:{self.PEER_PORT}\n", encoding="ascii")
        for side, space in (("h", self.lab.concentrator), ("e", self.edge)):
            files[side].chmod(0o600)
            self._do(f"wg-quick up {files[side]}", f"wg-quick down {files[side]}", namespace=space)

    def talks(self, guarded=False):
        return [(self.edge, self.lab.concentrator, f"{net}1", 7000, f"{net}2") for net in (self.NET4, self.NET6)]


class Tailscale(WgQuick):
    """The rules of tailscaled, with wireguard-go in its place: its datagrams have the mark 0x80000."""

    NET4, NET6, PEER_PORT = "100.64.0.", "fd7a:115c:a1e0::", 41641
    EDGE = "AllowedIPs = 100.64.0.0/10, fd7a:115c:a1e0::/48"
    SETTINGS = "Table = off\nFwMark = 0x80000"

    def up(self):
        super().up()
        for (family, iptables), network in zip(FAMILIES, ("100.64.0.0/10", "fd7a:115c:a1e0::/48")):
            self._do(f"ip {family} route add {network} dev {self.device} table 52",
                     f"ip {family} route flush table 52")
            for priority, words in ((5210, "fwmark 0x80000/0xff0000 lookup main"),
                                    (5230, "fwmark 0x80000/0xff0000 lookup default"),
                                    (5250, "fwmark 0x80000/0xff0000 unreachable"), (5270, "lookup 52")):
                self._do(f"ip {family} rule add priority {priority} {words}",
                         f"ip {family} rule del priority {priority}")
            for table, chain, rule in (
                    ("filter", "FORWARD", f"-i {self.device} -j MARK --set-xmark 0x40000/0xff0000"),
                    ("filter", "FORWARD", "-m mark --mark 0x40000/0xff0000 -j ACCEPT"),
                    ("nat", "POSTROUTING", "-m mark --mark 0x40000/0xff0000 -j MASQUERADE"),
                    ("filter", "INPUT", f"-s {network} ! -i {self.device} -j DROP")):
                self._do(f"{iptables} -t {table} -A {chain} {rule}", f"{iptables} -t {table} -D {chain} {rule}")

    def talks(self, guarded=False):
        """Those in the tunnel, and tailscaled's own to its servers."""
        return super().talks() + [(self.edge, self.lab.concentrator, address, 7001, None, 0x80000)
                                  for address in PUBLIC]


class Squid(Neighbour):
    """Web connections of the LAN end at squid, which asks the servers with the hosts' own addresses."""

    NEEDS_THE_TUNNEL = True
    CONFIG = """
http_port 127.0.0.1:3128
http_port 3129 tproxy
http_access allow all
cache deny all
access_log none
cache_log /dev/stderr
pid_filename none
netdb_filename none
pinger_enable off
memory_cache_shared off
shutdown_lifetime 0 seconds
visible_hostname edge
"""
    DIVERTED = ("-p tcp -m socket --transparent -j DIVERT",
                f"-i lan0 -p tcp --dport {WEB} -j TPROXY --tproxy-mark 0x1/0x1 --on-port 3129")

    def up(self):
        config = self.lab.directory / "squid.conf"
        config.write_text(self.CONFIG, encoding="ascii")
        self._process = self.lab.start(self.edge, "squid", ["squid", "-N", "-f", config])
        self.lab.wait_for(lambda: self.edge.run("ss", "-Hltn", "sport = :3129"), "squid to listen")
        for (family, iptables), everything in zip(FAMILIES, EVERYTHING):
            self._do(f"ip {family} rule add fwmark 1 lookup 100", f"ip {family} rule del fwmark 1 lookup 100")
            self._do(f"ip {family} route add local {everything} dev lo table 100",
                     f"ip {family} route flush table 100")
            for rule in ("-N DIVERT", "-A DIVERT -j MARK --set-mark 1", "-A DIVERT -j ACCEPT"):
                self._do(f"{iptables} -t mangle {rule}")
            for rule in self.DIVERTED:
                self._do(f"{iptables} -t mangle -A PREROUTING {rule}", f"{iptables} -t mangle -F")

    def __exit__(self, *_):
        super().__exit__()
        if getattr(self, "_process", None):
            self.lab.stop(self._process)

    def talks(self, guarded=False):
        return [(self.lab.client, self.lab.server, address, WEB) for address in (V4, V6)]

    def reachable(self, talk):
        if not talk.via:
            return "the request did not pass the proxy"
        return None


class SecondBraid(Neighbour):
    """A second gateway at the edge, with a second one at the concentrator as its peer."""

    NETWORKS, FAR = ["10.77.0.0/24", "fd00:77::/64"], ("10.77.0.1", "fd00:77::1")
    NEAR = ("10.254.0.2", "fd00:0:0:fe::2")

    def up(self):
        lab, names = self.lab, ("hub2", "van2")
        pins = make_identities(lab.directory, names)
        base = {name: {"identity": {"key": f"{name}.key", "certificate": f"{name}.crt"},
                       "control": {"socket": str(lab.directory / f"{name}.sock")},
                       "state": str(lab.directory / f"{name}.state")} for name in names}
        near, far = [f"{a}/{128 if ':' in a else 32}" for a in self.NEAR], ["10.254.0.1/24", "fd00:0:0:fe::1/64"]
        for address in self.FAR:
            length = 128 if ":" in address else 32
            self._do(f"ip address add {address}/{length} dev lo", f"ip address del {address}/{length} dev lo",
                     lab.concentrator)
        hub = base["hub2"] | {"listen": [f"0.0.0.0:{PORT + 1}"], "device": {"name": "braid8", "addresses": far},
                              "peers": [{"name": "van2", "pin": pins["van2"], "prefixes": near}]}
        van = base["van2"] | {"uplinks": copy.deepcopy(lab.edge_gateway.config["uplinks"]),
                              "device": {"name": "braid8", "addresses": ["10.254.0.2/24", "fd00:0:0:fe::2/64"],
                                         "routes": self.NETWORKS},
                              "peers": [{"name": "hub2", "pin": pins["hub2"], "prefixes": self.NETWORKS,
                                         "endpoints": [f"{PUBLIC[0]}:{PORT + 1}"]}]}
        self.gateways = [Gateway(lab, "hub2", lab.concentrator, hub), Gateway(lab, "van2", self.edge, van)]
        for gateway in self.gateways:
            gateway.start()
        self.gateways[1].wait_up()

    def __exit__(self, *_):
        for gateway in getattr(self, "gateways", []):
            if gateway.process:
                gateway.stop()
        super().__exit__()

    def talks(self, guarded=False):
        return [(self.edge, self.lab.concentrator, far, 7100, near) for far, near in zip(self.FAR, self.NEAR)]


def take_advice(gateway):
    """Sets `device.bypass-marks` as `braidctl doctor` says, if it says so. Returns the marks."""
    gateway.write_config()
    said = json.loads(gateway.namespace.run(binary("braidctl"), "doctor", gateway.path, "--json", check=False))
    named = re.findall(r"add 'bypass-marks: \[(.*?)\]' to device",
                       " ".join(finding["remedy"] for finding in said["findings"]))
    marks = named[0].split(", ") if named else []
    if marks:
        gateway.config["device"]["bypass-marks"] = marks
    return marks


ALL = {"mwan3": Mwan3, "wg-quick": WgQuick, "tailscale": Tailscale, "squid": Squid, "a second Braid": SecondBraid}


def prepare(lab, when_down=None):
    """Everything through the tunnel of the edge. Rules that are added there without a priority get those that they have
    on a host without rules."""
    for family, _ in FAMILIES:
        for place in range(len(lab.sites[0].links)):
            lab.edge.ip(family, "rule", "del", "priority", DIRECT_RULE + place)
    gateway = lab.edge_gateway
    device, peer = gateway.config["device"], gateway.config["peers"][0]
    peer["prefixes"] = list(EVERYTHING)
    device["routes"] = list(EVERYTHING)
    if when_down:
        device["when-down"] = when_down
