#include "gateway/state/initiator_store.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/bytes.h"
#include "gateway/config/state_file.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

namespace {
using Json = nlohmann::json;

/// Largest size of the file in bytes. 1024 peers with eight IPv6 routes each take less than 2 MB.
constexpr size_t kMaxBook = 4 << 20;

template <typename T>
T need(std::optional<T> value) {
  if (!value) throw std::runtime_error("malformed");
  return *value;
}

RestartToken tokenOf(const std::string& text) {
  RestartToken token;
  if (!fromHex(text, token)) throw std::runtime_error("token");
  return token;
}

Json initiatorJson(const StoredInitiator& initiator) {
  Json routes = Json::array();
  for (const KeptRoute& r : initiator.routes) {
    std::string local = r.local.bits() ? r.local.toString() : std::string();
    routes.push_back({r.listen.toString(), local, r.remote.toString()});
  }
  return {{"pin", formatPin(initiator.pin)},
          {"session", initiator.notice.session},
          {"token", toHex(initiator.notice.token)},
          {"routes", std::move(routes)}};
}

StoredInitiator initiatorOf(const Json& j) {
  StoredInitiator initiator;
  initiator.pin = need(parsePin(j.at("pin").get<std::string>()));
  initiator.notice = {wholeOf<uint32_t>(j.at("session")),
                      tokenOf(j.at("token").get<std::string>())};
  for (const Json& route : j.at("routes")) {
    if (initiator.routes.size() == KnownInitiator::kMostRoutes) break;
    std::string local = route.at(1).get<std::string>();
    initiator.routes.push_back({need(Endpoint::parse(route.at(0).get<std::string>())),
                                local.empty() ? Address{} : need(Address::parse(local)),
                                need(Endpoint::parse(route.at(2).get<std::string>()))});
  }
  return initiator;
}
}  // namespace

std::vector<StoredInitiator> InitiatorStore::parse(std::string_view text) {
  const Json book = Json::parse(text);
  std::vector<StoredInitiator> initiators;
  for (const Json& initiator : book.at("initiators")) initiators.push_back(initiatorOf(initiator));
  return initiators;
}

std::string InitiatorStore::format(const std::vector<StoredInitiator>& initiators) {
  Json all = Json::array();
  for (const StoredInitiator& initiator : initiators) all.push_back(initiatorJson(initiator));
  return Json{{"initiators", std::move(all)}}.dump() + "\n";
}

std::vector<StoredInitiator> InitiatorStore::load() const {
  std::string text = readStateFile(path_, kMaxBook);
  try {
    return text.empty() ? std::vector<StoredInitiator>{} : parse(text);
  } catch (const std::exception&) {
    throw std::runtime_error(path_ + " is no list of the peers that came here, it is not used");
  }
}

std::string InitiatorStore::save(const std::vector<StoredInitiator>& initiators) {
  std::string text = format(initiators);
  if (text == saved_) return {};
  std::string problem = writeStateFile(path_, text, 0600);
  if (problem.empty()) saved_ = std::move(text);
  return problem;
}

}  // namespace braid
