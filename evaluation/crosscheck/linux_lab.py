"""The kernel's TCP over emulated links: paths between two hosts, or hosts behind one port of a switch."""

import contextlib
import pathlib
import resource
import selectors
import socket
import struct
import threading
import time

from lab import Lab, Link
from lab.lab import CONGESTION_CONTROLS, tune
from lab.links import LinkEmulator

PACKET = 1500  # bytes of IP
_ALLOWED = pathlib.Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
_HYSTART = pathlib.Path("/sys/module/tcp_cubic/parameters/hystart")
_TOTAL_RTO = 240  # offset of tcpi_total_rto (16 bits) in struct tcp_info, Linux 6.7 and later
_CHUNK = bytes(1 << 16)


@contextlib.contextmanager
def without_hystart():
    """off, because RFC 9438 and Braid's CUBIC do not have it. The setting is global for the machine."""
    before = _HYSTART.read_text(encoding="ascii")
    _HYSTART.write_text("0", encoding="ascii")
    try:
        yield
    finally:
        _HYSTART.write_text(before, encoding="ascii")


def timeouts_of(connection):
    """How often the retransmission timer of a socket has expired."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    if len(info) < _TOTAL_RTO + 2:
        raise RuntimeError("this kernel does not count the timeouts of a connection: Linux 6.7 or later is needed")
    return struct.unpack_from("H", info, _TOTAL_RTO)[0]


class _TcpLab(Lab):
    """Hosts with the kernel's TCP. Subclasses define the links in _plan() and then set addresses."""

    def __init__(self, seed):
        super().__init__([], seed=seed)

    def _build(self):
        (self.directory / "logs").mkdir(parents=True, mode=0o700)
        _ALLOWED.write_text(CONGESTION_CONTROLS, encoding="ascii")
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        self.sender, self.receiver = self.namespace("sender"), self.namespace("receiver")
        plan = self._plan()
        for space in self._namespaces:
            tune(space)
            space.sysctl(net__ipv4__tcp_max_syn_backlog=4096)
        self.links = LinkEmulator(self, plan, self._seed)
        self._configure()

    def use(self, control="newreno", recovery="linux"):
        """Sets both hosts' TCP for connections from now on. `control`: the model's name of the congestion control;
        `recovery`: "linux", or "rack" without tail loss probes. Linux 6.17 and later have no recovery without RACK."""
        for host in (self.sender, self.receiver):
            host.set_congestion_control({"newreno": "reno", "cubic-8312": "cubic"}.get(control, control))
            host.sysctl(net__ipv4__tcp_recovery=1, net__ipv4__tcp_early_retrans=3 if recovery == "linux" else 0)

    def connect(self, index, count=1):
        """[(the sender's socket, the receiver's)] of connections over the link or from the host of that number. The
        sender's buffer takes a whole flow of 100 KB."""
        def listen():
            listener = socket.create_server((self._target(index), 0), backlog=count)
            return listener, listener.getsockname()
        listener, address = self.receiver.inside(listen)

        def dial():
            connection = socket.socket()
            self._leave(connection, index)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
            connection.settimeout(10)
            connection.connect(address)
            connection.setblocking(False)
            return connection
        pairs = []
        with listener:
            for _ in range(count):
                sender = self.sender.inside(dial)
                receiver = listener.accept()[0]
                receiver.setblocking(False)
                pairs.append((sender, receiver))
        return pairs

    def _leave(self, connection, index):
        """Before it connects."""


class Paths(_TcpLab):
    """`count` paths between two hosts."""

    def __init__(self, count, rate, rtt, queue, seed=1):
        """`rate`: bit/s; `rtt`: us; `queue`: packets."""
        super().__init__(seed)
        self._paths = [Link(f"path{i}", rate / 1e6, rtt / 1e3, more={"queue_bytes": queue * PACKET})
                       for i in range(count)]

    def lose(self, index, share):
        """Loses this share of the packets from the sender, including its SYN."""
        self.links.set(f"path{index}", "ab", loss=share)

    def _plan(self):
        return [(link.name, self.sender, link.name, self.receiver, link.name, link) for link in self._paths]

    def _configure(self):
        for i, link in enumerate(self._paths):
            self.sender.address(link.name, f"10.1.{i}.1/24")
            self.receiver.address(link.name, f"10.1.{i}.2/24")

    @staticmethod
    def _target(index):
        return f"10.1.{index}.2"


class Port(_TcpLab):
    """Hosts behind a switch with one port to the receiver. The hosts are devices of one namespace."""

    def __init__(self, hosts, rate, rtt, queue, seed=1):
        """Rate and RTT as in Paths, for every link. `queue`: of the port. A host's own queue holds everything that it
        sends."""
        super().__init__(seed)
        self._hosts = [Link(f"host{i}", rate / 1e6, rtt / 2e3, more={"queue_bytes": 1 << 24}) for i in range(hosts)]
        self._port = Link("port", rate / 1e6, rtt / 2e3, more={"queue_bytes": queue * PACKET})

    def _plan(self):
        self._switch = self.namespace("switch")
        plan = [(link.name, self.sender, link.name, self._switch, link.name, link) for link in self._hosts]
        return [*plan, ("port", self._switch, "port", self.receiver, "port", self._port)]

    def _configure(self):
        self._switch.address("port", "10.2.0.1/24")
        self.receiver.address("port", "10.2.0.2/24")
        self.receiver.route("10.1.0.0/16", "via", "10.2.0.1")
        for i, link in enumerate(self._hosts):
            self.sender.address(link.name, f"10.1.{i}.1/24")
            self._switch.address(link.name, f"10.1.{i}.2/24")
            self.sender.ip("route", "add", "10.2.0.0/24", "dev", link.name, "src", f"10.1.{i}.1", "metric", str(i + 1))

    def _leave(self, connection, index):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, f"host{index}\0".encode())

    @staticmethod
    def _target(_):
        return "10.2.0.2"


def bulk(pairs, seconds):
    """All hosts send as much as they can for `seconds`. Returns the bytes that arrived from each."""
    arrived = [0] * len(pairs)
    with selectors.DefaultSelector() as selector:
        for i, (sender, receiver) in enumerate(pairs):
            selector.register(sender, selectors.EVENT_WRITE, None)
            selector.register(receiver, selectors.EVENT_READ, i)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                if key.data is None:
                    key.fileobj.send(_CHUNK)
                else:
                    arrived[key.data] += len(key.fileobj.recv(1 << 20))
    return arrived


class _Arrivals:
    """Counts what arrives at some sockets."""

    def __init__(self, receivers, size):
        self._selector = selectors.DefaultSelector()
        self.missing = {receiver: size for receiver in receivers}
        for receiver in receivers:
            self._selector.register(receiver, selectors.EVENT_READ)

    def wait(self, until):
        """Runs until that time, or until everything has arrived."""
        while self.missing and (left := until - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                receiver = key.fileobj
                self.missing[receiver] -= len(receiver.recv(1 << 20))
                if self.missing[receiver] <= 0:
                    del self.missing[receiver]
                    self._selector.unregister(receiver)

    def close(self):
        self._selector.close()


def flow_times_out(pair, size, patience=10):
    """Sends `size` bytes. True when a timer expired before all had arrived."""
    sender, receiver = pair
    arrivals = _Arrivals([receiver], size)
    with contextlib.closing(arrivals):
        if sender.send(bytes(size)) != size:
            raise RuntimeError("the sender's buffer is too small for a flow")
        end = time.monotonic() + patience
        while arrivals.missing and not timeouts_of(sender) and time.monotonic() < end:
            arrivals.wait(min(time.monotonic() + 0.02, end))
        late = timeouts_of(sender) > 0
        if arrivals.missing and not late:
            raise RuntimeError(f"a flow of {size} bytes took more than {patience} s without a timeout")
        return late


def incast(pairs, size, offsets, patience=30):
    """Each sends `size` bytes at its offset (seconds). Returns (seconds until all have arrived, timeouts)."""
    arrivals = _Arrivals([receiver for _, receiver in pairs], size)
    with contextlib.closing(arrivals):
        begin = time.monotonic() + 0.02
        for offset, (sender, _) in sorted(zip(offsets, pairs), key=lambda entry: entry[0]):
            arrivals.wait(begin + offset)
            time.sleep(max(0, begin + offset - time.monotonic()))
            if sender.send(bytes(size)) != size:
                raise RuntimeError("the sender's buffer is too small for a flow")
        arrivals.wait(begin + patience)
        if arrivals.missing:
            raise RuntimeError(f"{len(arrivals.missing)} flows did not end within {patience} s")
        return time.monotonic() - begin, sum(timeouts_of(sender) for sender, _ in pairs)


def close(pairs):
    for pair in pairs:
        for end in pair:
            end.close()


def in_threads(function, items):
    """[function(item)], all in parallel. An error of one is raised in the caller."""
    results, errors = [None] * len(items), []

    def one(i):
        try:
            results[i] = function(items[i])
        except BaseException as error:  # raised below
            errors.append(error)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(items))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
