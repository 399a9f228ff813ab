"""Raw packets in a namespace: captures, and pings inside a VLAN.

Python's socket module is enough: AF_PACKET frames, VLAN tags by PACKET_AUXDATA (packet(7))."""

import contextlib
import ipaddress
import select
import socket
import struct
import threading
import time

ETH_P_ALL, ETH_P_IP, ETH_P_8021Q = 0x0003, 0x0800, 0x8100
SOL_PACKET, PACKET_STATISTICS, PACKET_AUXDATA = 263, 6, 8
SO_RCVBUFFORCE = 33
BUFFER = 32 << 20  # bytes that wait until a Capture takes them
EXTENSIONS = {0, 43, 60}  # headers of IPv6 before the payload that say their length
TP_STATUS_VLAN_VALID = 1 << 4


def checksum(data):
    """The Internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Packet:
    """An IP packet: its addresses, protocol, ports and payload."""

    def __init__(self, data):
        self.version = data[0] >> 4
        self.ports = (0, 0)
        if self.version == 4:
            self.protocol, self.hops, start = data[9], data[8], (data[0] & 15) * 4
            self.source, self.target = data[12:16], data[16:20]
        else:
            self.protocol, self.hops, start = data[6], data[7], 40
            self.source, self.target = data[8:24], data[24:40]
            while self.protocol in EXTENSIONS and len(data) > start + 1:
                self.protocol, start = data[start], start + 8 * (data[start + 1] + 1)
        self.payload = data[start:]
        if self.protocol in (socket.IPPROTO_UDP, socket.IPPROTO_TCP) and len(self.payload) >= 4:
            self.ports = struct.unpack("!HH", self.payload[:4])

    def __str__(self):
        names = {1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6"}
        name = names.get(self.protocol, f"protocol {self.protocol}")
        kind = f" type {self.payload[0]}" if self.protocol in (1, 58) and self.payload else ""
        port = f" port {self.ports[1]}" if self.ports[1] else ""
        return (f"IPv{self.version} {name}{kind} from {ipaddress.ip_address(self.source)} to "
                f"{ipaddress.ip_address(self.target)}{port}")


class Capture:
    """Calls `take(device, ethertype, packet)` for each packet that arrives at devices of a namespace, until close().
    A packet is given without its link's header, at most 2048 bytes of it."""

    def __init__(self, namespace, devices, take):
        self._take, self.lost = take, 0
        self._ends = namespace.inside(lambda: [self._open(device) for device in devices])
        self._stopped = False
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    @staticmethod
    def _open(device):
        end = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        end.bind((device, ETH_P_ALL))
        return end

    def _look(self):
        while not self._stopped:
            for end in select.select(self._ends, [], [], 0.1)[0]:
                with contextlib.suppress(OSError):  # the device is down
                    data, (device, ethertype, direction, *_) = end.recvfrom(2048)
                    if direction != socket.PACKET_OUTGOING:
                        self._take(device, ethertype, data)

    def drops(self):
        """Packets that the kernel could not keep for the capture, so far."""
        for end in self._ends:
            self.lost += struct.unpack("II", end.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        return self.lost

    def close(self):
        self._stopped = True
        self._thread.join()
        for end in self._ends:
            end.close()


def capture_udp(namespace, device, port, count, timeout=5, inbound_only=False):
    """Payloads of up to `count` IPv4 UDP datagrams to or from a port that pass a device."""

    def body():
        found = []
        with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP)) as sniffer:
            sniffer.bind((device, ETH_P_IP))
            deadline = time.monotonic() + timeout
            while len(found) < count and time.monotonic() < deadline:
                sniffer.settimeout(max(deadline - time.monotonic(), 0.001))
                try:
                    packet, source = sniffer.recvfrom(65536)
                except TimeoutError:
                    break
                if inbound_only and source[2] == socket.PACKET_OUTGOING:
                    continue
                header = (packet[0] & 15) * 4
                if packet[9] == socket.IPPROTO_UDP and port in struct.unpack("!HH", packet[header:header + 4]):
                    found.append(packet[header + 8:])
        return found

    return namespace.inside(body)


class VlanHost:
    """One address in a VLAN of an Ethernet device: it answers ARP-free ICMP echo requests, tagged as they came.

    Frames go to the broadcast address, so that no ARP is needed; the kernel's own stack ignores tagged frames."""

    def __init__(self, namespace, device, vlan, mac):
        self._vlan = vlan
        self._mac = mac
        self._socket = namespace.inside(self._open, device)
        self._replies = set()
        self._stopped = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @staticmethod
    def _open(device):
        handle = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        handle.bind((device, ETH_P_ALL))
        handle.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        handle.settimeout(0.1)
        return handle

    def _send(self, payload):
        frame = b"\xff" * 6 + self._mac + struct.pack("!HHH", ETH_P_8021Q, self._vlan, ETH_P_IP) + payload
        self._socket.send(frame)

    def _serve(self):
        while not self._stopped:
            try:
                frame, extra, _, source = self._socket.recvmsg(65536, 256)
            except TimeoutError:
                continue
            except OSError:
                return
            if source[2] == socket.PACKET_OUTGOING or _vlan_of(frame, extra) != self._vlan:
                continue
            packet = frame[14:] if frame[12:14] == b"\x08\x00" else frame[18:]
            kind, _, _, name, number = struct.unpack("!BBHHH", packet[20:28])
            if kind == 8:
                body = struct.pack("!BBHHH", 0, 0, 0, name, number) + packet[28:struct.unpack("!H", packet[2:4])[0]]
                self._send(_ipv4(packet[16:20], packet[12:16], _icmp(body)))
            elif kind == 0:
                self._replies.add(number)

    def ping(self, count=5, size=56, timeout=3):
        """Sends echo requests and returns how many were answered."""
        self._replies.clear()
        for number in range(count):
            body = struct.pack("!BBHHH", 8, 0, 0, 77, number) + bytes(size)
            self._send(_ipv4(b"\x0a\x63\x00\x01", b"\x0a\x63\x00\x02", _icmp(body)))
            time.sleep(0.02)
        deadline = time.monotonic() + timeout
        while len(self._replies) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return len(self._replies)

    def close(self):
        self._stopped = True
        self._thread.join(2)
        self._socket.close()


def _vlan_of(frame, extra):
    """The tag of a received frame, which the kernel hands over beside it or leaves in it; None without."""
    for level, kind, data in extra:
        if level == SOL_PACKET and kind == PACKET_AUXDATA:
            status, _, _, _, _, tag, _ = struct.unpack("=IIIHHHH", data[:20])
            if status & TP_STATUS_VLAN_VALID:
                return tag & 0xFFF
    if frame[12:14] == b"\x81\x00":
        return struct.unpack("!H", frame[14:16])[0] & 0xFFF
    return None


def _icmp(body):
    return body[:2] + struct.pack("!H", checksum(body)) + body[4:]


def _ipv4(source, target, payload):
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 64, 1, 0, source, target)
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload
