"""Real, unmodified services in a namespace: nginx, iperf3, sshd, dnsmasq. Each ends with the lab."""

import hashlib
import os
import random

from .netns import run

HTTP_PORT, IPERF_PORT, SSH_PORT = 80, 5201, 2222
_BLOCK = 1 << 20


def make_file(path, size, seed=1):
    """Writes `size` seeded random bytes (every megabyte differs from every other) and returns their SHA-256."""
    block = bytearray(random.Random(seed).randbytes(_BLOCK))
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        for number in range((size + _BLOCK - 1) // _BLOCK):
            block[:8] = number.to_bytes(8, "big")
            part = block[:min(_BLOCK, size - number * _BLOCK)]
            digest.update(part)
            file.write(part)
    return digest.hexdigest()


class Nginx:
    """nginx on port 80, IPv4 and IPv6, serving the files that add() makes."""

    _CONFIG = """
daemon off; master_process off; user root; pid {root}/nginx.pid; error_log stderr warn;
events {{ worker_connections 256; }}
http {{
  access_log off; sendfile on; tcp_nodelay on;
  client_body_temp_path {root}/tmp; proxy_temp_path {root}/tmp; fastcgi_temp_path {root}/tmp;
  uwsgi_temp_path {root}/tmp; scgi_temp_path {root}/tmp; client_max_body_size 0;
  server {{ listen {port}; listen [::]:{port}; root {root}/files; dav_methods PUT; }}
}}
"""

    def __init__(self, lab, namespace=None, wrapper=()):
        """`wrapper`: words of a program that starts nginx."""
        self._root = lab.directory / "nginx"
        (self._root / "files").mkdir(parents=True)
        self.sha256 = {}
        config = self._root / "nginx.conf"
        config.write_text(self._CONFIG.format(root=self._root, port=HTTP_PORT), encoding="ascii")
        space = namespace or lab.server
        self.process = lab.start(space, "nginx", [*wrapper, "nginx", "-e", "stderr", "-c", config])
        lab.wait_for(lambda: run("ip", "netns", "exec", space.name, "ss", "-Hltn", f"sport = :{HTTP_PORT}"),
                     "nginx to listen")

    def add(self, name, size, seed=1):
        """Makes a file and returns its URL path; its digest is in sha256[path]."""
        path = "/" + name
        self.sha256[path] = make_file(self._root / "files" / name, size, seed)
        return path

    def received(self, name):
        """SHA-256 of an uploaded file."""
        return hashlib.sha256((self._root / "files" / name).read_bytes()).hexdigest()


class Iperf3:
    """iperf3 -s for many tests, one after the other."""

    def __init__(self, lab, namespace=None):
        space = namespace or lab.server
        self.process = lab.start(space, "iperf3", ["iperf3", "-s", "-p", IPERF_PORT, "--forceflush"])
        Iperf3.wait(lab)

    @staticmethod
    def wait(lab):
        """Waits until the server is ready for a test. Between two tests it closes its port and resets connections."""
        lines = lab.log("iperf3").read_text
        lab.wait_for(lambda: (text := lines()).count("Server listening") > text.count("Accepted connection"),
                     "iperf3 to listen")


class Sshd:
    """sshd with its own host key and user key."""

    def __init__(self, lab, namespace=None):
        self._root = lab.directory / "ssh"
        self._root.mkdir(mode=0o700)
        for name in ("host", "user"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._root / name)
        authorized = self._root / "authorized"
        authorized.write_text((self._root / "user.pub").read_text(encoding="ascii"), encoding="ascii")
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        config = self._root / "sshd_config"
        config.write_text(f"Port {SSH_PORT}\nHostKey {self._root}/host\nAuthorizedKeysFile {authorized}\n"
                          "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n"
                          "UseDNS no\n", encoding="ascii")
        space = namespace or lab.server
        self.process = lab.start(space, "sshd", ["/usr/sbin/sshd", "-D", "-e", "-f", config])
        lab.wait_for(lambda: space.run("ss", "-Hltn", f"sport = :{SSH_PORT}"), "sshd to listen")

    def words(self, address, *command):
        """The ssh command line that runs a command on the server."""
        return ["ssh", "-F", "none", "-i", str(self._root / "user"), "-p", str(SSH_PORT), "-o", "BatchMode=yes",
                "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
                f"root@{address}", *command]


class Dnsmasq:
    """dnsmasq that only answers for the given names and asks no other server. Long TXT records give large answers.
    `listen`: the only address that it serves; several may run in a namespace then."""

    def __init__(self, lab, records, texts=None, namespace=None, listen=None):
        words = ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts",
                 "--log-facility=-", "--pid-file=", "--user=root", "--edns-packet-max=4096"]
        words += [f"--address=/{name}/{address}" for name, address in records.items()]
        words += [f"--txt-record={name},{text}" for name, text in (texts or {}).items()]
        words += ["--bind-interfaces", f"--listen-address={listen}"] if listen else []
        space, name = namespace or lab.server, f"dnsmasq-{listen}" if listen else "dnsmasq"
        self.process = lab.start(space, name, [*words, "--log-queries"])
        at = f"src {f'[{listen}]' if ':' in listen else listen} and sport = :53" if listen else "sport = :53"
        lab.wait_for(lambda: space.run("ss", "-Hlun", at), "dnsmasq to listen")
