#include "gateway/caller_book.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "host/system_error.h"
#include "host/unique_fd.h"
#include "tunnel/wire/pin.h"

namespace braid {

namespace {
using Json = nlohmann::json;

/// Bytes of the file at most. Ours: 4096 peers with two routes each take 1.2 MB.
constexpr size_t kMaxBook = 4 << 20;

template <typename T>
T need(std::optional<T> value) {
  if (!value) throw std::runtime_error("malformed");
  return *value;
}

std::string textOf(const ReturnToken& token) {
  std::string text;
  for (uint8_t byte : token) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

ReturnToken tokenOf(const std::string& text) {
  ReturnToken token;
  if (text.size() != 2 * token.size()) throw std::runtime_error("token");
  for (size_t i = 0; i < token.size(); ++i) {
    const char* at = &text[2 * i];
    if (std::from_chars(at, at + 2, token[i], 16).ptr != at + 2) throw std::runtime_error("token");
  }
  return token;
}

Json callerJson(const KeptCaller& caller) {
  Json routes = Json::array();
  for (const KeptRoute& r : caller.routes) {
    std::string local = r.local.bits() ? r.local.toString() : std::string();
    routes.push_back({r.listen.toString(), local, r.remote.toString()});
  }
  return {{"pin", formatPin(caller.pin)},
          {"session", caller.call.session},
          {"token", textOf(caller.call.token)},
          {"routes", std::move(routes)}};
}

KeptCaller callerOf(const Json& j) {
  KeptCaller caller;
  caller.pin = need(parsePin(j.at("pin").get<std::string>()));
  caller.call = {j.at("session").get<uint32_t>(), tokenOf(j.at("token").get<std::string>())};
  for (const Json& route : j.at("routes")) {
    if (caller.routes.size() == Caller::kMostRoutes) break;
    std::string local = route.at(1).get<std::string>();
    caller.routes.push_back({need(Endpoint::parse(route.at(0).get<std::string>())),
                             local.empty() ? Address{} : need(Address::parse(local)),
                             need(Endpoint::parse(route.at(2).get<std::string>()))});
  }
  return caller;
}

std::string textOfFile(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return {};
  std::string text;
  char part[16384];
  ssize_t got = file ? 0 : -1;
  while (file && text.size() <= kMaxBook && (got = ::read(file.get(), part, sizeof part)) > 0)
    text.append(part, static_cast<size_t>(got));
  if (got < 0) throw SystemError(errno, "cannot read " + path + ": " + std::strerror(errno));
  return text;
}
}  // namespace

std::vector<KeptCaller> CallerBook::load() const {
  std::string text = textOfFile(path_);
  std::vector<KeptCaller> callers;
  try {
    if (text.empty()) return {};
    const Json book = Json::parse(text);
    for (const Json& caller : book.at("callers")) callers.push_back(callerOf(caller));
  } catch (const std::exception&) {
    throw std::runtime_error(path_ + " is no list of the peers that came here, it is not used");
  }
  return callers;
}

// Without fsync, which may hold packets up for long: after a power cut the file may be older, or empty.
std::string CallerBook::save(const std::vector<KeptCaller>& callers) {
  Json all = Json::array();
  for (const KeptCaller& caller : callers) all.push_back(callerJson(caller));
  std::string text = Json{{"callers", std::move(all)}}.dump() + "\n";
  if (text == saved_) return {};
  std::string fresh = path_ + ".new";
  UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0600));
  bool good = file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
              ::rename(fresh.c_str(), path_.c_str()) == 0;
  if (!good) return "cannot write " + path_ + ": " + std::strerror(errno);
  saved_ = std::move(text);
  return {};
}

}  // namespace braid
