#include "ctl/firewall/firewall_program.h"

#include <arpa/inet.h>  // must precede the kernel's headers, which then omit duplicates

#include <linux/netfilter.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "ctl/firewall/firewalld.h"
#include "host/network.h"

namespace braid {

namespace {

constexpr const char* kUfwFolder = "/etc/ufw/";
constexpr const char* kDockerUnit = "/etc/systemd/system/docker.service.d/";
constexpr const char* kLibvirtHooks = "/etc/libvirt/hooks/network.d/";
// Since libvirt 10.4, where it does not use iptables.
constexpr const char* kLibvirtTable = "libvirt_network";

bool isV4(const PassRule& rule) {
  return rule.family == Address::Family::kV4;
}

std::string protocolName(uint8_t protocol) {
  return protocol == IPPROTO_TCP ? "tcp" : "udp";
}

std::string portsText(const PassRule& rule, const char* between) {
  std::string first = std::to_string(rule.firstPort);
  return rule.lastPort > rule.firstPort ? first + between + std::to_string(rule.lastPort) : first;
}

using Words = std::vector<std::string>;

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// Each step once, in their order.
class Steps {
 public:
  void add(FirewallStep step) {
    if (std::ranges::find(steps_, step) == steps_.end()) steps_.push_back(std::move(step));
  }
  std::vector<FirewallStep> take() { return std::move(steps_); }

 private:
  std::vector<FirewallStep> steps_;
};

std::string commentOf(const FirewallTask& task) {
  return "braid " + task.name;
}

// ufw has no rules by mark, so these stand in its file of rules that come before the user's.
FirewallStep ufwStreams(const std::vector<Obstacle>& obstacles, bool v4) {
  std::string chain = v4 ? "ufw-before-input" : "ufw6-before-input", text;
  for (const Obstacle& obstacle : obstacles) {
    const PassRule& rule = obstacle.opening.rule;
    if (obstacle.opening.kind != Opening::Kind::kStreams || isV4(rule) != v4) continue;
    std::string line = "-A " + chain;
    for (const std::string& word : iptablesWords(rule, "")) line += " " + word;
    if (text.find(line + "\n") == std::string::npos) text += line + "\n";
  }
  FirewallStep out;
  out.file = std::string(kUfwFolder) + (v4 ? "before.rules" : "before6.rules");
  out.text = text;
  out.before = "-A " + chain;
  out.finish = {"ufw", "reload"};
  return out;
}

std::vector<FirewallStep> ufwSteps(const std::vector<Obstacle>& obstacles,
                                   const FirewallTask& task) {
  Steps steps;
  for (const Obstacle& obstacle : obstacles) {
    const PassRule& rule = obstacle.opening.rule;
    if (obstacle.opening.kind == Opening::Kind::kStreams || rule.isForAnswers) continue;
    Words run{"ufw"}, undo{"ufw"};
    if (rule.hook == NftPacket::Hook::kForward) {
      run.emplace_back("route");
      undo.emplace_back("route");
    }
    undo.emplace_back("delete");
    append(run, ufwWords(rule));
    append(undo, ufwWords(rule));
    append(run, {"comment", commentOf(task)});
    FirewallStep step;
    step.run = run;
    step.undo = undo;
    steps.add(std::move(step));
  }
  for (bool v4 : {true, false}) {
    FirewallStep streams = ufwStreams(obstacles, v4);
    if (!streams.text.empty()) steps.add(streams);
  }
  return steps.take();
}

// Rules in a chain of iptables. `kept`: shell commands that make them again.
std::vector<FirewallStep> iptablesSteps(const std::vector<Obstacle>& obstacles, const char* chain,
                                        const FirewallTask& task, std::string& kept) {
  Steps steps;
  for (const Obstacle& obstacle : obstacles) {
    const PassRule& rule = obstacle.opening.rule;
    std::string program = isV4(rule) ? "iptables" : "ip6tables",
                where = chain ? chain : obstacle.drop.chain;
    Words words = iptablesWords(rule, commentOf(task)), run{program, "-w", "-I", where},
          undo{program, "-w", "-D", where}, look{program, "-w", "-C", where};
    append(run, words);
    append(undo, words);
    append(look, words);
    std::string again = shellText(look) + " 2>/dev/null || " + shellText(run) + "\n";
    if (kept.find(again) == std::string::npos) kept += again;
    FirewallStep step;
    step.run = run;
    step.undo = undo;
    steps.add(std::move(step));
  }
  return steps.take();
}

// Docker keeps what stands in DOCKER-USER, but not over a start of the machine.
std::vector<FirewallStep> dockerSteps(const std::vector<Obstacle>& obstacles,
                                      const FirewallTask& task) {
  std::string kept;
  std::vector<FirewallStep> steps = iptablesSteps(obstacles, "DOCKER-USER", task, kept);
  if (!task.hasSystemd) return steps;
  std::string unit = "[Service]\n";
  for (size_t from = 0, to; (to = kept.find('\n', from)) != std::string::npos; from = to + 1) {
    std::string line = kept.substr(from, to - from);
    std::ranges::replace(line, '\'', '"');
    unit += "ExecStartPost=-/bin/sh -c '" + line + "'\n";
  }
  FirewallStep& file = steps.emplace_back();
  file.file = kDockerUnit + ("braid-" + task.name) + ".conf";
  file.text = unit;
  file.finish = {"systemctl", "daemon-reload"};
  return steps;
}

std::vector<FirewallStep> nftSteps(const std::vector<Obstacle>& obstacles,
                                   const FirewallTask& task) {
  Steps steps;
  for (const Obstacle& obstacle : obstacles) {
    const NftDrop& drop = obstacle.drop;
    std::string words = drop.tableWords(), family = words.substr(0, words.find(' '));
    Words run{"nft", "insert", "rule", family, drop.table, drop.chain};
    append(run, nftWords(obstacle.opening.rule, commentOf(task), drop.family == NFPROTO_INET));
    FirewallStep step;
    step.run = run;
    step.undoComment = commentOf(task);
    step.undoChain = {family, drop.table, drop.chain};
    steps.add(std::move(step));
  }
  return steps.take();
}

// Shell commands that insert the rules again where their chain has none of this gateway.
std::string insertsAgain(const std::vector<FirewallStep>& steps, const FirewallTask& task) {
  std::map<Words, std::string> inserts;  // by chain
  for (const FirewallStep& step : steps)
    inserts[step.undoChain] += "  " + shellText(step.run) + "\n";
  std::string out, ours = shellText({"comment \"" + commentOf(task) + "\""});
  for (const auto& [chain, commands] : inserts)
    out +=
        "nft list chain " + shellText(chain) + " | grep -qF " + ours + " || {\n" + commands + "}\n";
  return out;
}

// libvirt makes its chains again when a network starts, or its own table when the first one does,
// and calls the hook then.
std::vector<FirewallStep> libvirtSteps(const std::vector<Obstacle>& obstacles,
                                       const FirewallTask& task) {
  std::vector<Obstacle> inIptables, inOwnTable;
  for (const Obstacle& obstacle : obstacles)
    (obstacle.drop.table == kLibvirtTable ? inOwnTable : inIptables).push_back(obstacle);
  std::string kept;
  std::vector<FirewallStep> steps = iptablesSteps(inIptables, "FORWARD", task, kept);
  std::vector<FirewallStep> inserts = nftSteps(inOwnTable, task);
  kept += insertsAgain(inserts, task);
  steps.insert(steps.end(), inserts.begin(), inserts.end());
  FirewallStep& file = steps.emplace_back();
  file.file = kLibvirtHooks + ("braid-" + task.name);
  file.text = "#!/bin/sh\n[ \"$2\" = started ] || exit 0\n" + kept;
  file.isProgram = true;
  return steps;
}

}  // namespace

FirewallProgram programOf(const Obstacle& obstacle, const NftFirewall& wall) {
  const NftDrop& drop = obstacle.drop;
  bool isIptables = drop.family != NFPROTO_INET && drop.table == "filter" &&
                    (drop.chain == "INPUT" || drop.chain == "FORWARD");
  if (drop.table == "firewalld") return FirewallProgram::kFirewalld;
  if (drop.table == kLibvirtTable) return FirewallProgram::kLibvirt;
  if (!isIptables) return FirewallProgram::kNft;
  if (drop.within.starts_with("LIBVIRT_")) return FirewallProgram::kLibvirt;
  const char* ufw = drop.family == NFPROTO_IPV4 ? "ufw-before-" : "ufw6-before-";
  if (wall.hasChain(drop.family, drop.table, ufw, true)) return FirewallProgram::kUfw;
  if (drop.chain == "FORWARD" && wall.hasChain(drop.family, drop.table, "DOCKER-USER"))
    return FirewallProgram::kDocker;
  return FirewallProgram::kIptables;
}

const char* nameOf(FirewallProgram program) {
  switch (program) {
    case FirewallProgram::kUfw:
      return "ufw";
    case FirewallProgram::kFirewalld:
      return "firewalld";
    case FirewallProgram::kDocker:
      return "docker";
    case FirewallProgram::kLibvirt:
      return "libvirt";
    case FirewallProgram::kIptables:
      return "iptables";
    case FirewallProgram::kNft:
      break;
  }
  return "nftables";
}

bool keepsRules(FirewallProgram program) {
  return program != FirewallProgram::kIptables && program != FirewallProgram::kNft;
}

bool canOpen(FirewallProgram program, const Opening& opening) {
  return program != FirewallProgram::kFirewalld || opening.kind != Opening::Kind::kStreams;
}

std::vector<FirewallStep> stepsFor(FirewallProgram program, const std::vector<Obstacle>& obstacles,
                                   const FirewallTask& task) {
  std::string ignored;
  switch (program) {
    case FirewallProgram::kUfw:
      return ufwSteps(obstacles, task);
    case FirewallProgram::kFirewalld:
      return firewalldSteps(obstacles, task);
    case FirewallProgram::kDocker:
      return dockerSteps(obstacles, task);
    case FirewallProgram::kLibvirt:
      return libvirtSteps(obstacles, task);
    case FirewallProgram::kIptables:
      return iptablesSteps(obstacles, nullptr, task, ignored);
    case FirewallProgram::kNft:
      break;
  }
  return nftSteps(obstacles, task);
}

Words ufwWords(const PassRule& rule) {
  if (rule.hook == NftPacket::Hook::kInput)
    return {"allow", portsText(rule, ":") + "/" + protocolName(rule.protocol)};
  Words out{"allow", "in", "on", rule.in};
  if (!rule.out.empty()) append(out, {"out", "on", rule.out});
  if (rule.source) append(out, {"from", rule.source->toString()});
  if (rule.destination) append(out, {"to", rule.destination->toString()});
  if (rule.firstPort != 0) {
    if (!rule.destination) append(out, {"to", "any"});
    append(out, {"port", portsText(rule, ":")});
  }
  if (rule.protocol != 0) append(out, {"proto", protocolName(rule.protocol)});
  return out;
}

Words iptablesWords(const PassRule& rule, const std::string& comment) {
  Words out;
  if (!rule.in.empty()) append(out, {"-i", rule.in});
  if (!rule.out.empty()) append(out, {"-o", rule.out});
  if (rule.source) append(out, {"-s", rule.source->toString()});
  if (rule.destination) append(out, {"-d", rule.destination->toString()});
  if (rule.protocol != 0) append(out, {"-p", protocolName(rule.protocol)});
  if (rule.firstPort != 0) append(out, {"--dport", portsText(rule, ":")});
  if (rule.markMask != 0)
    append(out,
           {"-m", "mark", "--mark", hexadecimal(rule.mark) + "/" + hexadecimal(rule.markMask)});
  if (rule.isForAnswers) append(out, {"-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED"});
  if (!comment.empty()) append(out, {"-m", "comment", "--comment", comment});
  append(out, {"-j", "ACCEPT"});
  return out;
}

Words nftWords(const PassRule& rule, const std::string& comment, bool isForBoth) {
  const char* family = isV4(rule) ? "ip" : "ip6";
  Words out;
  if (!rule.in.empty()) append(out, {"iifname", "\"" + rule.in + "\""});
  if (!rule.out.empty()) append(out, {"oifname", "\"" + rule.out + "\""});
  if (rule.source) append(out, {family, "saddr", rule.source->toString()});
  if (rule.destination) append(out, {family, "daddr", rule.destination->toString()});
  if (isForBoth && !rule.source && !rule.destination && rule.hook == NftPacket::Hook::kForward)
    append(out, {"meta", "nfproto", isV4(rule) ? "ipv4" : "ipv6"});
  if (rule.protocol != 0 && rule.firstPort == 0)
    append(out, {"meta", "l4proto", protocolName(rule.protocol)});
  if (rule.firstPort != 0)
    append(out, {protocolName(rule.protocol), "dport", portsText(rule, "-")});
  if (rule.markMask != 0)
    append(out, {"meta", "mark", "&", hexadecimal(rule.markMask), "==", hexadecimal(rule.mark)});
  if (rule.isForAnswers) append(out, {"ct", "state", "established,related"});
  out.emplace_back("accept");
  if (!comment.empty()) append(out, {"comment", "\"" + comment + "\""});
  return out;
}

}  // namespace braid
