"""Where checks are made: a lab with a real daemon as concentrator, and this peer in the place of its edge.

    peer (10.0.0.1 and 10.0.1.1, hosts 10.255.0.2 and 192.168.10.0/24) == braidd 203.0.113.1 -- server 192.168.100.2
"""

import base64
import contextlib
import json
import socket as sockets
import time

from lab import Lab, Wire, binary, run
from lab.gateway import PORT, make_identities
from lab.site import PUBLIC

from .dtls import Client, Identity
from .handshake import Handshake
from .session import Session

DAEMON = (PUBLIC[0], PORT)
IP_RECVTOS = 13  # linux/in.h
SERVER = Lab.server_addresses()[0]
HOST, HOST6 = "192.168.10.2", "fd00:0:0:10::2"  # an address behind this peer
ELSEWHERE = "10.77.0.1"  # an address behind the other peer
UPLINKS = ("10.0.0.1", "10.0.1.1")
CONFIG = {
    "streams": {"accept": [{"network": "192.168.100.0/24"}], "receive-window": "64KiB", "max-streams-per-peer": 64,
                "match": [{"ports": "8000-8099"}]},
}


class Place:
    """`daemon`: the gateway under test. Sockets and sessions of a check are closed by end()."""

    def __init__(self):
        self.lab = Lab([Wire("wifi"), Wire("lte")])
        self._open = contextlib.ExitStack()

    def __enter__(self):
        self.lab.__enter__()
        folder = self.lab.directory
        (folder / "peers.d").mkdir()
        self.lab.make_gateways(concentrator={**CONFIG, "peers-folder": str(folder / "peers.d")})
        pins = make_identities(folder, ["other"])
        self.daemon = self.lab.gateway
        self.daemon.config["peers"].append({"name": "other", "pin": pins["other"], "prefixes": ["10.77.0.0/16"]})
        self.identity, self.other, own = (
            Identity.read(folder / f"{name}.key", folder / f"{name}.crt") for name in ("edge", "other", "concentrator"))
        self.pin = own.pin
        self.daemon.start()
        self.edge_gateway = self.lab.edge_gateway  # the daemon as initiator; its responder is this peer
        self.second = Identity()
        pin = "sha256:" + base64.b64encode(self.second.pin).decode()
        self.edge_gateway.config["peers"][0].update(pin=pin, endpoints=[f"{PUBLIC[0]}:{PORT + 1}"])
        return self

    def __exit__(self, *error):
        self.end()
        self.lab.__exit__(*error)

    def end(self):
        self._open.close()

    # ---- the peer's side

    def keep(self, closable):
        return self._open.enter_context(contextlib.closing(closable))

    def socket(self, uplink=0, port=0):
        """A UDP socket of the peer."""
        socket = self.keep(self.lab.edge.inside(sockets.socket, sockets.AF_INET, sockets.SOCK_DGRAM))
        socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4 << 20)
        socket.setsockopt(sockets.IPPROTO_IP, IP_RECVTOS, 1)
        socket.bind((UPLINKS[uplink], port))
        return socket

    def handshake(self, identity=None, socket=None, pin=None, protocols=(b"braid/2",), **changes):
        """A handshake that has not begun."""
        client = Client(identity or self.identity, protocols, **changes)
        return Handshake(socket or self.socket(), DAEMON, pin or self.pin, client)

    def keyed(self, identity=None, socket=None, client=None, psk=None, **changes):
        """A session whose handshake is done, and that has sent nothing yet. `client`: changes of the handshake."""
        handshake = self.handshake(identity, socket, **(client or {})).run()
        generation, name = handshake.keys(psk)
        return Session(generation, name, handshake.socket, DAEMON, **changes)

    def session(self, identity=None, client=None, **changes):
        """A session that is up."""
        return self.keyed(identity, client=client, **changes).start()

    @contextlib.contextmanager
    def edge_daemon(self, changes):
        """The daemon at the edge, with another configuration: started, and ended behind the block. The socket of its
        responder."""
        responder = self.keep(self.lab.concentrator.inside(sockets.socket, sockets.AF_INET, sockets.SOCK_DGRAM))
        responder.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4 << 20)
        responder.bind((PUBLIC[0], PORT + 1))
        before = self.edge_gateway.config
        self.edge_gateway.config = {**before, **changes}
        self.edge_gateway.start()
        try:
            yield responder
        finally:
            self.edge_gateway.stop()
            self.edge_gateway.config = before

    def host(self):
        """A socket of a host behind the daemon at the edge."""
        socket = self.keep(self.lab.client.inside(sockets.socket, sockets.AF_INET, sockets.SOCK_DGRAM))
        socket.bind((HOST, 0))
        socket.settimeout(2)
        return socket

    # ---- the server's side

    def bound(self, kind=sockets.SOCK_DGRAM, port=0, address=SERVER):
        """A socket of the server. Of TCP: it listens."""
        family = sockets.AF_INET6 if ":" in address else sockets.AF_INET
        socket = self.keep(self.lab.server.inside(sockets.socket, family, kind))
        socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        socket.bind((address, port))
        if kind == sockets.SOCK_STREAM:
            socket.listen(64)
        socket.settimeout(2)
        return socket

    # ---- the daemon

    def ask(self, command, daemon=None, **more):
        """The daemon's answer at its control socket."""
        with sockets.socket(sockets.AF_UNIX) as channel:
            channel.settimeout(5)
            channel.connect(str((daemon or self.daemon).socket))
            channel.sendall(json.dumps({"cmd": command, **more}).encode() + b"\n")
            with channel.makefile() as lines:
                return json.loads(lines.readline())

    def drops(self, daemon=None):
        return self.ask("status", daemon)["drops"]

    def peer(self, name="edge"):
        """What the daemon says of a peer."""
        return next(peer for peer in self.ask("status")["peers"] if peer["name"] == name)

    def shown(self, subflow=0):
        """What the daemon says of a subflow of this peer."""
        return next((each for each in self.peer()["subflows"] if each["id"] == subflow), None)

    @contextlib.contextmanager
    def counts(self, cause, least=1, most=None, daemon=None):
        """Expects that what is done inside is counted so often as drops of this cause."""
        before = self.drops(daemon)[cause]
        yield
        grown = 0
        deadline = time.monotonic() + 1
        while (grown := self.drops(daemon)[cause] - before) < least and time.monotonic() < deadline:
            time.sleep(0.01)
        assert least <= grown <= (least if most is None else most), f"{cause}: {grown} instead of {least} or more"

    @contextlib.contextmanager
    def changed(self, section, **values):
        """Other values in a section of the daemon's configuration meanwhile."""
        before = dict(section)
        section.update(values)
        self.reload()
        try:
            yield
        finally:
            section.clear()
            section.update(before)
            self.reload()

    def reload(self):
        self.daemon.write_config()
        answer = self.ask("reload")
        assert answer["ok"], answer

    def invite(self, name, *words):
        """The line of an invitation."""
        return run(binary("braidctl"), "invite", name, "--address", f"{PUBLIC[0]}:{PORT}", "--socket",
                   self.daemon.socket, *words).strip()
