// One client of the control socket, which sends anything in pieces of any size and reads its
// answers in pieces of any size. The input is a sequence of steps: a byte that says how much to
// send or read, followed by the bytes to send. With some of them a descriptor comes. Every fourth
// length of an input is that of a client that owns nothing.

#include <fcntl.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gateway/control/control_session.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

using namespace braid;
using fuzz::require;

class Gateway : public ControlHandler {
 public:
  // Enough peers that an answer takes several turns, and sometimes fewer peers, as after a reload
  // between two turns.
  TunnelStatus tunnelStatus() override { return {}; }
  std::vector<std::string> peers() override { return std::vector<std::string>(peers_, "x"); }
  std::optional<PeerStatus> peerStatus(size_t place, size_t flows) override {
    if (++asked_ % 16 == 0) peers_ = peers_ % 6 + 3;
    if (place >= peers_) return std::nullopt;
    PeerStatus status;
    status.name = "x";
    status.subflows.resize(2);
    status.flows.resize(std::min<size_t>(flows, 12));
    return status;
  }
  GatewayStatus gatewayStatus() override {
    GatewayStatus gateway;
    gateway.version = "1.2.3";
    gateway.uplinks.push_back({"wifi", "wlan0", true, {"192.0.2.7"}, ""});
    return gateway;
  }
  std::string trace(UniqueFd file) override {
    traces_ += file ? 1 : 0;
    return traces_ % 2 == 0 ? "" : "the disk is full";
  }
  InviteResult invite(const InviteRequest& request) override {
    require(request.lifetime <= InviteRequest::kLongest, "a longer life than there is");
    return {request.name.empty() ? "no name" : "", request.name, {}};
  }
  const History& history() override { return history_; }
  std::string startTest(const std::string& peer, const MeasureRequest& request) override {
    require(request.time > Duration::zero() && request.time <= MeasureRequest::kLongest &&
                request.bytes > 0 && request.bytes <= MeasureRequest::kMostBytes,
            "a test that is refused");
    return peer == "x" ? "" : "there is no peer " + peer;
  }
  void stopTest() override {}
  std::pair<MeasureStatus, PeerStatus> testStatus() override {
    return {{"x", "wifi", true, 1000, 2s}, *peerStatus(0, 0)};
  }
  uint64_t drain(Duration time) override {
    require(time > Duration::zero() && time <= 600s, "a time that is refused");
    return 1;
  }
  std::string reload() override { return ++reloads_ % 2 == 0 ? "x.yaml:1:1: \xff\n" : ""; }

  // A path and a peer "x" with some steps, and an event.
  Gateway() {
    PeerStatus peer;
    peer.name = "x";
    peer.subflows.resize(1);
    peer.subflows[0].path = "wifi";
    for (int64_t wall = 1'700'000'000; wall < 1'700'000'400; wall += 10) history_.add(peer, wall);
    history_.add("portal", "wifi", "a captive portal waits", 1.7e9);
  }

 private:
  History history_;
  int reloads_ = 0, traces_ = 0;
  size_t peers_ = 6, asked_ = 0;
};

// Checks that every line of the answers is a JSON object with "ok". The first `old` bytes contain
// no line end. Searching them again for each new byte would take time quadratic in an answer's
// size.
void checkLines(std::string& answers, size_t old) {
  size_t end;
  while ((end = answers.find('\n', old)) != std::string::npos) {
    old = 0;
    nlohmann::json line = nlohmann::json::parse(answers.substr(0, end), nullptr, false);
    require(line.is_object() && line.contains("ok"), "an answer that is none");
    require(line["ok"] == true || line.contains("error"), "a refusal without a reason");
    answers.erase(0, end + 1);
  }
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  Gateway gateway;
  Time now{};
  ControlSession session(gateway, size % 4 != 3, now);
  std::string answers;
  size_t steps = 0;
  while (!session.finished()) {
    require(++steps < 100'000'000, "no end");
    now += 10us;
    size_t pace = size > 0 ? data[0] : 255;
    if (session.wantsTurn()) {
      require(!session.wantsInput() && session.output().empty(),
              "reads or writes while it makes an answer");
      session.onTurn(now);
    } else if (session.wantsInput()) {
      require(session.output().empty(), "reads on before its answer is taken");
      if (size <= 1) {
        session.onEnd(now);
        continue;
      }
      size_t n = std::min(size - 1, pace % 64 + 1);
      if (pace >= 0xc0) session.onDescriptor(UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC)));
      session.onInput({reinterpret_cast<const char*>(data) + 1, n}, now);
      data += n + 1;
      size -= n + 1;
    } else {
      std::string_view out = session.output();
      require(!out.empty(), "neither reads nor writes");
      // Uses small sizes in turn. With one byte at a time an answer would exceed the time limit of
      // an input.
      size_t n = std::min(out.size(), pace * pace / 4 + 1 + steps % 64);
      const size_t old = answers.size();
      answers += out.substr(0, n);
      session.onWritten(n, now);
      checkLines(answers, old);
    }
    require(session.deadline() > now, "a deadline in the past");
  }
  require(answers.empty(), "a cut answer");
}
