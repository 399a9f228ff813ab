#include "gateway/dtls/datagram_bio.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace braid {

BIO_METHOD* DatagramPipe::method() {
  static const std::unique_ptr<BIO_METHOD, OpensslFree<BIO_meth_free>> methods = [] {
    std::unique_ptr<BIO_METHOD, OpensslFree<BIO_meth_free>> m(
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "braid datagrams"));
    BIO_meth_set_write(m.get(), &DatagramPipe::write);
    BIO_meth_set_read(m.get(), &DatagramPipe::read);
    BIO_meth_set_ctrl(m.get(), &DatagramPipe::control);
    return m;
  }();
  return methods.get();
}

BioHandle DatagramPipe::makeBio() {
  BioHandle bio(BIO_new(method()));
  if (!bio) throw std::runtime_error("OpenSSL does not make a BIO: " + takeOpensslError());
  BIO_set_data(bio.get(), this);
  BIO_set_init(bio.get(), 1);
  return bio;
}

void DatagramPipe::openInput(ByteView datagram) {
  input_ = datagram;
}

int DatagramPipe::write(BIO* bio, const char* bytes, int size) {
  if (size <= 0) return 0;
  return callbackOfC(-1, [&] {
    auto& queue = static_cast<DatagramPipe*>(BIO_get_data(bio))->output_;
    if (queue.size() == kMaxQueued) queue.pop_front();
    auto first = reinterpret_cast<const uint8_t*>(bytes);
    queue.emplace_back(first, first + size);
    return size;
  });
}

// Like recv(2): cuts off what does not fit.
int DatagramPipe::read(BIO* bio, char* out, int size) {
  ByteView datagram = std::exchange(static_cast<DatagramPipe*>(BIO_get_data(bio))->input_, {});
  BIO_clear_retry_flags(bio);
  if (datagram.empty()) {
    BIO_set_retry_read(bio);
    return -1;
  }
  size_t n = std::min(datagram.size(), static_cast<size_t>(std::max(size, 0)));
  std::copy_n(datagram.begin(), n, reinterpret_cast<uint8_t*>(out));
  return static_cast<int>(n);
}

long DatagramPipe::control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

}  // namespace braid
