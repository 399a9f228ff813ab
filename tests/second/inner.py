"""Inner packets that this peer sends (docs/protocol.md, section 6), whole and broken."""

import ipaddress
import struct


def checksum(content):
    if len(content) % 2:
        content += b"\0"
    total = sum(struct.unpack(f"!{len(content) // 2}H", content))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ip(source, destination, protocol, payload, extra=0, version=None, words=5):
    """An IP packet of the family of its addresses. `extra`: by how much its length field is too large; `version`,
    `words` (of the header of IPv4): what its first byte says."""
    source, destination = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    version = source.version if version is None else version
    if source.version == 6:
        return struct.pack("!IHBB", version << 28, len(payload) + extra, protocol, 64) + source.packed\
            + destination.packed + payload
    head = struct.pack("!BBHHHBBH", version << 4 | words, 0, 20 + len(payload) + extra, 0, 0, 64, protocol, 0)
    head += source.packed + destination.packed
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def udp(source, destination, content, **broken):
    """A UDP packet between two (address, port)."""
    addresses = ipaddress.ip_address(source[0]).packed + ipaddress.ip_address(destination[0]).packed
    head = struct.pack("!HHH", source[1], destination[1], 8 + len(content))
    whole = checksum(addresses + struct.pack("!HH", 17, 8 + len(content)) + head + b"\0\0" + content) or 0xffff
    return ip(source[0], destination[0], 17, head + struct.pack("!H", whole) + content, **broken)


def payload(packet):
    """What a UDP packet of IPv4 carries, or None for another packet."""
    if packet[0] >> 4 != 4 or packet[9] != 17:
        return None
    return packet[4 * (packet[0] & 15) + 8:]
