// Violations that the purity test must detect.
#include <openssl/rand.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>

long impure() {
  unsigned char byte = 0;
  RAND_bytes(&byte, 1);
  return std::chrono::steady_clock::now().time_since_epoch().count() + std::rand() + byte +
         send(0, &byte, 1, 0) + (std::getenv("HOME") != nullptr);
}
