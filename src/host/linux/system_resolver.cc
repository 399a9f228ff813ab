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
#include <new>
#include <system_error>
#include <thread>

#include "host/linux/sockaddr.h"
#include "host/system.h"

namespace braid {

// State shared by the loop and the thread; lives as long as either of them.
struct SystemResolver::Shared {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<HostPort> wanted;
  std::map<HostPort, std::vector<Endpoint>> results;
  bool stop = false;
  UniqueFd ready{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};

  void run();
  void answer(const HostPort& name);
};

namespace {

std::vector<Endpoint> lookUp(const HostPort& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  std::vector<Endpoint> out;
  if (::getaddrinfo(name.host.c_str(), nullptr, &hints, &list) != 0) return out;
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* a = list; a; a = a->ai_next) {
    SocketAddress address{};
    if (a->ai_addrlen > sizeof address) continue;
    std::memcpy(&address, a->ai_addr, a->ai_addrlen);
    Endpoint e = fromSocketAddress(address);
    e.port = name.port;
    if (e.address.bits()) out.push_back(e);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

void SystemResolver::Shared::answer(const HostPort& name) {
  std::vector<Endpoint> found = lookUp(name);
  std::lock_guard lock(mutex);
  results[name] = std::move(found);
  uint64_t one = 1;
  // EAGAIN: the descriptor is readable already.
  for (int tries = 0; tries < 3 && ::write(ready.get(), &one, sizeof one) < 0 && errno != EAGAIN;
       ++tries) {
  }
}

void SystemResolver::Shared::run() {
  std::unique_lock lock(mutex);
  while (true) {
    wake.wait(lock, [&] { return stop || !wanted.empty(); });
    if (stop) return;
    try {
      HostPort name = wanted.front();
      lock.unlock();
      answer(name);
    } catch (const std::bad_alloc&) {  // no answer: the caller will ask again
    }
    if (!lock.owns_lock()) lock.lock();
    wanted.pop_front();
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
  try {
    if (!started_) std::thread([shared = shared_] { shared->run(); }).detach();
    started_ = true;
  } catch (const std::system_error&) {
    return onResult_(name, {});  // no thread can be started now
  }
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
