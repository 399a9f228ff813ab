// Every kind of mistake in one part of a configuration file. Checks the exact message: place, key,
// problem and remedy.

#include "tests/unit/gateway/config/config_fixture.h"

namespace braid::config_errors_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Expects exactly one error for edgeText() with `from` replaced by `to`.
void expectError(const std::string& from, const std::string& to, const std::string& error) {
  EXPECT_THAT(errorsOf(with(edgeText(), from, to)), ElementsAre(error));
}
// Expects exactly one error for edgeText() followed by `more`.
void expectErrorBehind(const std::string& more, const std::string& error) {
  EXPECT_THAT(errorsOf(edgeText() + more), ElementsAre(error));
}

TEST(ConfigErrors, Keys) {
  expectErrorBehind("tunel: {}\n", "e.yaml:12:1: 'tunel': unknown key; did you mean 'tunnel'?");
  EXPECT_THAT(errorsOf(edgeText() + "\"\u202egol\": {}\n"),
              ElementsAre(StartsWith("e.yaml:12:1: '?gol': unknown key; ")));
  expectErrorBehind(
      "fec: {}\n",
      "e.yaml:12:1: 'fec': unknown key; known here: identity, device, offloads, uplinks, "
      "listen, peers, peers-folder, control, recovery, tunnel, streams, dns, portal-check, "
      "forwarding, between-peers, nat, forwards, state, log");
  expectErrorBehind("tunnel: {repair-time: 3s}\n",
                    "e.yaml:12:10: tunnel.'repair-time': has another name now; write "
                    "'delivery-timeout'");
  expectErrorBehind("streams: {hold-limit: 1MiB}\n",
                    "e.yaml:12:11: streams.'hold-limit': has another name now; write "
                    "'receive-window'");
  expectErrorBehind("    keepaliv: 1s\n",
                    "e.yaml:12:5: peers[0].'keepaliv': unknown key; did you mean 'keepalive'?");
  expectErrorBehind("log: {level: info, level: debug}\n",
                    "e.yaml:12:20: log.level: given twice, first in line 12; remove one of them");
  expectErrorBehind("workers: 2\n",
                    "e.yaml:12:1: workers: this key is gone; remove it; more cores are for shards: "
                    "several daemons, each with a part of the peers (docs/operations.md)");
  expectErrorBehind("log: {workers: 2}\n",
                    "e.yaml:12:7: log.'workers': unknown key; known here: level");
  expectErrorBehind("log:\n", "e.yaml:12:1: log: has no value; give it one, or remove the key");
  expectErrorBehind(
      "log: 1\n",
      "e.yaml:12:6: log: is a single value and must be a mapping; write 'key: value' lines; "
      "known here: level");
  expectErrorBehind("log: {level: [info]}\n",
                    "e.yaml:12:14: log.level: is a list and must be a single value; write one "
                    "value behind the colon");
  expectErrorBehind("listen: 0.0.0.0:4433\n",
                    "e.yaml:12:9: listen: is a single value and must be a list; write [a, b] or "
                    "one '- item' per line");
  expectErrorBehind("listen: [~]\n",
                    "e.yaml:12:10: listen[0]: has no value; give it one, or remove the item");
  EXPECT_THAT(errorsOf("peers: 5"), ElementsAre("e.yaml:1:1: identity: is missing; add 'identity: "
                                                "{key: NAME.key, certificate: NAME.crt}'; "
                                                "'braidctl keygen NAME' makes the two files",
                                                "e.yaml:1:8: peers: is a single value and must be "
                                                "a list; write [a, b] or one '- item' per line"));
  EXPECT_THAT(errorsOf("just text"),
              ElementsAre(HasSubstr("is a single value and must be a mapping")));
}

TEST(ConfigErrors, Identity) {
  expectError(
      "certificate: edge.crt", "certificate: ''",
      "e.yaml:1:40: identity.certificate: is no file name; name the file; 'braidctl keygen NAME' "
      "makes key and "
      "certificate");
  expectError(", certificate: edge.crt", "",
              "e.yaml:1:11: identity.certificate: is missing; name the file; 'braidctl keygen "
              "NAME' makes key and "
              "certificate");
}

TEST(ConfigErrors, Device) {
  expectError("10.99.0.1/30, ", "10.99.0.1, ",
              "e.yaml:3:15: device.addresses[0]: '10.99.0.1' has no prefix length from 1 to 32; "
              "write one such as "
              "10.99.0.1/30");
  expectError("'fd99::1/64'", "'fd99::1/129'",
              "e.yaml:3:29: device.addresses[1]: 'fd99::1/129' has no prefix length from 1 to 128; "
              "write one such as "
              "fd99::1/64");
  expectError("10.99.0.1/30, ", "10.99.0.256/30, ",
              "e.yaml:3:15: device.addresses[0]: '10.99.0.256/30' is no address with a prefix "
              "length; write "
              "one such as "
              "10.99.0.1/30 or fd99::1/64");
  expectError("'fd99::1/64'", "10.99.0.1/30",
              "e.yaml:3:29: device.addresses[1]: 10.99.0.1/30 is given twice; remove one of them");
  expectError("routes: [10.1.0.0/16]", "routes: [10.1.0.0/16, 10.1.0.0/16]",
              "e.yaml:4:25: device.routes[1]: 10.1.0.0/16 is given twice; remove one of them");
  expectError("routes: [10.1.0.0/16]", "routes: [10.1.2.3/16]",
              "e.yaml:4:12: device.routes[0]: '10.1.2.3/16' has host bits set; write 10.1.0.0/16 "
              "for the network or "
              "10.1.2.3/32 for the one host");
  expectError("routes: [10.1.0.0/16]", "routes: [all]",
              "e.yaml:4:12: device.routes[0]: 'all' is no network; write one such as 10.1.0.0/16 "
              "or fd00:1::/32");
  expectError("device:\n", "device:\n  name: braid-interface0\n",
              "e.yaml:3:9: device.name: 'braid-interface0' is no interface name; use 1 to 15 bytes "
              "without spaces, "
              "slashes and colons");
  for (const char* type : {"0x05ff", "0x10000", "0x", "88b5", "LLDP", "0x88b5 "}) {
    std::string quoted = "'" + std::string(type) + "'";
    EXPECT_THAT(
        errorsOf(with(edgeText(), "device:\n", "device:\n  ethertypes: [" + quoted + "]\n")),
        ElementsAre(
            "e.yaml:3:16: device.ethertypes[0]: " + quoted +
            " is no EtherType; use ipv4, arp, ipv6, stp, any or a number from 0x0600 to 0xffff"))
        << type;
  }
  expectError("routes: [10.1.0.0/16]", "networks: [10.7.0.0/16, 10.7.0.0/16]",
              "e.yaml:4:27: device.networks[1]: 10.7.0.0/16 is given twice; remove one of them");
  expectError("device:\n", "device:\n  mode: l2\n",
              "e.yaml:3:9: device.mode: 'l2' is not known; use one of: tun, tap");
  expectError(
      "device:\n", "device:\n  mtu: 100\n",
      "e.yaml:3:8: device.mtu: '100' is neither 'auto' nor a number from 576 to 9216; use 'auto' "
      "unless you know "
      "better");
}

TEST(ConfigErrors, Uplinks) {
  expectError(
      "{name: wifi, interface: wlan0}", "{name: wifi}",
      "e.yaml:6:5: uplinks[0]: names no interface; add interface, such as wlan0; 'ip link' lists "
      "them. Or mac, or path");
  expectError("interface: wlan0", "interface: wlan0, path: pci-0000:03:00.0",
              "e.yaml:6:42: uplinks[0].path: is a second way to name the interface; keep one of "
              "interface, mac and path");
  expectError("interface: wlan0", "mac: \"02:00:5e:00:53\"",
              "e.yaml:6:23: uplinks[0].mac: '02:00:5e:00:53' is no MAC address; write it as 'ip "
              "link' does, in quotes: \"02:00:5e:00:53:01\"");
  expectError("interface: wlan0", "path: usb1",
              "e.yaml:6:24: uplinks[0].path: 'usb1' is no path of a device; 'networkctl status "
              "INTERFACE' shows it, such as pci-0000:00:14.0-usb-0:2:1.0");
  expectError("name: wifi, interface: wlan0", "mac: \"02:00:5e:00:53:01\"",
              "e.yaml:6:5: uplinks[0]: has no name; give the uplink a name for messages and "
              "reports");
  expectError("name: wifi,", "name: my wifi,",
              "e.yaml:6:12: uplinks[0].name: 'my wifi' is no name; use 1 to 32 letters, digits, "
              "dots, dashes "
              "or underscores");
  expectError(
      "interface: wlan0", "interface: a/b",
      "e.yaml:6:29: uplinks[0].interface: 'a/b' is no interface name; use 1 to 127 bytes without "
      "spaces, slashes "
      "and colons");
  expectError(
      "wlan0}", "wlan0, subflows: 9}",
      "e.yaml:6:46: uplinks[0].subflows: '9' is outside 1 to 8; use a number in that range");
  expectError(
      "wlan0}", "wlan0, subflows: two}",
      "e.yaml:6:46: uplinks[0].subflows: 'two' is no whole number; use a number from 1 to 8");
  expectError(
      "wlan0}", "wlan0, gateway: never}",
      "e.yaml:6:45: uplinks[0].gateway: 'never' is no IP address; write one such as 192.0.2.1 or "
      "2001:db8::1");
  expectError("wlan0}", "wlan0, gateway: [10.0.0.1, 10.0.0.2]}",
              "e.yaml:6:56: uplinks[0].gateway[1]: is a second address of the same family; give "
              "one IPv4 and "
              "one IPv6 "
              "address at most");
  expectError("wlan0}", "wlan0, source: 10.0.0.300}",
              "e.yaml:6:44: uplinks[0].source: '10.0.0.300' is no IP address; write one such as "
              "192.0.2.1 or "
              "2001:db8::1");
  expectError(
      "wlan0}\n", "wlan0}\n  - {name: wifi, interface: wlan1}\n",
      "e.yaml:7:12: uplinks[1].name: 'wifi' is given in uplinks[0].name already; give each uplink "
      "its own name");
  expectError(
      "wlan0}\n", "wlan0}\n  - {name: other, interface: wlan0}\n",
      "e.yaml:7:30: uplinks[1].interface: 'wlan0' is given in uplinks[0].interface already; use "
      "'subflows' for "
      "several subflows on one interface");
}

TEST(ConfigErrors, Listen) {
  expectErrorBehind("listen: ['::4433']\n",
                    "e.yaml:12:10: listen[0]: '::4433' has no port; add one: [::4433]:4433");
  expectErrorBehind("listen: ['2001:db8:0:0:0:0:0:1:4433']\n",
                    "e.yaml:12:10: listen[0]: '2001:db8:0:0:0:0:0:1:4433' is an IPv6 address "
                    "without brackets; write "
                    "[2001:db8:0:0:0:0:0:1]:4433");
  expectErrorBehind("listen: [192.0.2.1]\n",
                    "e.yaml:12:10: listen[0]: '192.0.2.1' has no port; add one: 192.0.2.1:4433");
  expectErrorBehind(
      "listen: ['0.0.0.0:0']\n",
      "e.yaml:12:10: listen[0]: '0.0.0.0:0' has no valid port; use a port from 1 to 65535");
  expectErrorBehind(
      "listen: ['0.0.0.0:65536']\n",
      "e.yaml:12:10: listen[0]: '0.0.0.0:65536' has no valid port; use a port from 1 to 65535");
  expectErrorBehind("listen: ['hub.example.net:4433']\n",
                    "e.yaml:12:10: listen[0]: 'hub.example.net:4433' is no address and port; write "
                    "ADDRESS:PORT, such as "
                    "192.0.2.1:4433 or [2001:db8::1]:4433");
  expectErrorBehind(
      "listen: ['0.0.0.0:1', '0.0.0.0:1']\n",
      "e.yaml:12:23: listen[1]: '0.0.0.0:1' is given in listen[0] already; remove one of them");
}

TEST(ConfigErrors, Peers) {
  expectError(
      "name: hub\n    ", "",
      "e.yaml:8:5: peers[0].name: is missing; give the peer a name for messages and reports");
  const std::string badPin =
      "e.yaml:9:10: peers[0].pin: is no pin; write 'sha256:' and 44 base64 characters as 'braidctl "
      "pin "
      "FILE.crt' prints them";
  expectError(kPinA, "sha256:abc", badPin);
  expectError(kPinA, std::string(kPinA).substr(7), badPin);
  expectError(kPinA, "sha1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", badPin);
  expectError("Hh8=", "H$8=", badPin);
  expectError("Hh8=", "Hh8A", badPin);
  expectError("Hh8=", "Hh==", badPin);
  expectError("192.0.2.1:4433", "192.0.2.1000:4433",
              "e.yaml:10:17: peers[0].endpoints[0]: '192.0.2.1000' is neither an address nor a "
              "host name; write "
              "ADDRESS:PORT, such as 192.0.2.1:4433 or [2001:db8::1]:4433");
  expectError(
      "192.0.2.1:4433", "hub.example.net",
      "e.yaml:10:17: peers[0].endpoints[0]: 'hub.example.net' has no port; add one, such as "
      "hub.example.net:4433");
  expectError("192.0.2.1:4433", "'2001:db8::1%eth0:1'",
              "e.yaml:10:17: peers[0].endpoints[0]: '2001:db8::1%eth0' is neither an address nor a "
              "host name; write "
              "ADDRESS:PORT, such as 192.0.2.1:4433 or [2001:db8::1]:4433");
  expectError(
      "192.0.2.1:4433", "192.0.2.1:4433, 192.0.2.1:4433",
      "e.yaml:10:33: peers[0].endpoints[1]: '192.0.2.1:4433' is given in peers[0].endpoints[0] "
      "already; remove one "
      "of them");
  expectErrorBehind(
      "    keepalive: 1ms\n",
      "e.yaml:12:16: peers[0].keepalive: is below 100ms; use 0 for none, or 100ms to 60s");
  expectErrorBehind(
      "    keepalive: 61s\n",
      "e.yaml:12:16: peers[0].keepalive: '61s' is outside 0s to 1min; use a time in that range");
  expectErrorBehind("    keepalive: 10\n",
                    "e.yaml:12:16: peers[0].keepalive: '10' is no time; write a number and its "
                    "unit: us, ms, s, min, h or "
                    "d, such as 250ms");
}

TEST(ConfigErrors, WhatTwoPeersMayNotShare) {
  EXPECT_THAT(
      errorsOf(edgeText() + "  - name: hub\n    pin: " + kPinA +
               "\n    endpoints: ['192.0.2.1:4433']\n    prefixes: [10.1.0.0/16]\n"),
      ElementsAre(
          "e.yaml:12:11: peers[1].name: 'hub' is given in peers[0].name already; give each peer a "
          "name of "
          "its own",
          std::string("e.yaml:13:10: peers[1].pin: '") + kPinA +
              "' is given in peers[0].pin already; each gateway has a key of its own; check which "
              "pin "
              "belongs here",
          "e.yaml:14:17: peers[1].endpoints[0]: '192.0.2.1:4433' is given in peers[0].endpoints[0] "
          "already; remove one of them",
          "e.yaml:15:16: peers[1].prefixes[0]: '10.1.0.0/16' is given in peers[0].prefixes[0] "
          "already; a "
          "network belongs to one peer; remove one of them, or give both peers the same 'group'"));
}

TEST(ConfigErrors, Amp) {
  auto amp = [](const std::string& keys) {
    return "tunnel: {controller: amp, amp: {" + keys + "}}\n";
  };
  expectErrorBehind(
      amp("gamma: 0"),
      "e.yaml:12:40: tunnel.amp.gamma: '0' is outside 1 to 1000; use a number in that range");
  expectErrorBehind(
      amp("beta: 1"),
      "e.yaml:12:39: tunnel.amp.beta: '1' is outside 2 to 1000; use a number in that range");
  expectErrorBehind(amp("beta: 4, bdp: 20"),
                    "e.yaml:12:47: tunnel.amp.bdp: beta is given as well; remove beta, or bdp and "
                    "mark-threshold");
  expectErrorBehind(amp("mark-threshold: 10"),
                    "e.yaml:12:49: tunnel.amp.mark-threshold: says nothing without bdp; give both, "
                    "in packets, or beta");
  expectErrorBehind(amp("cwnd-min: 11"),
                    "e.yaml:12:43: tunnel.amp.cwnd-min: 11 is above initial-window, 10; raise "
                    "initial-window as well");
  expectErrorBehind(amp("delta: 1"),
                    "e.yaml:12:33: tunnel.amp.'delta': unknown key; did you mean 'beta'?");
  expectErrorBehind(
      "tunnel: {controller: bbr, amp: {gamma: 2}}\n",
      "e.yaml:12:32: tunnel.amp: has no effect with controller bbr; set controller: amp, or "
      "remove it");
  configOf(edgeText() + "tunnel: {amp: {gamma: 2}}\n");  // auto may choose it
}

TEST(ConfigErrors, Tunnel) {
  expectErrorBehind(
      "tunnel: {controller: reno}\n",
      "e.yaml:12:22: tunnel.controller: 'reno' is not known; use one of: amp, auto, bbr, cubic, "
      "dcm, dctcp, lia, newreno, wan, xmp");
  expectErrorBehind(
      "tunnel: {scheduler: rr}\n",
      "e.yaml:12:21: tunnel.scheduler: 'rr' is not known; use one of: earliest, ecf, minrtt, "
      "weighted");
  expectErrorBehind("tunnel: {cipher: rc4}\n",
                    "e.yaml:12:18: tunnel.cipher: 'rc4' is not known; use one of: auto, "
                    "aes-128-gcm, aes-256-gcm, "
                    "chacha20-poly1305");
  expectErrorBehind("tunnel: {queue-limit: 4}\n",
                    "e.yaml:12:23: tunnel.queue-limit: '4' is no size; write a number and its "
                    "unit: B, kB, MB, GB, KiB, "
                    "MiB or GiB, such as 4MiB");
  expectErrorBehind("tunnel: {queue-limit: 2GiB}\n",
                    "e.yaml:12:23: tunnel.queue-limit: '2GiB' is outside 64KiB to 1GiB; use a size "
                    "in that range");
  expectErrorBehind("tunnel: {mtu: 1400, max-mtu: 1300}\n",
                    "e.yaml:12:15: tunnel.mtu: 1400 is above max-mtu, 1300; raise max-mtu as well");
  expectErrorBehind("tunnel: {codel-target: 200ms}\n",
                    "e.yaml:12:24: tunnel.codel-target: 200ms is not below codel-interval, 200ms; "
                    "use 5 to 10 % of the "
                    "interval (RFC 8289 section 4.3), or auto");
  configOf(edgeText() + "tunnel: {codel-target: auto, codel-interval: 25ms}\n");
  expectErrorBehind(
      "tunnel: {mtu: 1247}\n",
      "e.yaml:12:15: tunnel.mtu: '1247' is neither 'auto' nor a number from 1248 to 9216; use "
      "'auto' unless you know better");
  expectErrorBehind(
      "tunnel: {max-mtu: 1247}\n",
      "e.yaml:12:19: tunnel.max-mtu: '1247' is outside 1248 to 9216; use a number in that range");
  configOf(edgeText() + "tunnel: {mtu: 1248, max-mtu: 1248}\n");
  expectErrorBehind(
      "tunnel: {rekey-after: 9s}\n",
      "e.yaml:12:23: tunnel.rekey-after: '9s' is outside 10s to 7d; use a time in that range");
  EXPECT_EQ(configOf(edgeText() + "tunnel: {rekey-after: 10s}\n").tunnel.rekeyAfter, 10s);
  EXPECT_EQ(configOf(edgeText() + "tunnel: {rekey-after: off}\n").tunnel.rekeyAfter, 0s);
  EXPECT_EQ(configOf(edgeText()).tunnel.rekeyAfter, 1h);
  expectErrorBehind("tunnel: {rekey-packets: 8388609}\n",
                    "e.yaml:12:25: tunnel.rekey-packets: '8388609' is outside 1024 to 8388608; use "
                    "a number in that range");
}

TEST(ConfigErrors, ControlAndLog) {
  expectErrorBehind(
      "control: {socket: braid.sock}\n",
      "e.yaml:12:19: control.socket: is no complete path of at most 107 bytes; write one such as "
      "/run/braid/edge.sock");
  expectErrorBehind(
      "control: {group: 'a b'}\n",
      "e.yaml:12:18: control.group: 'a b' is no name; use 1 to 32 letters, digits, dots, dashes or "
      "underscores");
  expectErrorBehind("log: {level: loud}\n",
                    "e.yaml:12:14: log.level: 'loud' is not known; use one of: trace, debug, info, "
                    "warning, error");
}

TEST(ConfigErrors, PlaceholdersSayWhatToFillIn) {
  expectError(kPinA, "CHANGE_ME_PEER_PIN",
              "e.yaml:9:10: peers[0].pin: still holds the placeholder CHANGE_ME_PEER_PIN; put the "
              "pin that 'braidctl "
              "keygen' printed at the peer ('braidctl pin FILE.crt' prints it again)");
  expectError("192.0.2.1:4433", "CHANGE_ME_PEER_ADDRESS:4433",
              "e.yaml:10:17: peers[0].endpoints[0]: still holds the placeholder "
              "CHANGE_ME_PEER_ADDRESS; put "
              "the address "
              "and port at which the peer listens, such as 192.0.2.1:4433");
  expectErrorBehind("control: {group: CHANGE_ME}\n",
                    "e.yaml:12:18: control.group: still holds the placeholder CHANGE_ME; put the "
                    "value of this gateway");
}

TEST(ConfigErrors, AllMistakesOfAFileInTheOrderOfTheirLines) {
  std::string text = with(edgeText(), "10.99.0.1/30, ", "10.99.0.1/33, ");
  text = with(text, "interface: wlan0", "interfce: wlan0");
  EXPECT_THAT(
      errorsOf(with(text, kPinA, "none") + "log: {level: loud}\n"),
      ElementsAre(
          StartsWith("e.yaml:3:15: device.addresses[0]: "),
          StartsWith("e.yaml:6:18: uplinks[0].'interfce': unknown key; did you mean 'interface'?"),
          StartsWith("e.yaml:9:10: peers[0].pin: "), StartsWith("e.yaml:12:14: log.level: ")));
}

TEST(ConfigErrors, YamlMistakesHaveAPlaceToo) {
  EXPECT_THAT(errorsOf("peers: [\n"), ElementsAre(AllOf(StartsWith("e.yaml:2:1: not valid YAML: "),
                                                        HasSubstr("; check indentation"))));
  EXPECT_THAT(errorsOf(""),
              ElementsAre("e.yaml: the file is empty; start from one of the examples in conf/"));
  EXPECT_THAT(errorsOf(std::string(kMaxConfigBytes + 1, '#')),
              ElementsAre("e.yaml: is larger than 1 MiB; shorten the file"));
}

TEST(ConfigErrors, LongAndStrangeTextIsCut) {
  std::string error =
      errorsOf(edgeText() + "log: {level: \"" + std::string(5000, 'x') + "\"}\n").at(0);
  EXPECT_LT(error.size(), 250u);
  EXPECT_THAT(errorsOf(edgeText() + "log: {level: \"\\e[2J\"}\n"),
              ElementsAre(HasSubstr("'?[2J'")));
}

}  // namespace
}  // namespace braid::config_errors_test
