#include "host/linux/link_resolver.h"

#include <ares.h>
#include <ev.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <utility>

#include "host/linux/sockaddr.h"
#include "host/system.h"

namespace braid {

namespace {

// Chosen: a server on a satellite's far side answers within a second. c-ares doubles the time with
// each further try.
constexpr int kTimeoutMs = 2000;
constexpr int kTries = 2;

// c-ares must be told once that the process uses it.
void useLibrary() {
  static const int kResult = ::ares_library_init(ARES_LIB_INIT_ALL);
  if (kResult != ARES_SUCCESS)
    throw SystemError(ENOMEM, std::string("c-ares: ") + ::ares_strerror(kResult));
}

bool isUsable(const LookupWay& way, const Address& server) {
  if (way.interface.empty()) return true;
  return server.isV4() ? way.v4.bits() > 0 : way.v6.bits() > 0;
}

std::string csvOf(const std::vector<Address>& servers, uint16_t port) {
  std::string out;
  for (const Address& a : servers) out += (out.empty() ? "" : ",") + Endpoint{a, port}.toString();
  return out;
}

// The addresses of an answer, sorted. Of many, the first kMostOfFamily of each family count: paths
// are tried to each of them.
std::vector<Endpoint> endpointsOf(const ares_addrinfo& list, uint16_t port) {
  constexpr size_t kMostOfFamily = 8;
  std::vector<Endpoint> out;
  for (const ares_addrinfo_node* node = list.nodes; node; node = node->ai_next) {
    SocketAddress address{};
    if (node->ai_addrlen > static_cast<ares_socklen_t>(sizeof address)) continue;
    std::memcpy(&address, node->ai_addr, static_cast<size_t>(node->ai_addrlen));
    Endpoint e = fromSocketAddress(address);
    e.port = port;
    if (e.address.bits()) out.push_back(e);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  size_t v4 = 0, v6 = 0;
  std::erase_if(
      out, [&](const Endpoint& e) { return (e.address.isV6() ? ++v6 : ++v4) > kMostOfFamily; });
  return out;
}

std::string problemOf(int status) {
  switch (status) {
    case ARES_ETIMEOUT:
      return "no server answers";
    case ARES_ECONNREFUSED:
      return "no server can be reached, or each of them refuses to answer";
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
      return "the name does not exist, or has no address";
    case ARES_ESERVFAIL:
      return "the server cannot find out (SERVFAIL)";
    case ARES_EREFUSED:
      return "the server refuses to answer (REFUSED)";
    default:
      return ::ares_strerror(status);
  }
}

}  // namespace

// The lookup of one name over one uplink. c-ares calls back from within lookUp(), onEvents() and
// the destructor; the result is only kept then.
class LinkResolver::Lookup {
 public:
  Lookup(LinkResolver& owner, LookupWay way, const HostPort& name)
      : owner_(owner),
        way_(std::move(way)),
        timer_(owner.loop_, [this] { run(ARES_SOCKET_BAD, ARES_SOCKET_BAD); }) {
    result_.uplink = way_.uplink;
    result_.name = name;
  }
  ~Lookup() {
    ended_ = true;
    if (channel_) ::ares_destroy(channel_);
  }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  const LookupWay& way() const { return way_; }
  /// Asks these servers. Called once.
  void begin(LinkResolvers asked, uint16_t port);
  bool isBegun() const { return begun_; }
  bool isFor(const LookupWay& way, const HostPort& name) const {
    return way_ == way && result_.name == name;
  }
  bool isOf(const std::string& uplink, const HostPort& name) const {
    return result_.uplink == uplink && result_.name == name;
  }
  bool isDone() const { return done_; }
  LookupResult takeResult() { return std::move(result_); }

 private:
  struct Watch {
    ev_io io;
    Lookup* lookup;
  };
  void end(std::string problem);
  void run(ares_socket_t readable, ares_socket_t writable);
  void arm();
  bool openChannel(uint16_t port);
  void watch(ares_socket_t fd, bool read, bool write);
  int prepare(ares_socket_t fd) const;
  void onAnswer(int status, ares_addrinfo* list);

  LinkResolver& owner_;
  LookupWay way_;
  LookupResult result_;
  bool begun_ = false, done_ = false, ended_ = false;
  ares_channel channel_ = nullptr;
  std::map<ares_socket_t, std::unique_ptr<Watch>> watches_;
  CoarseTimer timer_;  // made while a gateway runs, perhaps without a free descriptor
};

void LinkResolver::Lookup::end(std::string problem) {
  if (done_ || ended_) return;
  done_ = true;
  result_.problem = std::move(problem);
  owner_.done_.arm(monotonicNow());
}

// Servers on this host are asked by sockets that are bound to nothing.
void LinkResolver::Lookup::begin(LinkResolvers asked, uint16_t port) {
  begun_ = true;
  result_.asked = std::move(asked);
  std::vector<Address>& servers = result_.asked.servers;
  if (!result_.asked.local)
    std::erase_if(servers, [this](const Address& a) { return !isUsable(way_, a); });
  if (way_.strict && servers.empty()) {
    result_.reached = false;
    return end("no DNS server is known there");
  }
  if (!openChannel(port)) return;
  ares_addrinfo_hints hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = ARES_AI_NOSORT;
  ::ares_getaddrinfo(
      channel_, result_.name.host.c_str(), nullptr, &hints,
      [](void* self, int status, int, ares_addrinfo* list) {
        static_cast<Lookup*>(self)->onAnswer(status, list);
      },
      this);
  arm();
}

bool LinkResolver::Lookup::openChannel(uint16_t port) {
  ares_options options{};
  options.flags = ARES_FLAG_NOSEARCH;
  options.timeout = kTimeoutMs;
  options.tries = kTries;
  // Without servers, the hosts file alone is asked: c-ares would take those of resolv.conf.
  const std::vector<Address>& servers = result_.asked.servers;
  std::string lookups = servers.empty() ? "f" : way_.strict ? "b" : "fb";
  options.lookups = lookups.data();
  options.sock_state_cb = [](void* self, ares_socket_t fd, int read, int write) {
    static_cast<Lookup*>(self)->watch(fd, read != 0, write != 0);
  };
  options.sock_state_cb_data = this;
  int status = ::ares_init_options(&channel_, &options,
                                   ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                                       ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);
  if (status != ARES_SUCCESS) {
    channel_ = nullptr;
    end(::ares_strerror(status));
    return false;
  }
  if (!servers.empty()) {
    status = ::ares_set_servers_ports_csv(channel_, csvOf(servers, port).c_str());
    if (status != ARES_SUCCESS) {
      end(::ares_strerror(status));
      return false;
    }
  }
  ::ares_set_socket_configure_callback(
      channel_,
      [](ares_socket_t fd, int, void* self) { return static_cast<Lookup*>(self)->prepare(fd); },
      this);
  if (result_.asked.local) return true;
  if (way_.v4.isV4()) {
    uint32_t local;
    std::memcpy(&local, way_.v4.bytes.data(), sizeof local);
    ::ares_set_local_ip4(channel_, ntohl(local));
  }
  if (way_.v6.isV6()) ::ares_set_local_ip6(channel_, way_.v6.bytes.data());
  return true;
}

// Called before a socket is used. Returning an error keeps the lookup from asking past the uplink.
int LinkResolver::Lookup::prepare(ares_socket_t fd) const {
  // A process without CAP_NET_ADMIN cannot set the mark. It has no tunnel either, so the question
  // needs none.
  if (::setsockopt(fd, SOL_SOCKET, SO_MARK, &way_.mark, sizeof way_.mark) < 0 && errno != EPERM)
    return -1;
  if (result_.asked.local || way_.interface.empty()) return 0;
  return ::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, way_.interface.data(),
                      static_cast<socklen_t>(way_.interface.size()));
}

// c-ares closes the socket right after it says that nothing is wanted of it.
void LinkResolver::Lookup::watch(ares_socket_t fd, bool read, bool write) {
  struct ev_loop* loop = owner_.loop_.raw();
  std::unique_ptr<Watch>& known = watches_[fd];
  if (known) ::ev_io_stop(loop, &known->io);
  if (!read && !write) {
    watches_.erase(fd);
    return;
  }
  if (!known) known = std::make_unique<Watch>();
  known->lookup = this;
  known->io.data = known.get();
  auto onEvents = [](struct ev_loop* raw, ev_io* io, int events) {
    Lookup* lookup = static_cast<Watch*>(io->data)->lookup;
    int ready = io->fd;
    Loop::call(raw, [&] {
      lookup->run(events & EV_READ ? ready : ARES_SOCKET_BAD,
                  events & EV_WRITE ? ready : ARES_SOCKET_BAD);
    });
  };
  ev_io_init(&known->io, +onEvents, fd, (read ? EV_READ : 0) | (write ? EV_WRITE : 0));
  ::ev_io_start(loop, &known->io);
}

void LinkResolver::Lookup::run(ares_socket_t readable, ares_socket_t writable) {
  if (done_) return;
  ::ares_process_fd(channel_, readable, writable);
  arm();
}

// c-ares says how long it waits from now on.
void LinkResolver::Lookup::arm() {
  timeval longest{3600, 0}, wait{};
  if (done_) return timer_.stop();
  timeval* next = ::ares_timeout(channel_, &longest, &wait);
  if (!next) return timer_.stop();
  timer_.start(std::chrono::seconds(next->tv_sec) + std::chrono::microseconds(next->tv_usec) + 1ms);
}

void LinkResolver::Lookup::onAnswer(int status, ares_addrinfo* list) {
  std::unique_ptr<ares_addrinfo, decltype(&::ares_freeaddrinfo)> owner(list, &::ares_freeaddrinfo);
  if (ended_) return;
  if (status == ARES_SUCCESS && list) result_.found = endpointsOf(*list, result_.name.port);
  if (!result_.found.empty()) return end({});
  result_.reached = !result_.asked.servers.empty();
  if (!result_.reached) return end("no DNS server is known there");
  result_.reached = status != ARES_ETIMEOUT && status != ARES_ECONNREFUSED;
  end(problemOf(status == ARES_SUCCESS ? ARES_ENODATA : status));
}

LinkResolver::LinkResolver(Loop& loop, OnResult onResult, LinkResolverFiles files, uint16_t port)
    : loop_(loop),
      onResult_(std::move(onResult)),
      files_(std::move(files)),
      port_(port),
      manager_(loop),
      done_(loop, [this] { deliver(); }) {
  useLibrary();
}

LinkResolver::~LinkResolver() = default;

void LinkResolver::request(const LookupWay& way, const HostPort& name) {
  for (const auto& each : lookups_) {
    if (each->isFor(way, name)) return;
  }
  lookups_.remove_if([&](const auto& each) { return each->isOf(way.uplink, name); });
  lookups_.push_back(std::make_unique<Lookup>(*this, way, name));
  if (!files_.needsManager(way)) return begin(*lookups_.back(), {});
  manager_.ask([this](const NetworkManager::Servers& servers) {
    for (const auto& each : lookups_) {
      if (each->isBegun()) continue;
      auto found = servers.find(each->way().interface);
      begin(*each, found == servers.end() ? std::vector<Address>{} : found->second);
    }
  });
}

void LinkResolver::begin(Lookup& lookup, const std::vector<Address>& managers) {
  lookup.begin(files_.of(lookup.way(), managers), port_);
}

void LinkResolver::deliver() {
  std::vector<LookupResult> results;
  for (const auto& each : lookups_) {
    if (each->isDone()) results.push_back(each->takeResult());
  }
  lookups_.remove_if([](const auto& each) { return each->isDone(); });
  for (const LookupResult& result : results) onResult_(result);
}

}  // namespace braid
