#pragma once

#include <cerrno>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/stream_host.h"

namespace braid {

/// A TCP connection of tests, as its other end sees and works it.
struct FakeConnection {
  Endpoint source, destination;
  uint64_t tag = 0;
  int connectError = 0;     ///< EINPROGRESS: not yet
  int error = 0;            ///< it is gone, for this reason
  std::string toGateway;    ///< what the gateway has not read yet
  std::string fromGateway;  ///< what it has written
  bool ended = false;       ///< the other end has sent its last byte
  size_t room = SIZE_MAX;   ///< bytes that it takes yet
  bool shut = false;        ///< the gateway has sent its last byte
  bool closed = false;      ///< in order
  bool reset = false;       ///< the gateway let it go without that
};

/// TCP connections as a test says.
class FakeStreamHost final : public StreamHost {
 public:
  using Connection = std::shared_ptr<FakeConnection>;

  explicit FakeStreamHost(StreamObserver& observer) : observer_(observer) {}

  /// A host connects. Gives the connection, which the gateway accepts soon.
  Connection arrive(const Endpoint& source, const Endpoint& destination);
  /// Tells the gateway what has changed at a connection.
  void tell(const FakeConnection& connection, StreamObserver::Ready ready) {
    observer_.onReady(connection.tag, ready);
  }
  /// All that the gateway opened, in their order.
  const std::vector<Connection>& opened() const { return opened_; }
  /// Those since the last call.
  std::vector<Connection> takeOpened() { return std::exchange(opened_, {}); }
  /// These errors meet the next calls of connect() and accept(), 0: none.
  void refuseConnect(std::deque<int> errors) { connectErrors_ = std::move(errors); }
  void refuseAccept(int error) { acceptError_ = error; }
  void setMost(size_t most) { most_ = most; }
  /// Interceptions are refused from now on.
  void refuseInterception(bool on) { refuse_ = on; }
  /// What is taken over now; nullptr: nothing.
  const Interception* taking() const { return taking_ ? &*taking_ : nullptr; }
  int changes() const { return changes_; }
  bool accepts() const { return accepts_; }

  void intercept(const Interception& what, bool takeNew) override;
  void stopIntercepting() override { taking_.reset(); }
  std::optional<Accepted> accept(uint64_t tag, int& error) override;
  void wantAccept(bool on) override;
  void retag(StreamSocket& socket, uint64_t tag) override;
  std::unique_ptr<StreamSocket> connect(const std::optional<Endpoint>& source, const Endpoint& destination,
                                        uint64_t tag, int& error) override;
  size_t most() const override { return most_; }

 private:
  StreamObserver& observer_;
  std::deque<Connection> waiting_;
  std::vector<Connection> opened_;
  std::deque<int> connectErrors_;
  int acceptError_ = 0;
  size_t most_ = 1000;
  bool refuse_ = false, accepts_ = true;
  std::optional<Interception> taking_;
  int changes_ = 0;
};

}  // namespace braid
