#include "ctl/join/fleet.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <tuple>

#include "gateway/dtls/identity.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 10'000;

std::vector<std::string> configurationsBelow(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error),
      end;
  if (error) throw std::runtime_error("cannot read the folder " + folder + ": " + error.message());
  for (; at != end; at.increment(error)) {
    if (error)
      throw std::runtime_error("cannot read the folder " + folder + ": " + error.message());
    if (at->path().filename() == "peers.d") at.disable_recursion_pending();
    if (at->path().extension() == ".yaml" && at->is_regular_file(error))
      out.push_back(at->path().string());
    if (out.size() > kMostFiles)
      throw std::runtime_error(folder + " has more than " + std::to_string(kMostFiles) +
                               " configurations");
  }
  std::sort(out.begin(), out.end());
  return out;
}

FleetFinding findingOf(ConfigError what) {
  return {FleetFinding::Severity::kError, std::move(what)};
}

// The certificate is where the file says, or beside the file: a copy of a file from another machine
// names a path on that machine.
std::optional<Pin> pinOf(const FleetMember& member, std::vector<FleetFinding>& findings) {
  fs::path named = member.config.identity.certificate,
           beside = fs::path(member.file).parent_path() / named.filename();
  for (const fs::path& path : {beside, named}) {
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    try {
      return readPin(path.string());
    } catch (const std::runtime_error& e) {
      findings.push_back(member.finding(FleetFinding::Severity::kError, "identity.certificate",
                                        e.what(), "put the gateway's certificate there"));
      return std::nullopt;
    }
  }
  findings.push_back(
      member.finding(FleetFinding::Severity::kWarning, "identity.certificate",
                     "is not here, so that the pins of this gateway cannot be verified",
                     "put " + named.filename().string() + " beside the file; the key stays away"));
  return std::nullopt;
}

// The value of "peers[0].pin", or the innermost existing part of the path to it.
const ConfigNode& nodeAt(const ConfigNode& root, const std::string& key) {
  const ConfigNode* node = &root;
  for (size_t at = 0; at < key.size();) {
    size_t end = std::min(key.find_first_of(".[", at), key.size());
    std::string name = key.substr(at, end - at);
    const ConfigNode* next = nullptr;
    for (size_t i = 0; i < node->keys.size(); ++i)
      if (node->keys[i].text == name) next = &node->items[i];
    if (!next) return *node;
    node = next;
    at = end;
    while (at < key.size() && key[at] == '[') {
      size_t index = std::stoul(key.substr(at + 1));
      if (node->kind != ConfigNode::Kind::kSequence || index >= node->items.size()) return *node;
      node = &node->items[index];
      at = key.find(']', at) + 1;
    }
    if (at < key.size() && key[at] == '.') ++at;
  }
  return *node;
}

}  // namespace

std::string FleetFinding::toString() const {
  return (severity == Severity::kError ? "error: " : "warning: ") + what.toString();
}

FleetFinding FleetMember::finding(FleetFinding::Severity severity, const std::string& key,
                                  std::string problem, std::string remedy) const {
  const ConfigNode& node = nodeAt(tree, key);
  return {severity, {file, node.line, node.column, key, std::move(problem), std::move(remedy)}};
}

Fleet readFleet(const std::string& folder) {
  Fleet fleet;
  LoadOptions options;
  options.checkIdentity = false;
  for (const std::string& path : configurationsBelow(folder)) {
    ++fleet.files;
    FleetMember member;
    ConfigResult result = loadConfig(path, options, &member.tree);
    if (auto* errors = std::get_if<ConfigErrors>(&result)) {
      for (ConfigError& e : *errors) fleet.findings.push_back(findingOf(std::move(e)));
      continue;
    }
    member.file = path;
    member.config = std::get<Config>(std::move(result));
    member.pin = pinOf(member, fleet.findings);
    fleet.members.push_back(std::move(member));
  }
  if (fleet.files == 0)
    throw std::runtime_error("there is no NAME.yaml in " + folder +
                             "; name the folder with the gateways' configurations");
  return fleet;
}

namespace {

using Severity = FleetFinding::Severity;

bool inside(const std::vector<Prefix>& prefixes, const Prefix& what) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const Prefix& p) {
    return p.length <= what.length && p.contains(what.address);
  });
}

bool hasEndpoints(const PeerConfig& peer) {
  return !peer.options.endpoints.empty() || !peer.hosts.empty();
}

std::string peerKey(size_t index, const char* key = nullptr) {
  std::string out = "peers[" + std::to_string(index) + "]";
  return key ? out + "." + key : out;
}

std::string itemKey(const std::string& list, size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

std::string stemOf(const std::string& file) {
  std::string name = file.substr(file.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

// The checks, with the data that all of them use.
class FleetChecks {
 public:
  explicit FleetChecks(const Fleet& fleet) : fleet_(fleet), out_(fleet.findings) {}

  std::vector<FleetFinding> run() {
    index();
    for (const FleetMember& m : fleet_.members) {
      checkAddresses(m);
      checkOverlaps(m);
      for (size_t i = 0; i < m.config.peers.size(); ++i) checkPeer(m, i);
      checkForwards(m);
    }
    std::stable_sort(out_.begin(), out_.end(), [](const FleetFinding& a, const FleetFinding& b) {
      return std::tie(a.what.file, a.what.line, a.what.column) <
             std::tie(b.what.file, b.what.line, b.what.column);
    });
    return std::move(out_);
  }

 private:
  void add(const FleetMember& m, Severity severity, const std::string& key, std::string problem,
           std::string remedy) {
    out_.push_back(m.finding(severity, key, std::move(problem), std::move(remedy)));
  }

  // Indexes the gateways by pin. An identity must belong to one gateway only.
  void index() {
    for (const FleetMember& m : fleet_.members) {
      if (!m.pin) continue;
      auto [first, fresh] = byPin_.emplace(*m.pin, &m);
      if (!fresh)
        add(m, Severity::kError, "identity.certificate",
            "is the certificate of " + first->second->file + " as well",
            "make a key for each gateway with 'braidctl keygen'");
    }
    allKnown_ = byPin_.size() == fleet_.files;
  }

  void checkAddresses(const FleetMember& m) {
    for (size_t i = 0; i < m.config.device.addresses.size(); ++i) {
      const Address& address = m.config.device.addresses[i].address;
      auto [first, fresh] = byAddress_.emplace(address, &m);
      if (!fresh && first->second != &m)
        add(m, Severity::kError, itemKey("device.addresses", i),
            address.toString() + " is an address of " + first->second->file + " as well",
            "give each gateway its own address in the tunnel");
    }
  }

  // Reports prefixes of different peers that overlap. The longest prefix wins, so a part of one
  // edge's network would be routed to another edge. A prefix that covers everything is allowed.
  void checkOverlaps(const FleetMember& m) {
    if (m.config.listen.empty()) return;
    struct Owned {
      const Prefix* prefix;
      size_t peer, place;
    };
    std::vector<Owned> all;
    for (size_t i = 0; i < m.config.peers.size(); ++i) {
      const std::vector<Prefix>& prefixes = m.config.peers[i].options.prefixes;
      for (size_t j = 0; j < prefixes.size(); ++j)
        if (!prefixes[j].isEverything()) all.push_back({&prefixes[j], i, j});
    }
    // After sorting, a prefix comes after those that contain it, and before all others.
    std::stable_sort(all.begin(), all.end(),
                     [](const Owned& a, const Owned& b) { return *a.prefix < *b.prefix; });
    std::vector<Owned> open;
    for (const Owned& o : all) {
      while (!open.empty() && !open.back().prefix->overlaps(*o.prefix)) open.pop_back();
      auto isOther = [&](const Owned& other) {
        const std::string& group = m.config.peers[o.peer].options.group;
        return other.peer != o.peer &&
               (group.empty() || m.config.peers[other.peer].options.group != group);
      };
      auto clash = std::find_if(open.rbegin(), open.rend(), isOther);
      if (clash != open.rend())
        add(m, Severity::kError, itemKey(peerKey(o.peer, "prefixes"), o.place),
            o.prefix->toString() + " is a part of " + clash->prefix->toString() + " of peer " +
                m.config.peers[clash->peer].options.name,
            "give each peer networks of its own");
      open.push_back(o);
    }
  }

  void checkPeer(const FleetMember& m, size_t i) {
    const PeerConfig& peer = m.config.peers[i];
    auto found = byPin_.find(peer.options.pin);
    if (found == byPin_.end()) return checkStranger(m, i);
    const FleetMember& other = *found->second;
    if (!m.pin) return;  // without it, this gateway cannot be found among the other one's peers
    auto back = std::find_if(other.config.peers.begin(), other.config.peers.end(),
                             [&](const PeerConfig& p) { return p.options.pin == *m.pin; });
    if (back == other.config.peers.end())
      return add(m, Severity::kError, peerKey(i, "pin"), other.file + " does not know this gateway",
                 "add a peer with the pin " + formatPin(*m.pin) + " there");
    checkReach(m, i, other, *back);
    checkSettings(m, i, other);
    checkNetworks(m, i, other);
  }

  // Reports a peer without a file. If a file has the peer's name but another pin, that file is
  // probably meant.
  void checkStranger(const FleetMember& m, size_t i) {
    const std::string& name = m.config.peers[i].options.name;
    auto named = std::find_if(
        fleet_.members.begin(), fleet_.members.end(),
        [&](const FleetMember& other) { return other.pin && stemOf(other.file) == name; });
    if (named != fleet_.members.end())
      return add(m, Severity::kError, peerKey(i, "pin"), "is not the pin of " + named->file,
                 "write " + formatPin(*named->pin) + ", or give the peer another name");
    add(m, allKnown_ ? Severity::kError : Severity::kWarning, peerKey(i, "pin"),
        "is the pin of no certificate in this folder",
        "add the configuration and the certificate of peer " + name + ", or remove the peer");
  }

  void checkReach(const FleetMember& m, size_t i, const FleetMember& other,
                  const PeerConfig& back) {
    const PeerConfig& peer = m.config.peers[i];
    if (!hasEndpoints(peer)) {
      if (!hasEndpoints(back))
        add(m, Severity::kError, peerKey(i),
            "has no endpoints, and " + other.file + " has none of this gateway either",
            "give the one that can be reached 'listen', and the other one its endpoints");
      return;
    }
    if (other.config.listen.empty())
      return add(m, Severity::kError, peerKey(i, "endpoints"),
                 "lead to " + other.file + ", which does not listen", "add 'listen' there");
    auto listens = [&](uint16_t port) {
      return std::any_of(other.config.listen.begin(), other.config.listen.end(),
                         [&](const Endpoint& e) { return e.port == port; });
    };
    std::vector<uint16_t> ports;
    for (const Endpoint& e : peer.options.endpoints) ports.push_back(e.port);
    for (const HostPort& h : peer.hosts) ports.push_back(h.port);
    for (uint16_t port : ports) {
      if (listens(port)) continue;
      add(m, Severity::kWarning, peerKey(i, "endpoints"),
          "name port " + std::to_string(port) + ", on which " + other.file + " does not listen",
          "correct the port, if no router between them changes it");
      break;
    }
  }

  void checkSettings(const FleetMember& m, size_t i, const FleetMember& other) {
    const Config &a = m.config, &b = other.config;
    bool first = m.file < other.file;  // report each pair once
    if (first && a.tunnel.mode != b.tunnel.mode)
      add(m, Severity::kError, "device",
          "is a TUN device, or a TAP device, and that of " + other.file + " the other one",
          "set the same device.mode at both");
    if (first && a.cipher && b.cipher && *a.cipher != *b.cipher)
      add(m, Severity::kError, "tunnel.cipher", "is another one than that of " + other.file,
          "set the same cipher at both, or auto");
    if (first && a.tunnel.streams.on != b.tunnel.streams.on)
      add(m, Severity::kWarning, "streams",
          "are on at one of this gateway and " + other.file + " only: nothing is a stream",
          "switch them on at both, or off at both");
    size_t sockets = 0;
    for (const UplinkConfig& u : a.uplinks) sockets += u.subflows;
    size_t subflows = sockets * (a.peers[i].options.endpoints.size() + a.peers[i].hosts.size());
    if (subflows > b.tunnel.maxSubflows)
      add(m, Severity::kError, peerKey(i),
          "would get " + std::to_string(subflows) + " subflows, and " + other.file + " takes " +
              std::to_string(b.tunnel.maxSubflows),
          "lower 'subflows', remove endpoints, or raise tunnel.max-subflows there");
  }

  // The networks behind the other gateway, by its own file, must be among the prefixes that this
  // one has for it.
  void checkNetworks(const FleetMember& m, size_t i, const FleetMember& other) {
    if (m.config.tunnel.mode != TunnelOptions::Mode::kTun) return;
    const std::vector<Prefix>& prefixes = m.config.peers[i].options.prefixes;
    for (const InterfaceAddress& a : other.config.device.addresses) {
      if (!inside(prefixes, {a.address, a.address.bits()}))
        add(m, Severity::kWarning, peerKey(i, "prefixes"),
            "do not hold " + a.address.toString() + ", the address of " + other.file +
                " in the tunnel",
            "add it, so that the gateway itself can be reached and its ICMP errors come through");
    }
    for (const Prefix& network : other.config.device.networks) {
      if (!inside(prefixes, network))
        add(m, Severity::kError, peerKey(i, "prefixes"),
            "do not hold " + network.toString() + ", a network of " + other.file,
            "add it, or remove it there");
    }
  }

  // The edge must allow the clients' addresses, or they must be translated.
  void checkForwards(const FleetMember& m) {
    if (!m.pin) return;
    for (size_t f = 0; f < m.config.router.forwards.size(); ++f) {
      const PortForward& forward = m.config.router.forwards[f];
      if (forward.ownSource) continue;
      const FleetMember* edge = ownerOf(m, forward.to);
      if (!edge) continue;
      auto me = std::find_if(edge->config.peers.begin(), edge->config.peers.end(),
                             [&](const PeerConfig& p) { return p.options.pin == *m.pin; });
      if (me == edge->config.peers.end()) continue;
      std::vector<Prefix> from = forward.from;
      if (from.empty()) from.push_back({Address{forward.to.family, {}}, 0});
      bool allowed = std::all_of(from.begin(), from.end(),
                                 [&](const Prefix& p) { return inside(me->options.prefixes, p); });
      if (!allowed)
        add(m, Severity::kError, itemKey("forwards", f),
            "brings clients to " + edge->file +
                " whose addresses are not among the prefixes of this gateway there",
            "add 'source: own', or the clients' networks (all: 0.0.0.0/0, ::/0) to those prefixes");
    }
  }

  // The gateway behind which the address is, by the longest prefix.
  const FleetMember* ownerOf(const FleetMember& m, const Address& address) const {
    const FleetMember* out = nullptr;
    int longest = -1;
    for (const PeerConfig& peer : m.config.peers) {
      auto found = byPin_.find(peer.options.pin);
      for (const Prefix& p : peer.options.prefixes) {
        if (!p.contains(address) || static_cast<int>(p.length) <= longest) continue;
        longest = static_cast<int>(p.length);
        out = found == byPin_.end() ? nullptr : found->second;
      }
    }
    return out;
  }

  const Fleet& fleet_;
  std::vector<FleetFinding> out_;
  std::map<Pin, const FleetMember*> byPin_;
  std::map<Address, const FleetMember*> byAddress_;
  bool allKnown_ = false;  ///< every file is valid and has its certificate
};

}  // namespace

std::vector<FleetFinding> checkFleet(const Fleet& fleet) {
  return FleetChecks(fleet).run();
}

}  // namespace braid
