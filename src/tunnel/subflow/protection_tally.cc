#include "tunnel/subflow/protection_tally.h"

#include "tunnel/lane/data_ledger.h"

namespace braid {

void ProtectionTally::onAcked(const SentPacket& p) {
  bool isProtected = false;
  for (size_t i = 0; i < p.dataCount; ++i) isProtected |= p.data[i]->copied || p.data[i]->coded;
  if (isProtected && p.role == SentPacket::Role::kOrdinary) ++useless_;
}

void ProtectionTally::onLost(const SentPacket& p) {
  if (p.role != SentPacket::Role::kOrdinary || p.moved) return;
  bool recovered = false;
  for (size_t i = 0; i < p.dataCount; ++i)
    recovered |= p.data[i]->delivered && (p.data[i]->copied || p.data[i]->coded);
  recovered_ += recovered;
}

bool ProtectionTally::onDecoded(const SentPacket& p) {
  bool news = false;
  bool instead = false;  // of a repair that has not been sent yet
  for (size_t i = 0; i < p.dataCount; ++i) {
    news |= !p.data[i]->done;
    instead |= p.data[i]->queued;
  }
  decoded_ += news;
  bool lost = p.countedLost && p.role == SentPacket::Role::kOrdinary && !p.moved;
  recovered_ += news && instead && lost;
  return news;
}

void ProtectionTally::fill(SubflowStatus& s) const {
  s.copies = copies_;
  s.parities = parities_;
  s.protectionBytes = bytes_;
  s.protectedPackets = protected_;
  s.recovered = recovered_;
  s.decoded = decoded_;
  s.useless = useless_;
}

}  // namespace braid
