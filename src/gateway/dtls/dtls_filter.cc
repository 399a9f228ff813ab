#include "gateway/dtls/dtls_filter.h"

#include <algorithm>

namespace braid {

namespace {

// RFC 6347 sections 4.1 and 4.2.2.
constexpr size_t kRecordHeader = 13;
constexpr size_t kMessageHeader = 12;
constexpr uint8_t kHandshake = 22;

// The handshake messages, or their fragments, of a record.
bool areShort(ByteView body) {
  while (body.size() >= kMessageHeader) {
    size_t message = load32(body.data()) & 0xffffff;
    size_t fragment = load32(&body[8]) & 0xffffff;
    if (message > DtlsFilter::kMaxMessage) return false;
    body = body.subspan(kMessageHeader);
    body = body.subspan(std::min(fragment, body.size()));
  }
  return body.empty();
}

}  // namespace

DtlsFilter::Parts DtlsFilter::split(ByteView datagram) {
  size_t clear = 0, end = 0;
  while (datagram.size() - end >= kRecordHeader) {
    ByteView rest = datagram.subspan(end);
    size_t size = kRecordHeader + load16(&rest[11]);
    bool isClear = load16(&rest[3]) == 0;
    if (size > rest.size() || (isClear && end > clear)) break;
    if (isClear && rest[0] == kHandshake && !areShort(rest.subspan(kRecordHeader, size - kRecordHeader)))
      break;
    end += size;
    if (isClear) clear = end;
  }
  ByteView sealed = datagram.subspan(clear, end - clear);
  return {datagram.first(clear), sealed.size() <= kMaxSealed ? sealed : ByteView{}};
}

}  // namespace braid
