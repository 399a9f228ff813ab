#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/control/control_handler.h"
#include "gateway/control/control_request.h"
#include "gateway/control/object_writer.h"
#include "gateway/control/status_json.h"

namespace braid {

/// The answer to one request, one line with its line end. It is made a few rows at a time, packets have their turn
/// between. So the peers are not told of at one moment; who needs rates has them from two answers.
class ControlAnswer {
 public:
  static constexpr size_t kMaxAnswer = 8 << 20;  ///< bytes; a longer answer becomes an error
  static constexpr size_t kRowsAtOnce = 16;      ///< peers, subflows, flows, ... Ours.

  /// `file`: what came with the request. `isOwner`: the client is root or the daemon's own user, who may add peers by
  /// the configuration as well. `handler` must outlive the answer.
  ControlAnswer(ControlRequest request, UniqueFd file, bool isOwner, ControlHandler& handler)
      : request_(std::move(request)), file_(std::move(file)), isOwner_(isOwner), handler_(handler) {}

  /// Makes the next part; the first call does what was asked for. Call until done().
  void work();
  bool done() const { return done_; }
  /// When it is done: the answer in pieces, because a long text that grows is copied again and again.
  std::deque<std::string> take() { return std::move(pieces_); }

 private:
  void begin();
  void beginPeers(PeerView view);
  void beginHistory();
  void doOrder();
  void refuse(std::string_view why);
  void workOnPeers();
  bool beginPeer();
  void finish(std::string_view end);
  void put(std::string text);

  ControlRequest request_;
  UniqueFd file_;
  bool isOwner_;
  ControlHandler& handler_;
  bool begun_ = false, done_ = false;
  std::deque<std::string> pieces_;
  size_t bytes_ = 0;                    ///< in them
  std::optional<ObjectWriter> object_;  ///< what is being written: the whole answer, or a peer
  // An answer about peers.
  std::optional<PeerView> view_;
  std::optional<std::vector<std::string>> peers_;  ///< as they were when it began
  size_t place_ = 0;                               ///< of the peer that comes next
  RecoveryOptions recovery_;
};

/// An answer that says no: one line with its line end.
std::string controlError(std::string_view text);

}  // namespace braid
