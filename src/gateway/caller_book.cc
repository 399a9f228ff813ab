#include "gateway/caller_book.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/hex.h"
#include "gateway/state_file.h"
#include "tunnel/wire/pin.h"

namespace braid {

namespace {
using Json = nlohmann::json;

/// Bytes of the file at most. Ours: 1024 peers with eight routes of IPv6 each take less than 2 MB.
constexpr size_t kMaxBook = 4 << 20;

template <typename T>
T need(std::optional<T> value) {
  if (!value) throw std::runtime_error("malformed");
  return *value;
}

ReturnToken tokenOf(const std::string& text) {
  ReturnToken token;
  if (!fromHex(text, token)) throw std::runtime_error("token");
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
          {"token", toHex(caller.call.token)},
          {"routes", std::move(routes)}};
}

KeptCaller callerOf(const Json& j) {
  KeptCaller caller;
  caller.pin = need(parsePin(j.at("pin").get<std::string>()));
  caller.call = {wholeOf<uint32_t>(j.at("session")), tokenOf(j.at("token").get<std::string>())};
  for (const Json& route : j.at("routes")) {
    if (caller.routes.size() == Caller::kMostRoutes) break;
    std::string local = route.at(1).get<std::string>();
    caller.routes.push_back({need(Endpoint::parse(route.at(0).get<std::string>())),
                             local.empty() ? Address{} : need(Address::parse(local)),
                             need(Endpoint::parse(route.at(2).get<std::string>()))});
  }
  return caller;
}
}  // namespace

std::vector<KeptCaller> CallerBook::parse(std::string_view text) {
  const Json book = Json::parse(text);
  std::vector<KeptCaller> callers;
  for (const Json& caller : book.at("callers")) callers.push_back(callerOf(caller));
  return callers;
}

std::string CallerBook::format(const std::vector<KeptCaller>& callers) {
  Json all = Json::array();
  for (const KeptCaller& caller : callers) all.push_back(callerJson(caller));
  return Json{{"callers", std::move(all)}}.dump() + "\n";
}

std::vector<KeptCaller> CallerBook::load() const {
  std::string text = readStateFile(path_, kMaxBook);
  try {
    return text.empty() ? std::vector<KeptCaller>{} : parse(text);
  } catch (const std::exception&) {
    throw std::runtime_error(path_ + " is no list of the peers that came here, it is not used");
  }
}

std::string CallerBook::save(const std::vector<KeptCaller>& callers) {
  std::string text = format(callers);
  if (text == saved_) return {};
  std::string problem = writeStateFile(path_, text, 0600);
  if (problem.empty()) saved_ = std::move(text);
  return problem;
}

}  // namespace braid
