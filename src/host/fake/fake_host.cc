#include "host/fake/fake_host.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "host/system.h"

namespace braid {

namespace {

class FakeStreamSocket final : public StreamSocket {
 public:
  explicit FakeStreamSocket(FakeStreamHost::Connection connection)
      : connection_(std::move(connection)) {}
  ~FakeStreamSocket() override {
    if (!connection_->closed) connection_->reset = true;
  }

  FakeConnection& connection() { return *connection_; }

  int connectError() override { return connection_->connectError; }
  int takeError() override { return connection_->error; }
  Moved read(std::span<const ByteSpan> into) override {
    FakeConnection& c = *connection_;
    if (c.error) return {0, Moved::Why::kFailed, c.error};
    Moved out{0, Moved::Why::kDone, 0};
    for (const ByteSpan& piece : into) {
      size_t n = std::min(piece.size(), c.toGateway.size());
      if (n > 0) std::memcpy(piece.data(), c.toGateway.data(), n);
      c.toGateway.erase(0, n);
      out.bytes += n;
    }
    if (out.bytes == 0) out.why = c.ended ? Moved::Why::kEnd : Moved::Why::kBlocked;
    return out;
  }
  Moved write(std::span<const ByteView> from) override {
    FakeConnection& c = *connection_;
    if (c.error) return {0, Moved::Why::kFailed, c.error};
    Moved out{0, Moved::Why::kDone, 0};
    for (const ByteView& piece : from) {
      size_t n = std::min(piece.size(), c.room);
      c.fromGateway.append(reinterpret_cast<const char*>(piece.data()), n);
      if (c.room != SIZE_MAX) c.room -= n;
      out.bytes += n;
    }
    if (out.bytes == 0) out.why = Moved::Why::kBlocked;
    return out;
  }
  void shutdownWrite() override { connection_->shut = true; }
  void close() override { connection_->closed = true; }

 private:
  FakeStreamHost::Connection connection_;
};

}  // namespace

FakeStreamHost::Connection FakeStreamHost::arrive(const Endpoint& source,
                                                  const Endpoint& destination) {
  auto connection = std::make_shared<FakeConnection>();
  connection->source = source;
  connection->destination = destination;
  waiting_.push_back(connection);
  if (accepts_) observer_.onAcceptable();
  return connection;
}

void FakeStreamHost::intercept(const Interception& what, bool takeNew) {
  if (refuse_) throw SystemError(EOPNOTSUPP, "refused to take connections over");
  ++changes_;
  taking_.reset();
  if (takeNew) taking_ = what;
}

std::optional<StreamHost::Accepted> FakeStreamHost::accept(uint64_t tag, int& error) {
  error = waiting_.empty() ? EAGAIN : acceptError_;
  if (error == EMFILE) {
    waiting_.front()->reset = true;
    waiting_.pop_front();
  }
  if (error) return std::nullopt;
  Connection connection = std::move(waiting_.front());
  waiting_.pop_front();
  connection->tag = tag;
  return Accepted{std::make_unique<FakeStreamSocket>(connection), connection->source,
                  connection->destination};
}

void FakeStreamHost::wantAccept(bool on) {
  accepts_ = on;
  // Behaves like a listening socket in epoll (level-triggered): calls again as long as connections
  // wait and the observer accepts some.
  for (size_t before = waiting_.size() + 1;
       accepts_ && !waiting_.empty() && waiting_.size() < before;) {
    before = waiting_.size();
    observer_.onAcceptable();
  }
}

void FakeStreamHost::retag(StreamSocket& socket, uint64_t tag) {
  static_cast<FakeStreamSocket&>(socket).connection().tag = tag;
}

std::unique_ptr<StreamSocket> FakeStreamHost::connect(const std::optional<Endpoint>& source,
                                                      const Endpoint& destination, uint64_t tag,
                                                      int& error) {
  error = 0;
  if (!connectErrors_.empty()) {
    error = connectErrors_.front();
    connectErrors_.pop_front();
    if (error) return nullptr;
  }
  auto connection = std::make_shared<FakeConnection>();
  connection->source = source.value_or(Endpoint{});
  connection->destination = destination;
  connection->tag = tag;
  connection->connectError = EINPROGRESS;
  opened_.push_back(connection);
  return std::make_unique<FakeStreamSocket>(connection);
}

FakeTunDevice::FakeTunDevice(const std::string& name, std::function<void()> onReadable)
    : onReadable_(std::move(onReadable)) {
  name_ = name;
}

void FakeTunDevice::put(ByteView packet) {
  in_.emplace_back(packet.begin(), packet.end());
  onReadable_();
}

void FakeTunDevice::vanish() {
  vanished_ = true;
  onReadable_();
}

std::vector<std::vector<uint8_t>> FakeTunDevice::takeWritten() {
  return std::exchange(written_, {});
}

size_t FakeTunDevice::read(PacketPool& pool, size_t limit, const Sink& sink) {
  gone_ = vanished_;
  size_t reads = 0;
  for (; !gone_ && reads < limit && !in_.empty(); ++reads) {
    Packet packet = pool.copy(in_.front());
    in_.pop_front();
    ++(packet ? counters_.readPackets : counters_.readNoBuffer);
    if (packet) sink(std::move(packet));
  }
  return reads;
}

void FakeTunDevice::write(Packet packet) {
  if (vanished_) return void(++counters_.writeErrors);
  ++counters_.writtenPackets;
  counters_.writtenBytes += packet.size();
  written_.emplace_back(packet.view().begin(), packet.view().end());
}

namespace {

bool isAny(const Address& a) {
  return std::all_of(a.bytes.begin(), a.bytes.end(), [](uint8_t b) { return b == 0; });
}

class FakeResolver final : public Resolver {
 public:
  using Lookups = std::vector<std::pair<LookupWay, HostPort>>;
  explicit FakeResolver(Lookups& lookups) : lookups_(lookups) {}
  void request(const LookupWay& way, const HostPort& name) override {
    std::erase_if(lookups_, [&](const auto& known) {
      return known.first.uplink == way.uplink && known.second == name;
    });
    lookups_.emplace_back(way, name);
  }

 private:
  Lookups& lookups_;
};

}  // namespace

std::unique_ptr<TunDevice> FakeHost::openDevice(const DeviceOptions& options, Callback onReadable) {
  auto device = std::make_unique<FakeTunDevice>(options.name, std::move(onReadable));
  device_ = device.get();
  return device;
}

std::unique_ptr<DatagramSocket> FakeHost::openSocket(SocketId id, const SocketOptions& options,
                                                     SocketCallbacks callbacks) {
  if (sockets_.contains(id)) throw std::logic_error("a socket of this name is open");
  bool isAwaited = refusal_ == EADDRNOTAVAIL && options.mayBeAbsent;
  if (refused_.contains(options.local) && !isAwaited)
    throw SystemError(refusal_, "refused " + options.local.toString());
  auto socket = std::make_unique<FakeDatagramSocket>(
      id, options, std::move(callbacks),
      [this](FakeDatagram&& d) { sent_.push_back(std::move(d)); },
      [this, id] { sockets_.erase(id); });
  sockets_.emplace(id, socket.get());
  everOpened_.push_back(id);
  return socket;
}

std::unique_ptr<StreamHost> FakeHost::openStreams(const std::string&, StreamObserver& observer) {
  if (refuseStreams_) throw SystemError(EOPNOTSUPP, "refused streams");
  auto streams = std::make_unique<FakeStreamHost>(observer);
  streams_ = streams.get();
  return streams;
}

namespace {

/// Its rules are removed when it is destroyed.
class FakeTranslator final : public Translator {
 public:
  FakeTranslator(std::optional<Translation>& now, const bool& refuse, unsigned& forgotten)
      : now_(now), refuse_(refuse), forgotten_(forgotten) {}
  ~FakeTranslator() override { now_.reset(); }
  void set(const Translation& what) override {
    if (what.isEmpty()) return now_.reset();
    if (refuse_) throw SystemError(EOPNOTSUPP, "refused to translate addresses");
    now_ = what;
  }
  void forgetTunnelled() override { ++forgotten_; }

 private:
  std::optional<Translation>& now_;
  const bool& refuse_;
  unsigned& forgotten_;
};

/// Like the kernel's table, its rules outlive it when they have a guard.
class FakeFilter final : public PacketFilter {
 public:
  explicit FakeFilter(std::optional<FilterRules>& now) : now_(now) {}
  ~FakeFilter() override {
    if (now_ && !now_->guard) now_.reset();
  }
  void set(const FilterRules& rules) override {
    wanted_ = !rules.isEmpty();
    now_.reset();
    if (wanted_) now_ = rules;
  }
  bool isIntact() override { return !wanted_ || now_; }

 private:
  std::optional<FilterRules>& now_;
  bool wanted_ = false;
};

}  // namespace

std::unique_ptr<PacketFilter> FakeHost::openFilter(const std::string&) {
  return std::make_unique<FakeFilter>(filter_);
}

std::unique_ptr<Translator> FakeHost::openTranslator(const std::string&) {
  return std::make_unique<FakeTranslator>(translation_, refuseTranslation_, forgotten_);
}

bool FakeHost::deliver(const FakeDatagram& datagram) {
  auto fits = [&](const auto& entry) {
    const Endpoint& local = entry.second->local();
    return local.port == datagram.to.port && local.address.family == datagram.to.address.family &&
           (local.address == datagram.to.address || isAny(local.address));
  };
  auto at = std::find_if(sockets_.begin(), sockets_.end(), fits);
  if (at == sockets_.end()) return false;
  at->second->put(datagram);
  return true;
}

std::vector<HostPort> FakeHost::asked() const {
  std::vector<HostPort> out;
  for (const auto& [way, name] : lookups_) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

std::vector<std::string> FakeHost::askedOver(const HostPort& name) const {
  std::vector<std::string> out;
  for (const auto& [way, each] : lookups_) {
    if (each == name) out.push_back(way.uplink);
  }
  return out;
}

void FakeHost::answer(const HostPort& name, const std::vector<Endpoint>& found) {
  for (const std::string& uplink : askedOver(name)) answer(uplink, name, found);
}

void FakeHost::answer(const std::string& uplink, const HostPort& name,
                      const std::vector<Endpoint>& found) {
  auto known = std::find_if(lookups_.begin(), lookups_.end(), [&](const auto& l) {
    return l.first.uplink == uplink && l.second == name;
  });
  if (known == lookups_.end()) throw std::logic_error("nobody has asked for this name there");
  LookupResult result;
  result.uplink = uplink;
  result.name = name;
  result.found = found;
  if (found.empty()) result.problem = "no server answers";
  result.asked = {known->first.resolvers, "configuration", resolverHere_};
  lookups_.erase(known);
  for (const Resolver::OnResult& tell : onResolved_) tell(result);
}

void FakeHost::answerPage(const std::string& uplink, const Address& server, unsigned status,
                          const std::string& location) {
  auto known = std::ranges::find_if(
      pages_, [&](const auto& p) { return p.first.uplink == uplink && p.second == server; });
  if (known == pages_.end()) throw std::logic_error("nobody has asked for a page there");
  const LookupWay way = known->first;
  pages_.erase(known);
  onPage_({way, server, status, location});
}

NetworkMonitor& FakeHost::watchNetwork(Callback onChange) {
  network_.process(clock_.now());  // what exists already does not count as a change
  network_.watch(std::move(onChange));
  return network_;
}

std::unique_ptr<Resolver> FakeHost::openResolver(Resolver::OnResult onResult) {
  onResolved_.push_back(std::move(onResult));
  return std::make_unique<FakeResolver>(lookups_);
}

namespace {

class FakeWebProbe final : public WebProbe {
 public:
  FakeWebProbe(std::vector<std::pair<LookupWay, Address>>& pages, const bool& refuse)
      : pages_(pages), refuse_(refuse) {}
  void request(const LookupWay& way, const Address& server) override {
    if (refuse_) throw SystemError(EMFILE, "refused a socket");
    std::erase_if(pages_, [&](const auto& page) {
      return page.first.uplink == way.uplink && page.second == server;
    });
    pages_.emplace_back(way, server);
  }

 private:
  std::vector<std::pair<LookupWay, Address>>& pages_;
  const bool& refuse_;
};

/// Like the kernel's table, its rules end with it.
class FakePortalGate final : public PortalGate {
 public:
  FakePortalGate(std::optional<PortalRules>& now, const bool& refuse)
      : now_(now), refuse_(refuse) {}
  ~FakePortalGate() override { now_.reset(); }
  void set(const PortalRules& rules) override {
    if (refuse_) throw SystemError(EOPNOTSUPP, "refused a way to a captive portal");
    now_ = rules;
  }

 private:
  std::optional<PortalRules>& now_;
  const bool& refuse_;
};

}  // namespace

std::unique_ptr<WebProbe> FakeHost::openWebProbe(WebProbe::OnAnswer onAnswer) {
  onPage_ = std::move(onAnswer);
  return std::make_unique<FakeWebProbe>(pages_, refusePortals_);
}

std::unique_ptr<PortalGate> FakeHost::openPortalGate(const std::string&) {
  return std::make_unique<FakePortalGate>(portals_, refusePortals_);
}

}  // namespace braid
