"""OpenWrt: braidd must accept the configuration that the package's script makes from UCI. Runs with busybox, since
OpenWrt uses its shell."""

import pathlib
import re
import subprocess
import tempfile
import unittest

from known import sections
from lab.gateway import binary, make_identities

ROOT = pathlib.Path(__file__).resolve().parents[2]
FEED = ROOT / "packaging/openwrt"
FILES = FEED / "braid/files"
FUNCTIONS = pathlib.Path(__file__).resolve().parent / "uci_functions.sh"
SHELL = ["busybox", "ash"]
PIN = "sha256:/2YlCK6pFPNLhHtTHWkd4cGJBBvMTVJx1Yy9oVWjvVs="
TUN = """
config device
    option name 'braid9'
    option mode 'tun'
    option mtu '1400'
    list address '10.99.0.2/30'
    list address 'fd99::2/64'
    list route '10.1.0.0/16'
    list network '10.2.0.0/16'
    option mark_mask '0xff00'
    option rule_priority '7000'
    option when_down 'block'
    list bypass_mark '0xca6c'
    list bypass_mark '0x80000/0xff0000'
"""
TAP = """
config device
    option mode 'tap'
    option bridge 'br-lan'
    option ageing_time '60s'
    option flood_limit '2000'
    list ethertype 'ipv4'
    list ethertype 'arp'
"""
STREAMS = """
config streams
    option enabled 'on'
"""
REST = """
config gateway
    option key 'edge.key'
    option certificate 'edge.crt'
    option state '/tmp/braid.state'
    option peers_folder '/tmp/braid.peers.d'
    option portal_check 'any'
    option forwarding 'on'
    option between_peers 'on'
    option nat 'ipv4'
    option socket '/tmp/braid.sock'
    option group 'root'
    option log_level 'debug'
    option offload_device 'on'
    option offload_sockets 'off'
    list listen '0.0.0.0:4433'
    list listen '[::]:4433'

config uplink 'wifi'
    option network 'wan'
    option subflows '2'
    option gateway '192.0.2.254'
    option source '192.0.2.7'
    option use 'normal'
    option weight '3'
    option limit_up '5Mbit/s'
    option limit_down '20Mbit/s'
    list resolver '192.0.2.53'

config uplink 'lte'
    option name 'my-lte'
    option interface 'wwan0'
    option cap '50GB'
    option period 'month'
    option reset_day '15'
    option reset_hour '3'

config uplink 'stick'
    option mac '02:00:5e:00:53:01'

config uplink 'other_stick'
    option path 'pci-0000:00:14.0-usb-0:2:1.0'

config uplink 'away'
    option network 'gone'

config peer
    option name 'other-rack'
    option pin '%(pin)s'
    option keepalive '5s'
    option group 'racks'
    list endpoint '192.0.2.1:4433'
    list endpoint 'vpn.example.net:4433'
    list prefix '10.1.0.0/16'
    list prefix '10.99.0.1/32'

config tunnel
    option tell_names 'off'
    option controller 'amp'
    option initial_window '10'
    option scheduler 'weighted'
    option cipher 'aes-128-gcm'
    option mtu 'auto'
    option max_mtu '1500'
    option rekey_after '2h'
    option rekey_packets '8388608'
    option codel_target '30ms'
    option codel_interval '200ms'
    option ecn_proxy 'on'
    option queue_limit '4MiB'
    option reorder_timeout '400ms'
    option reorder_limit '8MiB'
    option delivery_timeout '2s'
    option failback_delay '20s'
    option max_flows '2048'
    option flow_idle_timeout '30s'
    option max_subflows '16'
    option amp_gamma '3'
    option amp_tau '9'
    option amp_bdp '40'
    option amp_mark_threshold '20'
    option amp_cwnd_min '3'

config ack_shim
    option enabled 'on'
    option alpha '9'
    option phi '3'
    option gamma '90kB'
    option rto_min '200ms'
    option inactivity '2s'
    option max_flows '1024'
    option replay 'off'
    option sack_gap 'off'

config ack_shim_exclude
    option ports '873'

config ack_shim_exclude
    option network '10.1.7.0/24'
    option ports '5060-5080'

config streams
    option enabled 'on'
    option connect 'first'
    option source 'own'
    option max_connections '1000'
    option max_streams_per_peer '900'
    option new_streams_per_peer '300'
    option receive_window '1MiB'
    option peer_receive_limit '16MiB'
    option total_receive_limit '64MiB'
    list from '192.168.10.0/24'

config streams_match
    option ports '80'

config streams_match
    option network '10.1.0.0/16'
    option ports '8000-8099'

config streams_exclude
    option network '10.1.7.0/24'

config streams_accept
    option network '10.2.0.0/16'
    option ports '443'

config dns
    list server '10.1.0.53'
    list domain 'corp.example'

config forward
    option protocol 'udp'
    option port '5000-5010'
    option to '10.1.0.9'
    option source 'own'
    list from '198.51.100.0/24'

config recovery
    option policy 'cofuso'
    option k_max '64'
    option m_max '2'
    option alpha '0.4'
    option beta '0.6'
    option alpha1 '0.4'
    option beta1 '0.6'
    option alpha2 '0.4'
    option beta2 '0.6'
    option decode_buffer '512'
    option trace '/tmp/braid.trace'

config class
    option protocol 'udp'
    option ports '5060-5061'
    option policy 'redundant'

config class
    option dscp 'ef'
    option delivery 'timely'
""" % {"pin": PIN}


class Case(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)
        make_identities(self.folder, ["edge"])

    def shell(self, script, uci):
        """Runs a script that may use OpenWrt's functions, with that text as /etc/config/braid."""
        (self.folder / "braid").write_text(uci, encoding="utf-8")
        words = [*SHELL, "-c", f". {FUNCTIONS}\n. {FILES}/uci2yaml.sh\n{script}"]
        return subprocess.run(words, env={"PATH": "/usr/bin:/bin", "UCI_CONFIG_DIR": str(self.folder)},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)

    def translate(self, uci):
        """The YAML, and what was said meanwhile."""
        done = self.shell("config_load braid\nbraid_yaml", uci)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def check(self, yaml):
        """The errors that braidd reports for it; empty: there are none."""
        file = self.folder / "edge.yaml"
        file.write_text(yaml, encoding="utf-8")
        done = subprocess.run([binary("braidd"), "--check", "--config", file], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode == 0, not done.stderr, done.stderr)
        return done.stderr.replace(str(self.folder), "")


class Translation(Case):
    def test_what_is_shipped_is_good_once_it_is_filled_in(self):
        uci = (FILES / "braid.config").read_text(encoding="utf-8").replace("/etc/braid/", f"{self.folder}/")
        yaml, _ = self.translate(uci)
        said = self.check(yaml)
        self.assertEqual(len(said.splitlines()), uci.count("CHANGE_ME"), said)
        self.assertEqual(said.count("still holds the placeholder"), uci.count("CHANGE_ME"))
        for name, value in (("REMOTE_NETWORK", "10.1.0.0/16"), ("PEER_PIN", PIN), ("PEER_ADDRESS", "192.0.2.1")):
            uci = uci.replace(f"CHANGE_ME_{name}", value)
        self.assertEqual(self.check(self.translate(uci)[0]), "")

    def test_every_setting_gets_through(self):
        yaml, said = self.translate(TUN + REST)
        self.assertEqual(self.check(yaml), "")
        self.assertIn("network gone has no device yet, left out", said)
        for line in ("  bypass-marks: ['0xca6c', '0x80000/0xff0000']", "    interface: 'wan0'",
                     "  - name: 'wifi'", "  - name: 'my-lte'", "  - name: 'other-rack'",
                     "    metered: {cap: '50GB', period: 'month', reset-day: '15', reset-hour: '3'}",
                     "    endpoints: ['192.0.2.1:4433', 'vpn.example.net:4433']",
                     "  amp: {gamma: '3', tau: '9', cwnd-min: '3', bdp: '40', mark-threshold: '20'}",
                     "      - {ports: '873'}", "    - {network: '10.1.0.0/16', ports: '8000-8099'}",
                     "    - {dscp: 'ef', delivery: 'timely'}"):
            self.assertIn(line + "\n", yaml)

    def test_a_bridge(self):
        rest = re.sub(r"\n +list prefix '10.99.*", "", REST)
        rest = re.sub(r"\n +option (nat|group '.acks).*", "", rest)
        rest = re.sub(r"config forward\n(?: +.*\n)+", "", rest)
        rest = rest.replace(STREAMS, STREAMS.replace("'on'", "'off'"))
        self.assertEqual(self.check(self.translate(TAP + rest)[0]), "")

    def test_ports_are_forwarded(self):
        yaml, _ = self.translate(TUN + REST)
        self.assertIn("forwards:\n  - port: '5000-5010'\n    protocol: 'udp'\n    to: '10.1.0.9'\n    source: 'own'\n"
                      "    from: ['198.51.100.0/24']\n", yaml)

    def test_no_key_of_the_reader_is_out_of_reach(self):
        uci = TUN + TAP + REST.replace("option amp_bdp", "option amp_beta '4'\n\toption amp_bdp")
        uci = uci.replace("option keepalive", "option psk 'other-rack.psk'\n\toption keepalive")
        written = set(re.findall(r"(?:^ *(?:- )?|[{,] ?)([a-z][a-z0-9-]*):", self.translate(uci)[0], re.MULTILINE))
        self.assertEqual(written, set().union(*sections(self.folder).values()))

    def test_little_is_enough(self):
        uci = f"""
config gateway
    option key 'edge.key'
    option certificate 'edge.crt'
    list listen '0.0.0.0:4433'
config peer 'edge'
    option pin '{PIN}'
    list prefix '10.2.0.0/16'
config ack_shim
    option enabled 'off'
"""
        self.assertEqual(self.check(self.translate(uci)[0]), "")

    def test_a_value_is_never_more_than_a_value(self):
        values = ("it's", "a: b", "x # y", "[1, 2]", "&a", "*a", "!tag x", "$(touch pwned)", "`touch pwned`",
                  "a\nlisten: ['0.0.0.0:1']", "---", "\\", "\"", "; touch pwned", "% x", "{a: b}", "ü", "-n", "~")
        uci = TUN + REST
        for number, value in enumerate(values):
            quoted = value.replace("'", "'\\''")
            uci += f"config peer 'bad{number}'\n\toption pin '{quoted}'\n"
        said = self.check(self.translate(uci)[0])
        self.assertEqual(re.findall(r": peers\[(\d+)\]\.pin: is no pin", said),
                         [str(number + 1) for number in range(len(values))], said)
        self.assertEqual(len(said.splitlines()), len(values), said)
        self.assertFalse(list(self.folder.glob("pwned")))


class Service(Case):
    def service(self, command, uci, running=False):
        """Runs a command of the init script. procd's functions tell what they were asked for. `running`: whether the
        service runs already."""
        text = (FILES / "braid.init").read_text(encoding="utf-8")
        (self.folder / "network.sh").touch()
        for place, here in (("/lib/functions/network.sh", f"{self.folder}/network.sh"),
                            ("/usr/share/braid/uci2yaml.sh", f"{FILES}/uci2yaml.sh"),
                            ("/usr/sbin/braidd", binary("braidd")), ("/var/etc", f"{self.folder}/var"),
                            ("/usr/sbin/braidctl", "ctl"), ("/etc/braid/guard.yaml", f"{self.folder}/guard.yaml"),
                            ("/var/run", f"{self.folder}/run"), ("/var/lib", f"{self.folder}/lib")):
            self.assertIn(place, text)
            text = text.replace(place, here)
        stubs = "\n".join(f'{name}() {{ echo "{name} $*"; }}' for name in (
            "logger", "start", "ctl", "procd_open_instance", "procd_set_param", "procd_close_instance",
            "procd_send_signal"))
        stubs += f"\nprocd_running() {{ return {int(not running)}; }}"
        (self.folder / "init").write_text(text, encoding="utf-8")
        done = self.shell(f"{stubs}\n. {self.folder}/init\n{command}", uci)
        return done.returncode, done.stdout, done.stderr

    def good(self):
        return TUN + REST.replace("config gateway", "config gateway\n\toption enabled '1'").replace(
            "'edge.", f"'{self.folder}/edge.")

    def test_starts_what_is_enabled(self):
        status, said, _ = self.service("start_service", self.good())
        self.assertEqual(status, 0, said)
        self.assertIn(f"{self.folder}/var/braid/braid.yaml\n", self.run_instance(said)("0"))
        yaml = self.folder / "var/braid/braid.yaml"
        self.assertEqual(yaml.stat().st_mode & 0o777, 0o600)

    def run_instance(self, said):
        """Runs the command that procd was given, with programs that tell their words: braidctl, braidd and logger."""
        words = next(line for line in said.splitlines() if line.startswith("procd_set_param command "))
        tools = self.folder / "tools"
        tools.mkdir(exist_ok=True)
        for name in ("ctl", "daemon", "logger"):
            (tools / name).write_text(f'#!/bin/sh\necho "{name} $*"\ntest {name} != ctl || exit $FAILS\n',
                                      encoding="utf-8")
            (tools / name).chmod(0o700)
        prefix, script, file = re.fullmatch(r"procd_set_param command (/bin/sh -c) (.*) (\S+)", words).groups()
        script = script.replace(binary("braidd"), "daemon").replace("ctl guard apply", f"{tools}/ctl guard apply", 1)
        return lambda fails: subprocess.run(
            [*SHELL, prefix.split()[1], script.replace(">/dev/null", ""), file], check=True, text=True,
            stdout=subprocess.PIPE, env={"PATH": f"{tools}:/usr/bin:/bin", "FAILS": fails}).stdout

    def test_the_guard_is_made_before_the_daemon_by_what_is_started(self):
        """Also that of a first start, of a changed device or mark, and of another file, when procd has ended the
        earlier daemon."""
        guard = self.folder / "guard.yaml"
        for command in ("start_service", "reload_service"):
            for running in (False, True):
                guard.unlink(missing_ok=True)
                (self.folder / "var/braid/started").unlink(missing_ok=True)
                status, said, _ = self.service(f"start() {{ start_service; }}\n{command}", self.good(), running)
                self.assertEqual(status, 0, said)
                self.assertNotIn("ctl guard apply", said.partition("procd_set_param command")[0])
                run = self.run_instance(said)
                yaml = f"{self.folder}/var/braid/braid.yaml"
                made, started = f"ctl guard apply {guard}\n", f"daemon --config {yaml}\n"
                self.assertEqual(run("0"), made + started)
                failed = f"logger -t braid -p daemon.err no guard: see 'ctl guard apply {guard}'\n"
                self.assertEqual(run("1"), made + failed + started, "the daemon makes it in any case")
                self.assertIn("when-down: 'block'", guard.read_text(encoding="utf-8"))

    def test_starts_nothing_that_is_not(self):
        status, said, _ = self.service("start_service", self.good().replace("enabled '1'", "enabled '0'"))
        self.assertEqual(status, 0)
        self.assertNotIn("procd", said)
        self.assertIn("no gateway in /etc/config/braid has 'option enabled 1'", said)

    def test_the_next_boot_is_guarded_by_what_was_started_last(self):
        guard = self.folder / "guard.yaml"
        yaml = self.folder / "var/braid/braid.yaml"
        blocking = self.good()
        self.service("start_service", blocking)
        self.assertEqual(guard.read_text(encoding="utf-8"), yaml.read_text(encoding="utf-8"))
        self.assertEqual(guard.stat().st_mode & 0o777, 0o600)
        written = guard.stat()
        self.service("reload_service", blocking)
        self.assertEqual((guard.stat().st_ino, guard.stat().st_mtime_ns), (written.st_ino, written.st_mtime_ns),
                         "flash is written for a change only")
        self.service("reload_service", blocking.replace("weight '3'", "weight '4'"))
        self.assertEqual(guard.read_text(encoding="utf-8"), yaml.read_text(encoding="utf-8"))
        self.service("reload_service", blocking.replace("weight '3'", "weight 'x'"))
        self.assertEqual(guard.read_text(encoding="utf-8"), yaml.read_text(encoding="utf-8"), "a mistake is no change")
        _, said, _ = self.service("start_service", blocking.replace("enabled '1'", "enabled '0'"))
        self.assertIn("no gateway in /etc/config/braid", said)
        self.assertFalse(guard.exists(), "nobody is kept from anything by a gateway that is off")

    def test_the_guard_comes_before_the_network(self):
        text = (FILES / "braid-guard.init").read_text(encoding="utf-8")
        number = int(re.search(r"^START=(\d+)$", text, re.MULTILINE)[1])
        self.assertLess(number, 20, "/etc/init.d/network has 20")
        file = self.folder / "guard.yaml"
        for place, here in (("/etc/braid/guard.yaml", str(file)), ("/usr/sbin/braidctl", "ctl")):
            self.assertIn(place, text)
            text = text.replace(place, here)
        script = f'ctl() {{ echo "ctl $*" >&2; return $result; }}\nlogger() {{ echo "logger $*"; }}\n{text}\n'
        self.assertEqual(self.shell(f"result=0\n{script}start", "").stderr, "", "nothing is guarded at first")
        file.touch()
        done = self.shell(f"result=0\n{script}start", "")
        self.assertEqual((done.stdout, done.stderr), ("", f"ctl guard apply {file}\n"))
        self.assertIn("no guard at boot", self.shell(f"result=1\n{script}start", "").stdout)

    def test_an_option_with_an_old_name_is_a_mistake_in_the_log_that_names_the_new_one(self):
        renamed = re.findall(r"^\| `(device|tunnel|streams)\.([a-z-]+)` \| `\1\.([a-z-]+)` \|$",
                             (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
        self.assertEqual(len(renamed), 11)
        for section, old, new in renamed:
            option = old.replace("-", "_")
            uci = self.good().replace(f"config {section}\n", f"config {section}\n    option {option} '1'\n")
            status, said, _ = self.service("start_service", uci)
            self.assertEqual((status, "procd" in said), (1, False))
            self.assertRegex(said, rf"(?s)logger .*daemon\.err.*{section}\.'{old}': has another name now; "
                                   rf"write '{new}'")

    def test_starts_nothing_with_mistakes_and_names_them(self):
        status, said, errors = self.service("start_service", self.good().replace("weight '3'", "weight '300'"))
        self.assertEqual(status, 1)
        self.assertNotIn("procd", said)
        self.assertIn("uplinks[0].weight: '300' is outside 1 to 100", errors)
        self.assertNotIn("ctl guard", said, "no guard has been wanted yet")
        self.service("start_service", self.good())
        _, said, _ = self.service('ctl() { echo "ctl $*" >&3; }\nexec 3>&1\nstart_service',
                                  self.good().replace("weight '3'", "weight '300'"))
        self.assertIn(f"ctl guard apply {self.folder}/guard.yaml\n", said, "that of the boot did not know the LAN")
        self.assertNotIn("procd", said)

    def test_a_reload_with_mistakes_changes_nothing(self):
        self.service("start_service", self.good())
        yaml = self.folder / "var/braid/braid.yaml"
        before = yaml.read_text(encoding="utf-8")
        status, said, _ = self.service("reload_service", self.good().replace("weight '3'", "weight 'x'"))
        self.assertEqual((status, "procd" in said, yaml.read_text(encoding="utf-8")), (1, False, before))
        status, said, _ = self.service("reload_service", self.good().replace("weight '3'", "weight '4'"))
        self.assertEqual(status, 0)
        self.assertIn("procd_send_signal braid * HUP", said)
        self.assertNotEqual(yaml.read_text(encoding="utf-8"), before)

    def test_a_file_that_is_given_is_run_as_it_is(self):
        given = self.folder / "edge.yaml"
        given.write_text(self.translate(self.good())[0], encoding="utf-8")
        uci = f"config gateway\n\toption enabled '1'\n\toption yaml '{given}'\n\toption key 'nothing of it'\n"
        status, said, _ = self.service("start_service", uci)
        self.assertEqual(status, 0, said)
        self.assertIn(f"daemon --config {given}\n", self.run_instance(said)("0"))
        self.assertIn(f"procd_set_param file {given}\n", said)
        status, said, _ = self.service("reload_service", uci)
        self.assertEqual((status, "procd_send_signal braid * HUP" in said), (0, True))
        self.assertEqual(self.service("check", uci)[:2], (0, f"{given} is good\n"))
        status, said, _ = self.service("reload_service", self.good())
        self.assertEqual((status, "HUP" in said, "start" in said), (0, False, True), "it runs with another file now")
        disabled = f"config gateway 'other'\n\toption yaml '{self.folder}/nowhere'\n"
        for text in (uci + disabled, disabled + uci):
            self.assertEqual(self.service("check", text)[:2], (0, f"{given} is good\n"))
        given.write_text("uplink: x\n", encoding="utf-8")
        for command in ("start_service", "reload_service", "check"):
            status, said, errors = self.service(command, uci)
            self.assertEqual((status, "procd" in said), (1, False))
            self.assertIn("uplink", errors)

    def test_checks(self):
        self.assertEqual(self.service("check", self.good())[:2], (0, "/etc/config/braid is good\n"))
        self.assertEqual(self.service("check", self.good().replace("mtu '1400'", "mtu 'x'"))[0], 1)


class Makefiles(unittest.TestCase):
    """The output of make, with minimal replacements of OpenWrt's includes."""

    RULES = "INCLUDE_DIR:=$(TOPDIR)\nINSTALL_DIR=dir\nINSTALL_BIN=bin\nINSTALL_DATA=data\nINSTALL_CONF=conf\nCP=cp\n"
    PACKAGE = """
define BuildPackage
$(eval define SHOWN
$(Package/$(1))
$(Package/$(1)/install)
endef)
$(info name=$(PKG_NAME) version=$(PKG_VERSION) hash=$(PKG_HASH) source=$(PKG_SOURCE_URL)/$(PKG_SOURCE))
$(info $(SHOWN))
$(info options=$(CMAKE_OPTIONS))
all: ;@:
endef
"""

    def read(self, name):
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            (top / "rules.mk").write_text(self.RULES, encoding="ascii")
            (top / "package.mk").write_text(self.PACKAGE, encoding="ascii")
            (top / "cmake.mk").touch()
            done = subprocess.run(["make", "-s", "-f", "Makefile", f"TOPDIR={top}", "all"], cwd=FEED / name,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout

    def test_what_openwrt_lacks_is_in_the_feed(self):
        needed = re.search(r"DEPENDS:=(.*)", self.read("braid")).group(1)
        own = {path.parent.name for path in FEED.glob("*/Makefile")}
        self.assertEqual(own, {"braid", "cli11", "gf-complete", "jerasure", "yaml-cpp"})
        for name in ("gf-complete", "jerasure", "yaml-cpp"):
            self.assertIn(f"+{name}", needed.split())

    def test_sources_are_fixed(self):
        for name in ("cli11", "gf-complete", "jerasure", "yaml-cpp"):
            text = self.read(name)
            self.assertRegex(text, rf"name={name} version=\S+ hash=[0-9a-f]{{64}} source=https://\S+\.tar\.\w+\n")

    def test_braid_is_built_without_what_only_tests_need(self):
        text = self.read("braid")
        self.assertIn("-DBRAID_TESTS=none", text)
        self.assertRegex(text, r"name=braid version=\d[\d.]* ")
        for file in re.findall(r"\./files/(\S+)", text):
            self.assertTrue((FILES / file).exists(), file)


if __name__ == "__main__":
    unittest.main()
