#include "host/linux/system_resolver.h"

#include <netdb.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "host/linux/sockaddr.h"
#include "host/system_error.h"

namespace braid {

// What loop and thread share; lives as long as either of the two.
struct SystemResolver::Shared {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<HostPort> wanted;
  std::map<HostPort, std::vector<Endpoint>> results;
  bool stop = false;
  UniqueFd ready{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};

  void run();
};

namespace {

std::vector<Endpoint> lookUp(const HostPort& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  std::vector<Endpoint> out;
  if (::getaddrinfo(name.host.c_str(), nullptr, &hints, &list) != 0) return out;
  for (const addrinfo* a = list; a; a = a->ai_next) {
    SocketAddress address{};
    if (a->ai_addrlen > sizeof address) continue;
    std::memcpy(&address, a->ai_addr, a->ai_addrlen);
    Endpoint e = fromSocketAddress(address);
    e.port = name.port;
    if (e.address.bits()) out.push_back(e);
  }
  ::freeaddrinfo(list);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

void SystemResolver::Shared::run() {
  std::unique_lock lock(mutex);
  while (true) {
    wake.wait(lock, [&] { return stop || !wanted.empty(); });
    if (stop) return;
    HostPort name = wanted.front();
    lock.unlock();
    std::vector<Endpoint> found = lookUp(name);
    lock.lock();
    if (stop) return;
    wanted.pop_front();
    results[name] = std::move(found);
    uint64_t one = 1;
    if (::write(ready.get(), &one, sizeof one) < 0) continue;  // the descriptor is readable already
  }
}

SystemResolver::SystemResolver(Loop& loop, OnResult onResult)
    : shared_(std::make_shared<Shared>()), onResult_(std::move(onResult)) {
  if (!shared_->ready)
    throw SystemError(errno, std::string("cannot make an eventfd: ") + std::strerror(errno));
  watcher_ = std::make_unique<IoWatcher>(loop, shared_->ready.get(), [this] { collect(); });
}

SystemResolver::~SystemResolver() {
  std::lock_guard lock(shared_->mutex);
  shared_->stop = true;
  shared_->wake.notify_one();
}

void SystemResolver::request(const HostPort& name) {
  if (!started_) std::thread([shared = shared_] { shared->run(); }).detach();
  started_ = true;
  std::lock_guard lock(shared_->mutex);
  auto& wanted = shared_->wanted;
  if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) wanted.push_back(name);
  shared_->wake.notify_one();
}

void SystemResolver::collect() {
  uint64_t count;
  if (::read(shared_->ready.get(), &count, sizeof count) < 0) return;
  std::map<HostPort, std::vector<Endpoint>> results;
  {
    std::lock_guard lock(shared_->mutex);
    results.swap(shared_->results);
  }
  for (const auto& [name, found] : results) onResult_(name, found);
}

}  // namespace braid
