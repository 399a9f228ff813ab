#include "host/fake/fake_network.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "host/system.h"

namespace braid {

namespace {

constexpr uint16_t kFirstPort = 40000;  // base of the ports for sockets that let the host choose

Endpoint localEnd(SocketId id, const SocketOptions& options) {
  return {options.local, options.port ? options.port : static_cast<uint16_t>(kFirstPort + id)};
}

}  // namespace

FakeDatagramSocket::FakeDatagramSocket(SocketId id, const SocketOptions& options,
                                       SocketCallbacks callbacks, OnSent onSent,
                                       std::function<void()> onClosed)
    : DatagramSocket(id, localEnd(id, options)),
      options_(options),
      callbacks_(std::move(callbacks)),
      onSent_(std::move(onSent)),
      onClosed_(std::move(onClosed)) {}

void FakeDatagramSocket::setRoom(size_t datagrams) {
  room_ = datagrams;
  if (watched_ && room_ > 0) callbacks_.onWritable();
}

void FakeDatagramSocket::put(const FakeDatagram& datagram) {
  in_.push_back(datagram);
  if (in_.size() >= badlyMerged_) callbacks_.onReadable();
}

int FakeDatagramSocket::refusal(const Datagram& datagram) const {
  if (error_) return error_;
  if (room_ == 0) return EAGAIN;
  return datagram.bytes.size() + outerHeaders(datagram.route) > mtu_ ? EMSGSIZE : 0;
}

int FakeDatagramSocket::send(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const Datagram& d = nextAt(i);
    if (int error = refusal(d)) return i == 0 ? -error : static_cast<int>(i);
    if (room_ != SIZE_MAX) --room_;
    Endpoint from{d.route.local.bits() ? d.route.local : local().address, local().port};
    onSent_({from, d.route.remote, d.ecn, {d.bytes.view().begin(), d.bytes.view().end()}});
  }
  return static_cast<int>(count);
}

std::span<ReceivedDatagram> FakeDatagramSocket::receive(ReceiveBatch& batch, size_t limit,
                                                        bool& more) {
  using Place = ReceivedDatagram::Place;
  size_t ready = batch.prepare(limit);
  for (size_t i = 0; i < ready && !in_.empty(); ++i) {
    const FakeDatagram& d = in_.front();
    ByteSpan room = batch.room(i);
    if (d.bytes.size() <= room.size()) {
      std::memcpy(room.data(), d.bytes.data(), d.bytes.size());
      Place place = badlyMerged_ == 1 ? Place::kAlone : i == 0 ? Place::kFirst : Place::kLater;
      if (place == Place::kLater) room[d.bytes.size() - 1] ^= 1;
      batch.take(i, d.bytes.size(), {id(), d.to.address, d.from}, d.ecn, place);
      ++counters_.receivedDatagrams;
      counters_.receivedBytes += d.bytes.size();
    } else {
      ++counters_.truncated;
    }
    in_.pop_front();
  }
  more = ready > 0 && !in_.empty();
  return batch.received();
}

void FakeHostNetwork::changed() {
  if (onChange_) onChange_();
}

std::vector<NetworkChange> FakeHostNetwork::process(Time now) {
  if (now < readAt_ && readAt_ != kNever) return {};
  readAt_ = kNever;
  std::vector<NetworkChange> changes = table_.changesSince(told_);
  told_ = table_;
  return changes;
}

void FakeHostNetwork::add(const std::string& line) {
  if (refuses(line)) throw SystemError(EPERM, "refused " + line);
  ++adds_;
  set(line);
}

void FakeHostNetwork::set(const std::string& line) {
  configured_.insert(line);
  wanted_.insert(line);
}

void FakeHostNetwork::remove(const std::string& line) {
  wanted_.erase(line);
  if (refused_.contains(line)) throw SystemError(EPERM, "refused to remove " + line);
  configured_.erase(line);
}

void FakeHostNetwork::takeAway(const std::string& line) {
  configured_.erase(line);
  table_.noteLoss();
}

void FakeHostNetwork::setLinkUp(const std::string& device) {
  set(device + " up");
}

void FakeHostNetwork::setMtu(const std::string& device, uint32_t mtu) {
  std::string key = device + " MTU ";
  if (refusedMtus_ > 0 && refusedMtus_-- > 0) throw SystemError(ENOBUFS, "refused " + key);
  auto old = [&](const std::string& line) { return line.starts_with(key); };
  std::erase_if(configured_, old);
  std::erase_if(wanted_, old);
  set(key + std::to_string(mtu));
}

void FakeHostNetwork::addAddress(const std::string& device, const InterfaceAddress& address) {
  set("address " + address.toString() + " on " + device);
}

void FakeHostNetwork::removeAddress(const std::string& device, const InterfaceAddress& address) {
  remove("address " + address.toString() + " on " + device);
}

void FakeHostNetwork::setMaster(const std::string& device, const std::string& bridge) {
  set(device + " master " + bridge);
}

namespace {
std::string forwardingLine(Address::Family family) {
  return family == Address::Family::kV4 ? "IPv4 forwarding" : "IPv6 forwarding";
}
}  // namespace

void FakeHostNetwork::setForwarding(Address::Family family, const std::vector<std::string>& hosts,
                                    const std::string& before) {
  std::string line = forwardingLine(family);
  if (refuses(line)) throw SystemError(EROFS, "refused " + line);
  if (!forwards_ || !before.empty())
    ownForwarding_.try_emplace(family, before.empty() ? "1 lan0" : before);
  forwardingHosts_ = hosts;
  set(line);
}

void FakeHostNetwork::removeForwarding(Address::Family family) {
  ownForwarding_.erase(family);
  remove(forwardingLine(family));
}

std::string FakeHostNetwork::forwardingBefore(Address::Family family) {
  auto at = ownForwarding_.find(family);
  if (at != ownForwarding_.end()) return at->second;
  return forwards_ || wanted_.contains(forwardingLine(family)) ? "" : "1 lan0";
}

HostNetwork::Restored FakeHostNetwork::restore() {
  ++restores_;
  Restored out;
  for (const std::string& line : wanted_) {
    if (configured_.contains(line)) continue;
    if (refuses(line)) {
      out.failed.push_back("refused " + line);
    } else {
      out.back.push_back(line);
      configured_.insert(line);
    }
  }
  return out;
}

std::vector<std::string> FakeHostNetwork::undo() {
  configured_.clear();
  wanted_.clear();
  ownForwarding_.clear();
  return {};
}

}  // namespace braid
