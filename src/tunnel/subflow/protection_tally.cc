#include "tunnel/subflow/protection_tally.h"

#include "tunnel/lane/data_ledger.h"

namespace braid {

void ProtectionTally::onAcked(const SentPacket& p) {
  bool isProtected = false;
  for (size_t i = 0; i < p.dataCount; ++i) isProtected |= p.data[i]->copied || p.data[i]->coded;
  if (isProtected && p.role == SentPacket::Role::kOrdinary) ++counts_.useless;
}

void ProtectionTally::onLost(const SentPacket& p) {
  if (p.role != SentPacket::Role::kOrdinary || p.moved) return;
  bool recovered = false;
  for (size_t i = 0; i < p.dataCount; ++i)
    recovered |= p.data[i]->delivered && (p.data[i]->copied || p.data[i]->coded);
  counts_.recovered += recovered;
}

bool ProtectionTally::onDecoded(const SentPacket& p) {
  bool news = false;
  bool instead = false;  // of a repair that has not been sent yet
  for (size_t i = 0; i < p.dataCount; ++i) {
    news |= !p.data[i]->done;
    instead |= p.data[i]->queued;
  }
  counts_.decoded += news;
  bool lost = p.state == SentPacket::State::kLost && p.role == SentPacket::Role::kOrdinary && !p.moved;
  counts_.recovered += news && instead && lost;
  return news;
}

}  // namespace braid
