// Measures how long answers at the control socket keep the packet thread busy, at a concentrator
// with 1,000 peers, 100,000 flows, and an hour of history of the maximum number of paths. The
// result is the longest turn of its event loop, in CPU time of that thread, which excludes other
// programs.
//
//     bench_control             asks for everything itself, one after the other
//     bench_control SOCKET      serves that socket until SIGTERM
//
// Prints one JSON object on one line. With a socket, the line {"ready":true} comes first.

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/hub.h"
#include "gateway/control/control.h"
#include "host/linux/loop.h"
#include "host/system.h"

namespace braid::sim {
namespace {

using nlohmann::json;

constexpr int kRounds = 5;  // repetitions of each request
constexpr int64_t kBegan = 1'700'000'000;

/// The concentrator as its control socket sees it.
class HubHandler : public ControlHandler {
 public:
  HubHandler() : hub_(kManyPeers) {
    for (bool down : {true, false}) {
      Trains trains(kManyPeers, kManyPeers, kManyFlows);
      for (unsigned i = 0; i < trains.round(); ++i) hub_.step(down, trains.next());
    }
    hub_.checkPeers();
    for (size_t step = 0; step < History::kSteps; ++step) {
      for (size_t i = 0; i < History::kMostPaths; ++i)
        history_.add(*peerStatus(i, 0), kBegan + 10 * static_cast<int64_t>(step));
    }
    for (size_t i = 0; i < History::kMostEvents; ++i) {
      std::string peer = "edge" + std::to_string(i);
      history_.add(Event{Event::Kind::kPeerUp, peer, peer + ": up", ""},
                   static_cast<double>(kBegan));
    }
  }

  /// Inner flows of all peers.
  size_t flows() {
    size_t sum = 0;
    for (size_t i = 0; i < hub_.tunnel().peerCount(); ++i) sum += peerStatus(i, 0)->flowCount;
    return sum;
  }

  TunnelStatus tunnelStatus() override { return hub_.tunnel().wholeStatus(); }
  std::vector<std::string> peers() override { return hub_.tunnel().peerNames(); }
  std::optional<PeerStatus> peerStatus(size_t place, size_t flows) override {
    if (place >= hub_.tunnel().peerCount()) return std::nullopt;
    return hub_.tunnel().peerStatus(place, hub_.now(), flows);
  }
  GatewayStatus gatewayStatus() override { return {}; }
  std::string reload() override { return {}; }
  uint64_t drain(Duration) override { return 0; }
  std::string trace(UniqueFd) override { return {}; }
  InviteResult invite(const InviteRequest&) override { return {}; }
  const History& history() override { return history_; }
  std::string startTest(const std::string&, const MeasureRequest&) override { return {}; }
  void stopTest() override {}
  std::pair<MeasureStatus, PeerStatus> testStatus() override { return {}; }

 private:
  Hub hub_;
  History history_;
};

/// Asks one question and takes the whole answer. Returns its bytes.
size_t ask(const std::string& path, const std::string& request) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    throw std::runtime_error(path + ": " + std::strerror(errno));
  }
  std::string answer;
  std::vector<char> room(1 << 16);
  while (!answer.ends_with('\n')) {
    ssize_t got = recv(fd.get(), room.data(), room.size(), 0);
    if (got <= 0) throw std::runtime_error("no answer to " + request);
    answer.append(room.data(), static_cast<size_t>(got));
  }
  if (!answer.ends_with("}\n") || answer.find("\"ok\":true") == std::string::npos)
    throw std::runtime_error(request + ": " + answer);
  return answer.size();
}

/// The cost of a loop's turns.
struct Turns {
  uint64_t count = 0;
  double sum = 0, longest = 0;

  void run(Loop& loop) {
    double began = cpuSeconds();
    loop.runOnce(true);
    double took = cpuSeconds() - began;
    ++count;
    sum += took;
    longest = std::max(longest, took);
  }
  json told() const {
    return {{"turns", count}, {"all_ms", sum * 1e3}, {"longest_ms", longest * 1e3}};
  }
};

json serve(Loop& loop, const std::string& path, HubHandler& hub) {
  ControlPath place(path);
  ControlServer server(loop.raw(), place, "", hub);
  bool ended = false;
  SignalWatcher term(loop, SIGTERM, [&] { ended = true; });
  std::cout << json{{"ready", true}} << std::endl;
  Turns turns;
  while (!ended) turns.run(loop);
  return turns.told();
}

json askAll(Loop& loop, HubHandler& hub) {
  const PeerStatus first = *hub.peerStatus(0, 0);
  const json ofPath{{"cmd", "history"}, {"peer", first.name}, {"path", first.subflows.at(0).path}};
  const std::pair<const char*, std::string> questions[] = {
      {"status", R"({"cmd":"status"})"},
      {"peers", R"({"cmd":"peers"})"},
      {"paths", R"({"cmd":"paths"})"},
      {"flows", R"({"cmd":"flows"})"},
      {"recovery", R"({"cmd":"recovery"})"},
      {"history", R"({"cmd":"history"})"},
      {"history of a peer", R"({"cmd":"history","peer":"edge0"})"},
      {"history of a path", ofPath.dump()}};
  std::string folder = (std::filesystem::temp_directory_path() / "braid-bench-XXXXXX").string();
  if (!mkdtemp(folder.data())) throw std::runtime_error("no temporary folder");
  std::string path = folder + "/hub.sock";
  json out = json::object();
  {
    ControlPath place(path);
    ControlServer server(loop.raw(), place, "", hub);
    for (const auto& [name, request] : questions) {
      Turns turns;
      std::atomic<size_t> bytes = 0;
      std::atomic<bool> ended = false;
      std::string problem;
      std::thread client([&, line = request + "\n"] {
        try {
          for (int i = 0; i < kRounds; ++i) bytes = ask(path, line);
        } catch (const std::runtime_error& e) {
          problem = e.what();
        }
        ended = true;
      });
      Timer look(loop, [] {});  // the end of the client does not wake the loop
      while (!ended || server.clients() > 0) {
        look.arm(monotonicNow() + 10ms);
        turns.run(loop);
      }
      client.join();
      if (!problem.empty()) throw std::runtime_error(problem);
      out[name] = turns.told();
      out[name]["answer_bytes"] = bytes.load();
    }
  }
  std::filesystem::remove_all(folder);
  return out;
}

int measure(int argc, char** argv) {
  HubHandler hub;
  Loop loop;
  json out = argc > 1 ? serve(loop, argv[1], hub) : json{{"questions", askAll(loop, hub)}};
  out["peers"] = hub.peers().size();
  out["flows"] = hub.flows();
  std::cout << out << std::endl;
  return 0;
}

}  // namespace
}  // namespace braid::sim

int main(int argc, char** argv) {
  try {
    return braid::sim::measure(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "bench_control: " << e.what() << '\n';
    return 1;
  }
}
