"""Set-ups of two gateways that are broken on purpose, of all kinds. Each is really set up, and has a pattern for the
cause and one for the remedy, which must appear in the output of doctor or in the daemon's log."""

import signal
import subprocess
import sys
import time

from lab.gateway import PORT, binary
from lab.services import Dnsmasq
from lab.site import PUBLIC

from ._broken import DOCTOR_SECONDS, SETTLED, Setups

SETUPS = Setups()
broken = SETUPS.broken


# ---- identities

@broken("the peer's pin is wrong here", r"another pin", r"braidctl pin FILE\.crt")
def _wrong_pin(p):
    p.start(p.hub)
    p.edge.config["peers"][0]["pin"] = "sha256:" + "A" * 43 + "="
    return p.asked(p.edge)


@broken("our pin is missing at the peer", r"does not accept us", r"put this gateway's pin into its 'pin'")
def _foreign_pin(p):
    p.hub.config["peers"][0]["pin"] = "sha256:" + "E" * 43 + "="
    p.start(p.hub)
    return p.asked(p.edge)


@broken("a stranger calls: seen at the concentrator", r"turned away: .*stranger", r"add a peer with this pin")
def _stranger(p):
    p.hub.config["peers"][0]["pin"] = "sha256:" + "E" * 43 + "="
    p.start(p.hub, p.edge)
    time.sleep(SETTLED)
    return p.asked(p.hub)


@broken("the gateway's own pin as the peer's", r"is this gateway's own pin", r"put the pin of the other gateway")
def _own_pin(p):
    p.edge.config["peers"][0]["pin"] = p.fresh(p.hub)["peers"][0]["pin"]
    return p.asked(p.edge)


@broken("the key is readable by others", r"private key can be used by others", r"chmod 600")
def _open_key(p):
    key = p.lab.directory / "edge.key"
    key.chmod(0o644)
    p.undo(key.chmod, 0o600)
    return p.asked(p.edge)


@broken("key and certificate of different gateways", r"is not the certificate of the key",
        r"give the two files of one")
def _mixed_identity(p):
    p.edge.config["identity"]["certificate"] = "concentrator.crt"
    return p.asked(p.edge)


@broken("no key", r"edge2\.key.*(No such file|cannot)", r"keygen")
def _no_key(p):
    p.edge.config["identity"]["key"] = "edge2.key"
    return p.asked(p.edge)


@broken("ciphers differ", r"no cipher in common|cipher", r"tunnel\.cipher")
def _ciphers(p):
    p.hub.config["tunnel"] = {"cipher": "chacha20-poly1305"}
    p.edge.config["tunnel"] = {"cipher": "aes-256-gcm"}
    p.start(p.hub)
    return p.asked(p.edge)


# ---- the file

@broken("an unknown key in the file", r"uplink:? |unknown", r"Remedy: \S+")
def _unknown_key(p):
    p.edge.config["uplink"] = p.edge.config.pop("uplinks")
    return p.asked(p.edge)


@broken("the endpoint lies in what is routed into the tunnel", r"holds the endpoint", r"use 'gateway: auto'")
def _loop(p):
    p.edge.config["device"]["routes"].append("203.0.113.0/24")
    p.edge.config["peers"][0]["prefixes"].append("203.0.113.0/24")
    p.edge.config["uplinks"][0]["gateway"] = "none"
    return p.asked(p.edge)


# ---- the host

@broken("no TUN device", r"cannot open /dev/net/tun: No such file", r"modprobe tun")
def _no_tun(p):
    return p.shell(p.edge, "mount -t tmpfs none /dev/net")


@broken("the TUN device may not be opened", r"cannot open /dev/net/tun: Permission denied|Operation not permitted",
        r"mode 0666|DeviceAllow")
def _shut_tun(p):
    # On a file system mounted with nodev even root cannot open a device node.
    return p.shell(p.edge, "mount -t tmpfs -o nodev none /dev/net; mknod /dev/net/tun c 10 200")


@broken("no capability", r"CAP_NET_ADMIN is out of reach", r"--cap-add NET_ADMIN")
def _no_capability(p):
    return p.asked(p.edge, wrapper=["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"])


@broken("small socket buffers in a container of a user", r"net\.core\.rmem_max allows",
        r"sysctl -w net\.core\.rmem_max")
def _buffers(p):
    # The limit is that of the whole machine, which others use. So only doctor sees Debian's default value here.
    limit = p.lab.directory / "rmem_max"
    limit.write_text("212992\n")
    return p.shell(p.edge, f"mount --bind {limit} /proc/sys/net/core/rmem_max", ["--user", "--map-root-user"])


@broken("forwarding is off", r"net\.ipv4\.ip_forward is off", r"sysctl -w net\.ipv4\.ip_forward=1")
def _forwarding(p):
    p.edge.config["device"]["networks"] = ["192.168.10.0/24"]
    p.sysctl(p.space, net__ipv4__ip_forward=0)
    return p.asked(p.edge)


@broken("nat without forwarding", r"net\.ipv4\.ip_forward is off, and .*\(nat\)",
        r"'forwarding: on' in the configuration")
def _nat(p):
    p.hub.config["nat"] = "on"
    p.sysctl(p.far, net__ipv4__ip_forward=0)
    return p.asked(p.hub)


@broken("a forwarded port without forwarding", r"net\.ipv4\.ip_forward is off, and port 8080 leads to .*\(forwards\)",
        r"sysctl -w net\.ipv4\.ip_forward=1")
def _forwards(p):
    host = p.hub.config["peers"][0]["prefixes"][0].removesuffix("/32")
    p.hub.config["forwards"] = [{"port": 8080, "to": host}]
    p.sysctl(p.far, net__ipv4__ip_forward=0)
    return p.asked(p.hub)


@broken("strict reverse path filter on one uplink", r"strict reverse path filter on uplink lte.*lte0\.rp_filter",
        r"sysctl -w net\.ipv4\.conf\.lte0\.rp_filter=2")
def _strict_interface(p):
    p.sysctl(p.space, net__ipv4__conf__lte0__rp_filter=1)
    return p.asked(p.edge)


@broken("strict reverse path filter for all", r"strict reverse path filter.*conf\.all\.rp_filter",
        r"sysctl -w net\.ipv4\.conf\.all\.rp_filter=2")
def _strict_all(p):
    p.sysctl(p.space, net__ipv4__conf__all__rp_filter=1)
    return p.asked(p.edge)


@broken("the clock is far behind", r"clock: it says .*certificate was made", r"timedatectl set-ntp true")
def _clock(p):
    certificate, key = p.lab.directory / "later.crt", p.lab.directory / "edge.key"
    subprocess.run(["openssl", "x509", "-new", "-key", key, "-subj", "/CN=edge", "-not_before", "20380101000000Z",
                    "-not_after", "20480101000000Z", "-out", certificate], check=False, capture_output=True)
    if not certificate.exists():  # OpenSSL before 3.4
        _certificate_from_the_future(key, certificate)
    p.edge.config["identity"]["certificate"] = "later.crt"
    return p.asked(p.edge)


def _certificate_from_the_future(key, certificate):
    ca = certificate.parent / "ca"
    ca.mkdir(exist_ok=True)
    (ca / "index.txt").write_text("")
    (ca / "serial").write_text("01\n")
    (ca / "ca.cnf").write_text(f"[ca]\ndefault_ca=x\n[x]\ndatabase={ca}/index.txt\nserial={ca}/serial\n"
                               f"new_certs_dir={ca}\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
    request = ca / "request.pem"
    subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", "/CN=edge", "-out", request], check=True,
                   capture_output=True)
    subprocess.run(["openssl", "ca", "-batch", "-selfsign", "-notext", "-config", ca / "ca.cnf", "-keyfile", key,
                    "-in", request, "-startdate", "20380101000000Z", "-enddate", "20480101000000Z",
                    "-out", certificate], check=True, capture_output=True)


@broken("the disk is full", r"the disk of .* is full", r"delete something there")
def _full_disk(p):
    place = p.lab.directory / "small"
    p.hub.config["state"] = str(place / "hub.state")
    return p.shell(p.hub, f"mkdir -p {place}; mount -t tmpfs -o size=64k none {place}; "
                          f"head -c 61440 /dev/zero > {place}/filler || true")


@broken("the disk is read-only", r"file system that is read-only", r"mount it writable")
def _read_only(p):
    place = p.lab.directory / "fixed"
    p.hub.config["state"] = str(place / "hub.state")
    return p.shell(p.hub, f"mkdir -p {place}; mount -t tmpfs -o ro none {place}")


@broken("no folder for the state", r"no folder .*/nowhere", r"install -d")
def _no_folder(p):
    p.hub.config["state"] = str(p.lab.directory / "nowhere" / "below" / "hub.state")
    return p.asked(p.hub)


@broken("no folder for the control socket", r"no folder /run/braid-nowhere", r"start the daemon by its unit")
def _no_run(p):
    p.edge.config["control"] = {"socket": "/run/braid-nowhere/edge.sock"}
    return p.asked(p.edge)


@broken("an unknown group for the control socket", r"no group 'nobodys'", r"create it, or change control\.group")
def _group(p):
    p.edge.config["control"]["group"] = "nobodys"
    return p.log_of(p.edge)


@broken("the device's name is taken", r"there is an interface 'braid0' already", r"ip link del braid0")
def _name_taken(p):
    p.command(p.space, "ip link add braid0 type veth peer name braid0x", "ip link del braid0")
    return p.asked(p.edge)


@broken("a daemon that was killed left its socket", r"nobody answers: the daemon was killed", r"systemctl restart")
def _killed(p):
    p.start(p.edge)
    p.edge.stop(signal.SIGKILL)
    p.undo(lambda: p.edge.socket.unlink(missing_ok=True))
    return p.asked(p.edge)


# ---- the network at the edge

@broken("an interface is missing", r"there is no interface lte9", r"'ip -br link' lists")
def _no_interface(p):
    p.edge.config["uplinks"][1]["interface"] = "lte9"
    return p.asked(p.edge)


@broken("an interface is down", r"the link lte0 is down", r"ip link set lte0 up")
def _link_down(p):
    p.unplug("ip link set lte0 down")
    return p.asked(p.edge)


@broken("an interface without address", r"lte0 has no usable address", r"DHCP client")
def _no_address(p):
    p.unplug("ip address flush dev lte0 scope global")
    return p.asked(p.edge)


@broken("a source address that is not there", r"does not have the configured source address", r"uplinks\.source")
def _no_source(p):
    p.edge.config["uplinks"][0]["source"] = "198.51.100.7"
    return p.asked(p.edge)


@broken("a router in no network of the uplink", r"router 10\.9\.9\.9 is in no network of dsl0",
        r"correct uplinks\.gateway")
def _foreign_router(p):
    p.edge.config["uplinks"][0]["gateway"] = "10.9.9.9"
    return p.asked(p.edge)


@broken("the same network at both sides", r"network of lan0, 192\.168\.100\.0/24, holds 192\.168\.100\.0/24",
        r"renumber one of the two LANs")
def _same_lan(p):
    p.command(p.space, "ip address add 192.168.100.9/24 dev lan0 noprefixroute",
              "ip address del 192.168.100.9/24 dev lan0")
    return p.asked(p.edge)


@broken("the name server does not answer", r"hub\.example\.org over dsl: no server answers \(198\.51\.100\.53 of",
        r"see to the name servers of dsl0")
def _dns_silent(p):
    p.edge.config["peers"][0]["endpoints"] = [f"hub.example.org:{PORT}"]
    p.nft(p.far, "table inet t { chain o { type filter hook prerouting priority 0; meta l4proto { tcp, udp } "
                 "th dport 53 drop; } }")
    return p.asking("198.51.100.53")


@broken("the peer's name is not known", r"hub\.example\.org over dsl: the name does not exist, or has no address",
        r"see to the name servers of dsl0")
def _dns_unknown(p):
    p.edge.config["peers"][0]["endpoints"] = [f"hub.example.org:{PORT}"]
    server = Dnsmasq(p.lab, {"hub.example.org": ""}, namespace=p.far, listen=PUBLIC[0])
    p.undo(p.lab.stop, server.process)
    return p.asking(PUBLIC[0])


@broken("a firewall at the edge's output", r"(cannot send to|refuses to send).*", r"'output'")
def _output(p):
    p.start(p.hub)
    p.nft(p.space, f"table inet t {{ chain o {{ type filter hook output priority 0; udp dport {PORT} drop; }} }}")
    return p.asked(p.edge)


# ---- the way

@broken("nobody is at the endpoint", r"no answer: the peer is down", r"is braidd running")
def _nobody(p):
    return p.asked(p.edge)


@broken("one uplink leads nowhere, a daemon runs", r"lte to concentrator .*no answer comes back",
        r"see to the line itself")
def _dead_uplink(p):
    p.nft(p.far, "table inet t { chain i { type filter hook prerouting priority -300; iifname \"lte0\" udp dport "
                 f"{PORT} drop; }} }}")
    p.start(p.hub, p.edge)
    p.edge.wait_up(subflows=1)
    time.sleep(SETTLED)
    return p.asked(p.edge)


@broken("one uplink leads nowhere, no daemon runs", r"lte to concentrator .*no answer comes back",
        r"see to the line itself")
def _dead_uplink_tried(p):
    p.nft(p.far, "table inet t { chain i { type filter hook prerouting priority -300; iifname \"lte0\" udp dport "
                 f"{PORT} drop; }} }}")
    p.start(p.hub)
    return p.asked(p.edge)


@broken("an MTU hole: large datagrams do not pass", r"packets above \d+ bytes are lost on the way", r"tracepath")
def _hole(p):
    p.nft(p.far, f"table inet t {{ chain i {{ type filter hook prerouting priority -300; udp dport {PORT} "
                 "meta length > 1290 drop; } }")
    p.start(p.hub)
    return p.asked(p.edge)


@broken("an MTU hole, seen by the running daemon", r"packets above \d+ bytes are lost on the way", r"tracepath")
def _hole_running(p):
    p.nft(p.far, f"table inet t {{ chain i {{ type filter hook prerouting priority -300; udp dport {PORT} "
                 "meta length > 1290 drop; } }")
    p.connect()
    return p.asked(p.edge)


@broken("an MTU hole that no handshake fits through", r"(datagrams of 1200 bytes do not|not finished in time)",
        r"let UDP datagrams of 1200 bytes pass")
def _deep_hole(p):
    p.nft(p.far, f"table inet t {{ chain i {{ type filter hook prerouting priority -300; udp dport {PORT} "
                 "meta length > 700 drop; } }")
    p.start(p.hub)
    return p.asked(p.edge)


# ---- at the concentrator

@broken("a firewall drops by its policy",
        rf"UDP port {PORT} .*dropped by chain input of table inet filter, by its policy",
        rf"nft insert rule inet filter input udp dport {PORT} accept")
def _policy(p):
    p.nft(p.far, "table inet filter { chain input { type filter hook input priority 0; policy drop; "
                 "ct state established,related accept; iif lo accept; tcp dport 22 accept; "
                 "ip saddr 192.0.2.0/24 accept; ip protocol icmp accept; } }")
    return p.asked(p.hub)


@broken("a firewall rejects in a chain behind",
        rf"UDP port {PORT} .*dropped by chain input of table inet fw, by a rule",
        rf"udp dport {PORT} accept")
def _rejected(p):
    p.nft(p.far, "table inet fw { chain services { udp dport 53 accept; reject; } "
                 "chain input { type filter hook input priority 0; ct state vmap { established : accept, "
                 "related : accept }; iifname lo accept; meta l4proto udp jump services; } }")
    return p.asked(p.hub)


@broken("the port is taken", rf"cannot listen at 0\.0\.0\.0:{PORT}: Address already in use", r"ss -lunp")
def _port_taken(p):
    program = f"""
import socket, time
taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taken.bind(("0.0.0.0", {PORT}))
print("ready", flush=True)
time.sleep(99)
"""
    process = p.lab.start(p.far, "squatter", [sys.executable, "-c", program])
    p.undo(p.lab.stop, process)
    p.lab.wait_for_line("squatter", "ready")
    return p.asked(p.hub)


@broken("listening at an address of another host", r"cannot listen at 198\.51\.100\.1:4433: no interface",
        r"listen at 0\.0\.0\.0")
def _foreign_listen(p):
    p.hub.config["listen"] = ["198.51.100.1:4433"]
    return p.asked(p.hub)


@broken("nothing arrives at the concentrator", r"no datagram at all has arrived", r"forward it in a NAT router")
def _unreached(p):
    p.start(p.hub)
    time.sleep(SETTLED)
    return p.asked(p.hub)


@broken("callers with a wrong pin: seen at the concentrator", r"for a gateway with another pin|nothing.*arrived",
        r"put this gateway's pin: sha256:")
def _calls_with_wrong_pin(p):
    p.edge.config["peers"][0]["pin"] = "sha256:" + "A" * 43 + "="
    p.start(p.hub, p.edge)
    time.sleep(SETTLED)
    return p.asked(p.hub)


@broken("hosts of a network that is not in the peer's prefixes", r"packets of peers were dropped.*foreign_source",
        r"'prefixes'")
def _prefixes(p):
    p.hub.config["peers"][0]["prefixes"] = ["10.255.0.2/32"]
    p.hub.config["device"]["routes"] = []
    p.connect()
    p.lab.client.run("ping", "-n", "-q", "-c", "40", "-i", "0.02", "-W", "1", "192.168.100.2", check=False)
    return p.asked(p.hub)


@broken("a metered uplink at its cap", r"lte: its cap of 10\.0 MB is reached", r"raise metered\.cap")
def _cap(p):
    p.edge.config["uplinks"][1]["metered"] = {"cap": "10MB"}
    p.edge.config["uplinks"][1]["use"] = "normal"
    p.connect()
    p.edge.namespace.run(binary("braidctl"), "test", "--path", "lte", "--seconds", "5", "--socket", p.edge.socket,
                         check=False)  # the cap may be reached before anything is measured
    p.lab.wait_for(lambda: any((u.get("metered") or {}).get("closed") for u in p.edge.status()["gateway"]["uplinks"]),
                   "the cap to be reached")
    return p.asked(p.edge)


# ---- who wants to join

SHORTEST = 60  # seconds that an invitation is good for at least


def _join(p, line):
    """The output of `braidctl join` at the edge, which must refuse and leave no files."""
    folder = p.lab.directory / "joined"
    words = p.space.words(binary("braidctl"), "join", "--yes", "--no-start", "--dir", folder)
    done = subprocess.run(words, input=line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=DOCTOR_SECONDS, check=False)
    if done.returncode != 1 or (folder.exists() and any(folder.iterdir())):
        raise RuntimeError(f"join: exit {done.returncode}, files {list(folder.glob('*'))}:\n{done.stdout}")
    return done.stdout


def _invite(p, *words):
    """An invitation by a concentrator that keeps a state."""
    folder = p.lab.directory / "peers.d"
    folder.mkdir(exist_ok=True)
    p.hub.config |= {"state": str(p.lab.directory / "hub.state"), "peers-folder": str(folder)}
    p.start(p.hub)
    return p.hub.ctl("invite", "van", "--address", p.edge.config["peers"][0]["endpoints"][0], *words)


@broken("an invitation that has expired", r"has expired", r"invite again")
def _expired(p):
    line = _invite(p, "--valid-for", "1min")
    time.sleep(SHORTEST + 1)
    return _join(p, line)


@broken("an invitation that was damaged on its way", r"the invitation is not whole|has a mistake", r"copy|again")
def _damaged(p):
    line = _invite(p).strip()
    return _join(p, line[:-3])
