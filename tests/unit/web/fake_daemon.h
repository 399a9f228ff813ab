#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gateway/control/status_json.h"
#include "tests/unit/gateway/control/control_fixture.h"
#include "web/answers.h"

namespace braid {

/// A daemon that answers when the test says so.
class FakeDaemon : public DaemonLink {
 public:
  void ask(const nlohmann::json& request, Done done) override {
    asked.push_back(request);
    waiting_.emplace_back(request, std::move(done));
    if (answersAtOnce) answer();
  }
  /// Answers the question that has waited longest.
  void answer() {
    auto [request, done] = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    DaemonAnswer out;
    out.at = wall += 1;
    out.problem = problem;
    auto found = answers.find(request.dump());
    if (problem.empty() && found == answers.end()) out.problem = "unknown";
    if (out.problem.empty()) {
      out.value = found->second;
      out.text = out.value.dump() + "\n";
    }
    done(std::move(out));
  }
  size_t waiting() const { return waiting_.size(); }
  /// Sets the answer to {"cmd":cmd}.
  nlohmann::json& says(const char* cmd) { return answers[nlohmann::json{{"cmd", cmd}}.dump()]; }
  /// The answers of a daemon with one peer and two paths.
  void sayAll() {
    FakeGateway gateway;
    says("status") = statusJson(gateway.gatewayStatus(), gateway.whole());
    says("status")["ok"] = true;
    says("flows") = flowsJson(gateway.whole(kListedFlows));
    History past;
    past.add(*gateway.peerStatus(0, 0), 1000);
    past.add(Event{Event::Kind::kPeerUp, "hub", "hub: up", ""}, 1000);
    says("history") = historyObject(past).whole();
    for (const History::Path& p : past.paths())
      answers[nlohmann::json{{"cmd", "history"}, {"peer", p.peer}, {"path", p.name}}.dump()] =
          historyObject(p).whole();
    for (const History::Peer& p : past.peers())
      answers[nlohmann::json{{"cmd", "history"}, {"peer", p.name}}.dump()] =
          historyObject(p).whole();
  }

  bool answersAtOnce = true;
  std::string problem;
  double wall = 1000;
  std::map<std::string, nlohmann::json> answers;
  std::vector<nlohmann::json> asked;

 private:
  std::vector<std::pair<nlohmann::json, Done>> waiting_;
};

}  // namespace braid
