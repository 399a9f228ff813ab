#include "host/fake/fake_stream_host.h"

#include <algorithm>
#include <cstring>

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

}  // namespace braid
