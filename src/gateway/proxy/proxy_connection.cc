#include "gateway/proxy/proxy_connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

namespace braid {

namespace {

constexpr size_t kPieces = 64;
// Most bytes per read. A 64 KB read costs the kernel little more than a 1 KB read.
constexpr size_t kRead = 64 << 10;

}  // namespace

StreamCause causeOf(int error) {
  switch (error) {
    case ECONNREFUSED:
      return StreamCause::kRefused;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EACCES:
    case EPERM:
    case EINVAL:
    case EADDRNOTAVAIL:
      return StreamCause::kUnreachable;
    case ETIMEDOUT:
      return StreamCause::kTimedOut;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return StreamCause::kLimit;
    default:
      return StreamCause::kReset;
  }
}

void ProxyConnection::note(StreamObserver::Ready ready) {
  canRead_ |= ready.readable;
  canWrite_ |= ready.writable;
  failed_ |= ready.failed;
}

bool ProxyConnection::fail(int error, Time now) {
  cause_ = causeOf(error);
  lanes_.reset(stream_, cause_, now);
  return false;
}

ProxyConnection::Next ProxyConnection::move(Time now) {
  more_ = false;
  if (connecting_ && (canWrite_ || failed_) && !connect(now)) return Next::kFailed;
  if (connecting_) return Next::kWait;
  if (failed_) {
    failed_ = false;
    if (int error = socket_->takeError()) return fail(error, now), Next::kFailed;
  }
  if (!downward(now) || !upward(now)) return Next::kFailed;
  return more_ ? Next::kMore : Next::kWait;
}

// False: the connection failed.
bool ProxyConnection::connect(Time now) {
  int error = socket_->connectError();
  if (error == EINPROGRESS) {
    canWrite_ = failed_ = false;
    return true;
  }
  connecting_ = failed_ = false;
  if (error != 0) return fail(error, now);
  lanes_.answer(stream_);
  return true;
}

bool ProxyConnection::upward(Time now) {
  using Why = StreamSocket::Moved::Why;
  std::array<ByteSpan, kPieces> buffers;
  size_t moved = 0;
  while (canRead_ && !finished_) {
    if (moved >= kTurn) return more_ = true;
    if (lanes_.writable(stream_, kRead) == 0) return true;  // an event tells when there is room
    size_t count = lanes_.room(stream_, buffers);
    if (count == 0) return true;
    StreamSocket::Moved got = socket_->read(std::span(buffers).first(count));
    lanes_.commit(stream_, got.bytes, now);
    moved += got.bytes;
    if (got.why == Why::kBlocked) canRead_ = false;
    if (got.why == Why::kFailed) return fail(got.error, now);
    if (got.why == Why::kEnd) {
      lanes_.finish(stream_, now);
      finished_ = true;
    }
  }
  return true;
}

bool ProxyConnection::downward(Time now) {
  using Why = StreamSocket::Moved::Why;
  std::array<ByteView, kPieces> views;
  size_t moved = 0;
  while (canWrite_) {
    if (moved >= kTurn) return more_ = true;
    size_t count = lanes_.peek(stream_, views);
    if (count == 0) break;
    StreamSocket::Moved sent = socket_->write(std::span(views).first(count));
    if (sent.bytes > 0) lanes_.consume(stream_, sent.bytes, now);
    moved += sent.bytes;
    if (sent.why == Why::kBlocked) canWrite_ = false;
    // A connection that accepts no more bytes was reset, whatever the error is (EPIPE).
    if (sent.why == Why::kFailed) return fail(sent.error, now);
  }
  if (!shut_ && lanes_.isAtEnd(stream_)) {
    socket_->shutdownWrite();
    shut_ = true;
  }
  return true;
}

}  // namespace braid
