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

/// A TCP connection for tests, seen and controlled from its other end.
struct FakeConnection {
  Endpoint source, destination;
  uint64_t tag = 0;
  int connectError = 0;     ///< EINPROGRESS: not yet
  int error = 0;            ///< the connection failed with this errno; 0: it did not
  std::string toGateway;    ///< data that the gateway has not read yet
  std::string fromGateway;  ///< data that the gateway has written
  bool ended = false;       ///< the other end has sent its last byte
  size_t room = SIZE_MAX;   ///< bytes that the gateway can still write
  bool shut = false;        ///< the gateway has sent its last byte
  bool closed = false;      ///< the gateway closed it gracefully
  bool reset = false;       ///< the gateway destroyed the socket without close()
};

/// A StreamHost whose connections are controlled by the test.
class FakeStreamHost final : public StreamHost {
 public:
  using Connection = std::shared_ptr<FakeConnection>;

  explicit FakeStreamHost(StreamObserver& observer) : observer_(observer) {}

  /// Simulates that a host connects. Returns the connection, which the gateway is asked to accept.
  Connection arrive(const Endpoint& source, const Endpoint& destination);
  /// Tells the gateway that a connection has changed.
  void tell(const FakeConnection& connection, StreamObserver::Ready ready) {
    observer_.onReady(connection.tag, ready);
  }
  /// All connections that the gateway opened, in order.
  const std::vector<Connection>& opened() const { return opened_; }
  /// The connections that the gateway opened since the last call.
  std::vector<Connection> takeOpened() { return std::exchange(opened_, {}); }
  /// The next calls of connect() fail with these errors, one each; 0: no error. refuseAccept():
  /// accept() fails with this error.
  void refuseConnect(std::deque<int> errors) { connectErrors_ = std::move(errors); }
  void refuseAccept(int error) { acceptError_ = error; }
  void setMost(size_t most) { most_ = most; }
  /// Interceptions are refused from now on.
  void refuseInterception(bool on) { refuse_ = on; }
  /// The present interception of new connections; nullptr: none.
  const Interception* taking() const { return taking_ ? &*taking_ : nullptr; }
  int changes() const { return changes_; }
  bool accepts() const { return accepts_; }

  void intercept(const Interception& what, bool takeNew) override;
  void stopIntercepting() override { taking_.reset(); }
  std::optional<Accepted> accept(uint64_t tag, int& error) override;
  void wantAccept(bool on) override;
  void retag(StreamSocket& socket, uint64_t tag) override;
  std::unique_ptr<StreamSocket> connect(const std::optional<Endpoint>& source,
                                        const Endpoint& destination, uint64_t tag,
                                        int& error) override;
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
