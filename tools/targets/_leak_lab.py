"""A host with two uplinks that sends without a pause, as does a host of its LAN, and a look-out at the far end of each
uplink that judges every packet.

    LAN host --lan0-- edge ==wifi==lte== concentrator (also the Internet: ELSEWHERE, STRANGER, RESOLVER)
"""

import collections
import contextlib
import errno
import ipaddress
import pathlib
import select
import socket
import threading
import time

from lab import Lab
from lab.gateway import PORT, binary
from lab.links import Wire
from lab.packets import Capture, Packet
from lab.site import PUBLIC, server_addresses

EVERYTHING = ["0.0.0.0/0", "::/0"]
INNER = [*server_addresses(), "10.255.0.1", "fd00:0:0:ff::1"]  # behind the concentrator, and itself
ELSEWHERE = ["198.51.100.1", "2001:db8:77::1"]  # on the Internet
STRANGER = ["203.0.113.99", "2001:db8:99::1"]  # speaks to the edge by its uplinks, which answers
RESOLVER = "203.0.113.53"
ENDPOINT = "hub.example"  # the concentrator's name
OTHER_NAME = "other.example"  # another program of the edge asks for this one
ANSWERING = 2222  # the edge's UDP port that answers the stranger
MARKER = b"braid-leak-probe"
PAUSE = 0.005  # seconds between two rounds of datagrams
CONNECT_ROUNDS = 20  # rounds between two of connections
KEPT = 60  # connections that are tried at a time
IP_FREEBIND, IPV6_FREEBIND = 15, 78
ARP, IPV4, IPV6 = 0x0806, 0x0800, 0x86DD
TUNNEL, LEAK = "tunnel", "leak"
REPLY, OTHER_REPLY = "reply by its uplink", "reply by the other uplink"  # the latter by routes of the host
# What may leave by an uplink beside the tunnel. Braid sends no portal probes of its own.
ALLOWED = ("ARP", "neighbour discovery", "multicast listener", "DHCP", "DNS of the endpoint", REPLY, OTHER_REPLY)
LISTENER_TYPES, ND_TYPES, ERROR_TYPES = {130, 131, 132, 143}, range(133, 138), {4: {3, 11, 12}, 6: {1, 2, 3, 4}}


def packed(addresses):
    return {ipaddress.ip_address(address).packed for address in addresses}


def asked_name(query):
    """The name in a DNS query (RFC 1035 section 4.1.2), or an empty one."""
    labels, at = [], 12
    while at < len(query) and query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("ascii", "replace"))
        at += 1 + query[at]
    return ".".join(labels).lower()


class Judge:
    """Says of what kind a packet is that an edge sent by an uplink. `networks`: {device: the networks of that link}."""

    def __init__(self, networks):
        self._networks = {device: [ipaddress.ip_network(text) for text in texts] for device, texts in networks.items()}
        self._endpoints, self._strangers, self._resolver = packed(PUBLIC), packed(STRANGER), packed([RESOLVER])

    def kind(self, device, ethertype, data):
        """(TUNNEL, one of ALLOWED or LEAK; the Packet, if it is one)."""
        if ethertype == ARP:
            return "ARP", None
        if ethertype not in (IPV4, IPV6):
            return LEAK, None
        packet = Packet(data)
        return (LEAK if MARKER in data else self._kind(device, packet)), packet

    def _kind(self, device, packet):
        if packet.protocol == socket.IPPROTO_IGMP and packet.target[0] == 224:
            return "multicast listener"
        if packet.protocol == socket.IPPROTO_ICMPV6 and packet.payload[0] in LISTENER_TYPES:
            return "multicast listener"
        if packet.protocol == socket.IPPROTO_ICMPV6 and packet.payload[0] in ND_TYPES and packet.hops == 255:
            return "neighbour discovery"
        if packet.protocol == socket.IPPROTO_UDP:
            if packet.ports in ((68, 67), (546, 547)):
                return "DHCP"
            if packet.target in self._endpoints and packet.ports[1] == PORT and self._near(packet.source):
                return TUNNEL
            if packet.target in self._resolver and packet.ports[1] == 53:
                return "DNS of the endpoint" if asked_name(packet.payload[8:]) == ENDPOINT else LEAK
        if not self._is_reply(packet):
            return LEAK
        return REPLY if self._near(packet.source, device) else OTHER_REPLY

    def _is_reply(self, packet):
        """Answers to the stranger, and the kernel's errors about datagrams that the concentrator has sent."""
        if not self._near(packet.source):
            return False
        if packet.protocol == socket.IPPROTO_UDP:
            return packet.target in self._strangers and packet.ports[0] == ANSWERING
        errors = packet.protocol in (socket.IPPROTO_ICMP, socket.IPPROTO_ICMPV6) and \
            packet.payload[0] in ERROR_TYPES[packet.version]
        if not errors or packet.target not in self._endpoints | self._strangers:
            return False
        about = Packet(packet.payload[8:])
        return about.source == packet.target and self._near(about.target)

    def _near(self, address, device=None):
        address = ipaddress.ip_address(address)
        return any(address in network for name, networks in self._networks.items() if device in (None, name)
                   for network in networks)


class LookOut(Capture):
    """Judges what arrives at devices of a namespace. `leaks`: [(time, device, text)]; `counts`: {(device, kind): n}."""

    def __init__(self, namespace, judge, devices):
        self.judge, self.counts, self.leaks = judge, collections.Counter(), []
        super().__init__(namespace, devices, self._judge)

    def _judge(self, device, ethertype, data):
        kind, packet = self.judge.kind(device, ethertype, data)
        self.counts[device, kind] += 1
        if kind == LEAK:
            self.leaks.append((time.monotonic(), device, str(packet or f"type {ethertype:#06x}")))


def udp(to, source=None, device=None, connected=False):
    """A function that opens a UDP socket, and sends through it."""
    def open_it():
        v6 = ":" in to
        end = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
        end.setblocking(False)
        if device:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        if source:
            end.setsockopt(*((socket.IPPROTO_IPV6, IPV6_FREEBIND) if v6 else (socket.IPPROTO_IP, IP_FREEBIND)), 1)
            end.bind((source, 0))
        if connected:
            end.connect((to, 7777))
        return end, (lambda data: end.send(data)) if connected else (lambda data: end.sendto(data, (to, 7777)))

    return open_it


class Sender:
    """Sends datagrams by all of `ways` (udp()) without a pause, and begins TCP connections to `hosts`. Now and then
    each socket is opened anew, so that there are old and new ones at any time."""

    LIFE = 400  # rounds of a socket

    def __init__(self, namespace, ways, hosts, query=False):
        self.rounds = 0
        self._ways, self._hosts, self._query = ways, hosts, query
        self._stopped = False
        self._tried = collections.deque()
        self._thread = threading.Thread(target=namespace.inside, args=(self._send,), daemon=True)
        self._thread.start()

    def _send(self):
        ends = [None] * len(self._ways)
        while not self._stopped:
            for at, way in enumerate(self._ways):
                if ends[at] and (self.rounds + at * 7) % self.LIFE == 0:
                    ends[at][0].close()
                    ends[at] = None
                try:
                    ends[at] = ends[at] or way()
                    ends[at][1](MARKER)
                except OSError as error:
                    if error.errno in (errno.ENODEV, errno.ENXIO) and ends[at]:
                        ends[at][0].close()
                        ends[at] = None
            if self.rounds % CONNECT_ROUNDS == 0:
                self._connect()
            self.rounds += 1
            time.sleep(PAUSE)
        for end in [*self._tried, *(end[0] for end in ends if end)]:
            end.close()

    def _connect(self):
        for host in self._hosts:
            for port in (80, 9999):  # streams are made of connections to the first, not to the second
                end = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
                end.setblocking(False)
                end.connect_ex((host, port))
                self._tried.append(end)
        while len(self._tried) > KEPT:
            self._tried.popleft().close()
        if self._query:
            name = b"".join(bytes([len(label)]) + label.encode() for label in OTHER_NAME.split(".")) + b"\0"
            with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
                end.sendto(b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + name + b"\0\1\0\1", (RESOLVER, 53))

    def close(self):
        self._stopped = True
        self._thread.join()


class Answers:
    """The edge answers the stranger, who speaks to each address of its uplinks all the time."""

    def __init__(self, edge, stranger, addresses):
        self._ends = edge.inside(lambda: [self._open(address) for address in addresses])
        self._calls = stranger.inside(lambda: [self._open(address, 0) for address in STRANGER])
        self._addresses = addresses
        self._stopped = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @staticmethod
    def _open(address, port=ANSWERING):
        v6 = ":" in address
        end = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
        end.setblocking(False)
        end.setsockopt(*((socket.IPPROTO_IPV6, IPV6_FREEBIND) if v6 else (socket.IPPROTO_IP, IP_FREEBIND)), 1)
        end.bind((address, port))
        return end

    def _serve(self):
        called = 0.0
        while not self._stopped:
            if time.monotonic() - called > 0.1:
                called = time.monotonic()
                for address in self._addresses:
                    with contextlib.suppress(OSError):
                        self._calls[":" in address].sendto(b"hello", (address, ANSWERING))
            for end in select.select([*self._ends, *self._calls], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    data, source = end.recvfrom(100)
                    if end in self._ends:
                        end.sendto(data, source)

    def close(self):
        self._stopped = True
        self._thread.join()
        for end in [*self._ends, *self._calls]:
            end.close()


class Place:
    """The lab with an edge that routes everything into its tunnel. Use as a context manager."""

    def __init__(self, when_down):
        self.when_down = when_down
        self._open = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.lab = stack.enter_context(Lab([Wire("wifi"), Wire("lte")]))
            self.edge, self.client, self.site = self.lab.edge, self.lab.client, self.lab.sites[0]
            self.devices = [self.site.device(index) for index in (0, 1)]
            self.lab.concentrator.address("lo", *(f"{a}/{128 if ':' in a else 32}"
                                                  for a in [*ELSEWHERE, *STRANGER, RESOLVER]))
            self._serve_names(stack)
            self.lab.make_gateways(edge={"device": {"routes": EVERYTHING, "networks": list(self.site.lan),
                                                    "when-down": self.when_down}},
                                   concentrator={"streams": {"enabled": "on"}})
            self.gateway = self.lab.edge_gateway
            self.gateway.config["peers"][0]["prefixes"] = EVERYTHING
            self.lab.gateway.start()
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self._open.__exit__(*error)

    def _serve_names(self, stack):
        folder = pathlib.Path("/etc/netns") / self.edge.name
        folder.mkdir(parents=True)
        stack.callback(folder.rmdir)
        (folder / "resolv.conf").write_text(f"nameserver {RESOLVER}\n", encoding="ascii")
        stack.callback((folder / "resolv.conf").unlink)
        self.lab.start(self.lab.concentrator, "dnsmasq", [
            "dnsmasq", "--no-daemon", "--no-hosts", "--no-resolv", "--conf-file=/dev/null", "--user=root",
            f"--listen-address={RESOLVER}", "--bind-interfaces", f"--address=/{ENDPOINT}/{PUBLIC[0]}"])

    def near(self, index):
        """The edge's addresses at an uplink."""
        return [pair[0] for pair in self.site.link_addresses(index)]

    def watch(self):
        """Starts both senders, the stranger and the look-out."""
        networks = {self.site.far_device(i): [f"{self.near(i)[0]}/24", f"{self.near(i)[1]}/64", "fe80::/10"]
                    for i in (0, 1)}
        networks = {device: [str(ipaddress.ip_network(text, strict=False)) for text in texts]
                    for device, texts in networks.items()}
        out = LookOut(self.lab.concentrator, Judge(networks), networks)
        self._open.callback(out.close)
        everybody = [*INNER, *ELSEWHERE]
        lan = [udp(to, connected=connected) for to in everybody for connected in (False, True)]
        own = [*lan, *(udp(to, device=device) for to in everybody for device in self.devices),
               *(udp(to, source=self.near(index)[":" in to]) for to in everybody for index in (0, 1))]
        self.senders = [Sender(self.client, lan, everybody), Sender(self.edge, own, everybody, query=True)]
        answers = Answers(self.edge, self.lab.concentrator, [*self.near(0), *self.near(1)])
        for each in (*self.senders, answers):
            self._open.callback(each.close)
        return out

    def braidctl(self, *words, check=True):
        self.gateway.write_config()
        return self.edge.run(binary("braidctl"), *words, self.gateway.path, check=check)
