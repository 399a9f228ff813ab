// The section `recovery`: what it means, and each mistake with its place, key, problem and remedy.

#include "tests/unit/gateway/config/config_fixture.h"

namespace braid::config_recovery_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* kPolicies[] = {"none",      "fuso",     "cofuso",     "redundant",
                                     "proactive", "reactive", "corrective", "adaptive"};

Config recovery(const std::string& body) {
  return configOf(edgeText() + "recovery: {" + body + "}\n");
}
// The one mistake of a section.
void expectError(const std::string& body, const std::string& error) {
  EXPECT_THAT(errorsOf(edgeText() + "recovery: {" + body + "}\n"), ElementsAre(error)) << body;
}
std::vector<RecoveryClass> classes(const std::string& list) {
  return recovery("classes: [" + list + "]").tunnel.recoveryClasses;
}

TEST(ConfigRecovery, WithoutTheSectionTheDefaultsOfTheTunnelHold) {
  for (const Config& c : {configOf(edgeText()), recovery("")}) {
    EXPECT_EQ(c.tunnel.recovery, TunnelOptions{}.recovery);
    EXPECT_EQ(c.tunnel.recoveryOptions.kMax, RecoveryOptions{}.kMax);
    EXPECT_EQ(c.tunnel.recoveryOptions.mMax, RecoveryOptions{}.mMax);
    EXPECT_EQ(c.tunnel.decodeBuffer, TunnelOptions{}.decodeBuffer);
    EXPECT_THAT(c.tunnel.recoveryClasses, IsEmpty());
    EXPECT_EQ(c.trace, "");
  }
}

TEST(ConfigRecovery, EveryKeyReachesItsOption) {
  Config c = recovery(
      "policy: cofuso, k-max: 30, m-max: 4, alpha: 0.1, beta: 0.2, alpha1: 0.3, beta1: 0.4, "
      "alpha2: 0.6, "
      "beta2: 0.7, decode-buffer: 512, trace: /run/braid/edge.trace");
  EXPECT_EQ(c.tunnel.recovery, "cofuso");
  const RecoveryOptions& o = c.tunnel.recoveryOptions;
  EXPECT_EQ(o.kMax, 30u);
  EXPECT_EQ(o.mMax, 4u);
  EXPECT_EQ(o.alpha, 0.1);
  EXPECT_EQ(o.beta, 0.2);
  EXPECT_EQ(o.alpha1, 0.3);
  EXPECT_EQ(o.beta1, 0.4);
  EXPECT_EQ(o.alpha2, 0.6);
  EXPECT_EQ(o.beta2, 0.7);
  EXPECT_EQ(c.tunnel.decodeBuffer, 512u);
  EXPECT_EQ(c.trace, "/run/braid/edge.trace");
}

TEST(ConfigRecovery, EveryPolicyMayBeNamed) {
  for (const char* name : kPolicies) {
    EXPECT_EQ(recovery(std::string("policy: ") + name).tunnel.recovery, name);
    EXPECT_NE(makeRecoveryPolicy(name, RecoveryOptions{}, 1), nullptr) << name;
  }
}

TEST(ConfigRecovery, EndsOfTheRanges) {
  EXPECT_EQ(recovery("k-max: 1, m-max: 1, decode-buffer: 0").tunnel.decodeBuffer, 0u);
  EXPECT_EQ(recovery("k-max: 128, m-max: 16, decode-buffer: 65536").tunnel.recoveryOptions.mMax,
            16u);
  EXPECT_EQ(recovery("alpha: 0, beta: 1").tunnel.recoveryOptions.beta, 1.0);
}

TEST(ConfigRecovery, ClassesInTheirOrder) {
  std::vector<RecoveryClass> list = classes(
      "{protocol: udp, ports: 5060-5080, policy: redundant}, {ports: 873, policy: none}, "
      "{dscp: ef, policy: adaptive}, {protocol: 132, dscp: 63, policy: fuso}");
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].protocol, 17);
  EXPECT_EQ(list[0].firstPort, 5060);
  EXPECT_EQ(list[0].lastPort, 5080);
  EXPECT_EQ(list[0].dscp, std::nullopt);
  EXPECT_EQ(list[0].policy, "redundant");
  EXPECT_EQ(list[1].protocol, std::nullopt);
  EXPECT_EQ(list[1].firstPort, 873);
  EXPECT_EQ(list[1].lastPort, 873);
  EXPECT_EQ(list[2].dscp, 46);
  EXPECT_EQ(list[2].firstPort, 0);
  EXPECT_EQ(list[2].lastPort, 65535);
  EXPECT_EQ(list[3].protocol, 132);
  EXPECT_EQ(list[3].dscp, 63);
}

TEST(ConfigRecovery, AClassMaySayHowDatagramsAreDelivered) {
  std::vector<RecoveryClass> list = classes(
      "{ports: 5201, delivery: ordered}, {dscp: ef, delivery: timely, policy: redundant}, {ports: "
      "1, policy: "
      "fuso}");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].delivery, Delivery::kOrdered);
  EXPECT_EQ(list[0].policy, "adaptive") << "that of recovery.policy";
  EXPECT_EQ(list[1].delivery, Delivery::kTimely);
  EXPECT_EQ(list[1].policy, "redundant");
  EXPECT_EQ(list[2].delivery, std::nullopt);
  EXPECT_EQ(recovery("policy: none, classes: [{ports: 1, delivery: timely}]")
                .tunnel.recoveryClasses.at(0)
                .policy,
            "none");
}

TEST(ConfigRecovery, NamesOfProtocolsAndCodePoints) {
  EXPECT_EQ(classes("{protocol: tcp, policy: none}").at(0).protocol, 6);
  EXPECT_EQ(classes("{protocol: 0, policy: none}").at(0).protocol, 0);
  EXPECT_EQ(classes("{protocol: 255, policy: none}").at(0).protocol, 255);
  for (auto [name, value] : std::vector<std::pair<std::string, int>>{{"cs0", 0},
                                                                     {"cs1", 8},
                                                                     {"cs7", 56},
                                                                     {"af11", 10},
                                                                     {"af43", 38},
                                                                     {"voice-admit", 44},
                                                                     {"le", 1}}) {
    EXPECT_EQ(classes("{dscp: " + name + ", policy: none}").at(0).dscp, value) << name;
  }
}

TEST(ConfigRecovery, KeysAndRanges) {
  expectError("polcy: fuso", "e.yaml:12:12: recovery.'polcy': unknown key; did you mean 'policy'?");
  expectError("policy: fusso",
              "e.yaml:12:20: recovery.policy: 'fusso' is not known; use one of: none, fuso, "
              "cofuso, redundant, "
              "proactive, reactive, corrective, adaptive");
  expectError("k-max: 0",
              "e.yaml:12:19: recovery.k-max: '0' is outside 1 to 128; use a number in that range");
  expectError(
      "k-max: 129",
      "e.yaml:12:19: recovery.k-max: '129' is outside 1 to 128; use a number in that range");
  expectError("m-max: 17",
              "e.yaml:12:19: recovery.m-max: '17' is outside 1 to 16; use a number in that range");
  expectError("m-max: 0",
              "e.yaml:12:19: recovery.m-max: '0' is outside 1 to 16; use a number in that range");
  expectError("decode-buffer: 65537",
              "e.yaml:12:27: recovery.decode-buffer: '65537' is outside 0 to 65536; use a number "
              "in that range");
}

TEST(ConfigRecovery, Weights) {
  for (const char* key : {"alpha", "beta", "alpha1", "beta1", "alpha2", "beta2"}) {
    for (const char* bad : {"1.01", "-0.1"}) {
      EXPECT_THAT(errorsOf(edgeText() + "recovery: {" + key + ": " + bad + "}\n"),
                  ElementsAre(AllOf(StartsWith("e.yaml:12:"),
                                    HasSubstr(std::string("recovery.") + key + ": '"),
                                    EndsWith("is outside 0 to 1; use a number in that range"))));
    }
    for (const char* bad : {"half", "nan", "1e-3", "0x1", "0.5 ", "."}) {
      EXPECT_THAT(errorsOf(edgeText() + "recovery: {" + key + ": '" + bad + "'}\n"),
                  ElementsAre(EndsWith(" is no number; use a number from 0 to 1, such as 0.5")))
          << bad;
    }
  }
  expectError("alpha1: 0, beta1: 0",
              "e.yaml:12:20: recovery.alpha1: both alpha1 and beta1 are 0, so all paths look "
              "alike; give one "
              "of them a value above 0");
}

TEST(ConfigRecovery, Classes) {
  expectError(
      "classes: [{protocol: tcp}]",
      "e.yaml:12:22: recovery.classes[0].policy: is missing; name the policy of these flows");
  expectError("classes: [{protocol: tcp, delivery: ordered}]",
              "e.yaml:12:48: recovery.classes[0].delivery: tcp is always kept in order; remove it, "
              "or use protocol "
              "udp");
  expectError("classes: [{ports: 1, delivery: reliable}]",
              "e.yaml:12:43: recovery.classes[0].delivery: 'reliable' is not known; use one of: "
              "ordered, timely");
  expectError(
      "classes: [{policy: none}]",
      "e.yaml:12:22: recovery.classes[0]: matches every flow; add protocol, ports or dscp, or set "
      "recovery.policy instead");
  expectError("classes: [{protocol: tpc, policy: none}]",
              "e.yaml:12:33: recovery.classes[0].protocol: 'tpc' is neither a known name nor a "
              "number from 0 "
              "to 255; names are: tcp, udp");
  expectError("classes: [{protocol: 256, policy: none}]",
              "e.yaml:12:33: recovery.classes[0].protocol: '256' is neither a known name nor a "
              "number from 0 "
              "to 255; names are: tcp, udp");
  EXPECT_THAT(errorsOf(edgeText() + "recovery: {classes: [{dscp: 64, policy: none}]}\n"),
              ElementsAre(StartsWith(
                  "e.yaml:12:29: recovery.classes[0].dscp: '64' is neither a known name nor "
                  "a number from 0 to 63; names are: cs0, cs1, ")));
  expectError("classes: [{dscp: 1, polic: none, policy: none}]",
              "e.yaml:12:32: recovery.classes[0].'polic': unknown key; did you mean 'policy'?");
  expectError("classes: [5]",
              "e.yaml:12:22: recovery.classes[0]: is a single value and must be a mapping; write "
              "'key: value' "
              "lines; known here: protocol, ports, dscp, policy, delivery");
  std::string many;
  for (size_t i = 0; i <= kMaxRecoveryClasses; ++i)
    many += "{dscp: " + std::to_string(i) + ", policy: none},";
  expectError("classes: [" + many + "]", "e.yaml:12:21: recovery.classes: has 8 items; keep to 7");
}

TEST(ConfigRecovery, Ports) {
  for (const char* bad :
       {"0", "65536", "80-", "-80", "80-65536", "0-80", "80-90-100", "http", "8 0", "0x50"}) {
    expectError(std::string("classes: [{ports: '") + bad + "', policy: none}]",
                "e.yaml:12:30: recovery.classes[0].ports: '" + std::string(bad) +
                    "' is no port or range of ports; write one from 1 to 65535, or two with a "
                    "dash, such as "
                    "5060-5080");
  }
  expectError("classes: [{ports: 81-80, policy: none}]",
              "e.yaml:12:30: recovery.classes[0].ports: '81-80' ends before it begins; write the "
              "smaller port "
              "first");
  expectError("classes: [{protocol: 1, ports: 80, policy: none}]",
              "e.yaml:12:43: recovery.classes[0].ports: protocol 1 has no ports; remove the ports, "
              "or use tcp "
              "or udp");
  EXPECT_EQ(classes("{ports: 1-65535, policy: none}").at(0).lastPort, 65535);
}

TEST(ConfigRecovery, ClassThatIsNeverReached) {
  const std::string tail =
      "is never reached: recovery.classes[0] matches all its flows; put the narrower class first, "
      "or remove "
      "one of them";
  expectError("classes: [{protocol: udp, policy: none}, {protocol: udp, ports: 53, policy: fuso}]",
              "e.yaml:12:53: recovery.classes[1]: " + tail);
  expectError("classes: [{ports: 10-20, policy: none}, {ports: 10-20, dscp: ef, policy: fuso}]",
              "e.yaml:12:52: recovery.classes[1]: " + tail);
  classes("{ports: 10-20, policy: none}, {ports: 9-20, policy: fuso}");
  classes("{ports: 10-20, policy: none}, {ports: 10-21, policy: fuso}");
  classes("{protocol: udp, policy: none}, {protocol: tcp, policy: fuso}");
  classes("{dscp: ef, policy: none}, {protocol: udp, policy: fuso}");
  // An invalid class covers no flows.
  expectError("classes: [{protocol: x, policy: none}, {protocol: udp, policy: fuso}]",
              "e.yaml:12:33: recovery.classes[0].protocol: 'x' is neither a known name nor a "
              "number from 0 to "
              "255; names are: tcp, udp");
}

TEST(ConfigRecovery, TraceIsACompletePath) {
  for (const char* bad : {"edge.trace", "/run/braid/"}) {
    expectError(std::string("trace: ") + bad,
                "e.yaml:12:19: recovery.trace: is no complete path of a file; write one such as "
                "/run/braid/edge.trace");
  }
  EXPECT_EQ(recovery("trace: ''").trace, "");
}

}  // namespace
}  // namespace braid::config_recovery_test
