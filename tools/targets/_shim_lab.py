"""The ack shim in the lab: one path, and a lossy hop outside the tunnel between the receiver and its gateway.

10 ms of round trip in all, 2 ms of it on that hop.
"""

import contextlib

from lab import Lab, Link

from ._flows import Flows

LAB_PROGRAMS = ["braidd", "braidctl", "linkemu"]
RTT = 0.010  # seconds, of the whole path
_PATH_MS, _HOP_MS = 8, 2
_RATE = 100  # Mbit/s of the path
_RECEIVERS = {"down": "client", "up": "server"}
_DIRECTIONS = {"from host": "ab", "to host": "ba"}


class ShimLab:
    """Flows in one direction with losses on the receiver's hop. A context manager."""

    def __init__(self, direction, jitter=0.0, parallel=1):
        """`jitter`: of each leg, as a share of its round trip."""
        self.direction = direction
        self.parallel = parallel
        self._receiver = _RECEIVERS[direction]
        path, hop = ({"jitter_ms": ms * jitter / 2} for ms in (_PATH_MS, _HOP_MS))
        self._stack = contextlib.ExitStack()
        self._links = [Link("dsl", _RATE, _PATH_MS, more=path)]
        self._lans = {self._receiver: Link("lan", 1000, _HOP_MS, more=hop)}

    def __enter__(self):
        self.lab = self._stack.enter_context(Lab(self._links, lans=self._lans))
        self.lab.start_gateways()
        self.run(1400, 5)  # the path's size and its round trip are known then
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    @property
    def hosts(self):
        """(sender, receiver): their namespaces."""
        pair = self.lab.server, self.lab.client
        return pair if self.direction == "down" else pair[::-1]

    def use(self, congestion_control="cubic", sack=True, timestamps=True, tlp=True):
        """Settings of both hosts' kernels for connections from now on."""
        for host in self.hosts:
            host.set_congestion_control(congestion_control)
            host.sysctl(net__ipv4__tcp_sack=int(sack), net__ipv4__tcp_timestamps=int(timestamps),
                        net__ipv4__tcp_early_retrans=3 if tlp else 0)

    def lose(self, share, way=None):
        """Loses this share of packets on the receiver's hop: "from host", "to host", or (None) in both directions."""
        self.lab.links.set(f"lan.{self._receiver}", _DIRECTIONS.get(way, "both"), loss=share)

    def lose_segments(self, numbers):
        """Loses these data segments of each connection (counted from 0) before the receiver's TCP, when they first
        arrive; [] ends that. Not at the gateway, because it may forward super-packets of many segments."""
        space = self.hosts[1]
        space.sysctl(net__netfilter__nf_conntrack_acct=1)
        # Before the data, the sender's first packet is its SYN or SYN-ACK; the one that connects also has sent an ACK.
        side, first = ("reply", 2) if self.direction == "down" else ("original", 3)
        rule = ""
        if numbers:
            packets = ", ".join(str(first + number) for number in numbers)
            rule = f'iifname "lan0" ct direction {side} ct {side} packets {{ {packets} }} counter drop'
        path = self.lab.directory / "loss.nft"
        path.write_text(f"""
table inet loss
delete table inet loss
table inet loss {{
  chain arrival {{
    type filter hook prerouting priority 0;
    {rule}
  }}
}}
""", encoding="ascii")
        space.run("nft", "-f", path)

    def lost_segments(self):
        """The number of segments that the last lose_segments() has dropped until now."""
        return self.hosts[1].nft_packets("inet", "loss")

    def run(self, size, count):
        """Completions and the number of failed flows, see Flows.run()."""
        return Flows(self.lab, self.direction, size, self.parallel).run(count)

    def repeated(self):
        """Segments resent by the sender's kernel, and segments that the receiver's kernel already had."""
        sender, receiver = (host.counters() for host in self.hosts)
        return sender["Tcp.RetransSegs"] + receiver["TcpExt.TCPDSACKOldSent"]

    def actuators(self):
        """{name: {fired, useful, spurious}} of both gateways, since the last switch."""
        total = {}
        for gateway in self.lab.gateways():
            for entry in gateway.status()["ack_shim"]["actuators"]:
                sums = total.setdefault(entry["name"], {"fired": 0, "useful": 0, "spurious": 0})
                for key in sums:
                    sums[key] += entry[key]
        return {name: sums for name, sums in total.items() if sums["fired"]}
