// lwip_peer TUN ADDRESS PORT: an endpoint with lwIP's TCP, as Debian packages it (liblwip0),
// instead of the kernel's.
//
// The TUN device must exist and be up. The stack has its own thread and the packaged settings. This
// program has its own driver, because the library's driver (tapif) writes frames of 1514 bytes into
// receive buffers of 592 bytes, the size for which its pool was compiled. All peers of this folder
// speak the same protocol. A peer is both sender and receiver:
// - Sender: listens on PORT. A connection sends a line "SEED BYTES\n" and gets BYTES bytes of the
//   stream with that seed. Block i of the stream is SHA-512("SEED i"). Then the sender waits for
//   the receiver to end the connection. A sender that the receiver resets prints {"serve": SEED,
//   "end": "reset"}.
// - Receiver: each line "ADDRESS PORT SEED BYTES" on stdin starts a flow at once. When the flow has
//   ended, a JSON object is printed: {"seed", "bytes": received, "seconds": from the request on,
//   "connect": seconds before the request, "gap": longest time without progress, "ok": every byte
//   is right, "end": "complete", "reset", "closed" or "silent" (kPatience)}

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <openssl/sha.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

extern "C" {
#include <lwip/api.h>
#include <lwip/ip.h>
#include <lwip/netif.h>
#include <lwip/tcpip.h>
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPatience = 30000;  // ms without a byte after which the receiver gives up
constexpr u16_t kMtu = 1500;      // bytes

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string stream(const std::string& seed, std::size_t bytes) {
  std::string out;
  unsigned char block[SHA512_DIGEST_LENGTH];
  for (std::size_t i = 0; out.size() < bytes; ++i) {
    std::string text = seed + " " + std::to_string(i);
    SHA512(reinterpret_cast<const unsigned char*>(text.data()), text.size(), block);
    out.append(reinterpret_cast<const char*>(block), std::min(sizeof block, bytes - out.size()));
  }
  return out;
}

/// Prints one whole line to stdout. May be called from any thread.
void print(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

bool isReset(err_t error) {
  return error == ERR_RST || error == ERR_ABRT;
}

/// Appends the next received bytes. The error is ERR_CLSD after the other end's FIN.
err_t receive(netconn* connection, std::string& to) {
  pbuf* part = nullptr;
  err_t error = netconn_recv_tcp_pbuf(connection, &part);
  if (error != ERR_OK) return error;
  std::size_t before = to.size();
  to.resize(before + part->tot_len);
  pbuf_copy_partial(part, to.data() + before, part->tot_len, 0);
  pbuf_free(part);
  return ERR_OK;
}

void serve(netconn* connection) {
  std::string question;
  err_t error = ERR_OK;
  netconn_set_recvtimeout(connection, kPatience);
  while (error == ERR_OK && question.find('\n') == std::string::npos)
    error = receive(connection, question);
  std::istringstream words(question);
  std::string seed;
  std::size_t bytes = 0;
  if (error == ERR_OK && words >> seed >> bytes) {
    std::string data = stream(seed, bytes);
    error = netconn_write(connection, data.data(), data.size(), NETCONN_COPY);
    std::string rest;
    while (error == ERR_OK) error = receive(connection, rest);
  }
  if (isReset(error)) print("{\"serve\": \"" + seed + "\", \"end\": \"reset\"}\n");
  netconn_delete(connection);
}

void acceptAll(netconn* listener) {
  for (netconn* connection = nullptr;;)
    if (netconn_accept(listener, &connection) == ERR_OK) std::thread(serve, connection).detach();
}

void fetch(const ip_addr_t& address, int port, const std::string& seed, std::size_t bytes) {
  std::string expected = stream(seed, bytes);
  auto opened = Clock::now();
  netconn* connection = netconn_new(NETCONN_TCP);
  netconn_set_recvtimeout(connection, kPatience);
  err_t error = netconn_connect(connection, &address, static_cast<u16_t>(port));
  double connect = secondsSince(opened);
  auto begin = Clock::now();
  std::string question = seed + " " + std::to_string(bytes) + "\n";
  if (error == ERR_OK)
    error = netconn_write(connection, question.data(), question.size(), NETCONN_COPY);
  std::string got;
  double gap = 0;
  auto last = begin;
  while (error == ERR_OK && got.size() < bytes) {
    error = receive(connection, got);
    gap = std::max(gap, secondsSince(last));
    last = Clock::now();
  }
  double seconds = secondsSince(begin);
  netconn_delete(connection);
  const char* end = got.size() >= bytes    ? "complete"
                    : isReset(error)       ? "reset"
                    : error == ERR_TIMEOUT ? "silent"
                                           : "closed";
  char line[320];
  std::snprintf(line, sizeof line,
                "{\"seed\": \"%s\", \"bytes\": %zu, \"seconds\": %.6f, \"connect\": %.6f, \"gap\": "
                "%.6f, \"ok\": %s, "
                "\"end\": \"%s\", \"error\": %d}\n",
                seed.c_str(), got.size(), seconds, connect, gap, got == expected ? "true" : "false",
                end, error);
  print(line);
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "lwip_peer: %s\n", what);
  std::exit(1);
}

ip4_addr_t parse(const char* text) {
  ip4_addr_t address{};
  if (inet_pton(AF_INET, text, &address.addr) != 1) fail("not an IPv4 address");
  return address;
}

int openTun(const char* name) {
  int device = open("/dev/net/tun", O_RDWR);
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  if (device < 0 || ioctl(device, TUNSETIFF, &request) != 0) fail("cannot open the TUN device");
  return device;
}

int deviceOf(const netif* interface) {
  return *static_cast<const int*>(interface->state);
}

err_t output(netif* interface, pbuf* packet, const ip4_addr_t*) {
  std::array<char, kMtu> bytes;
  u16_t length = pbuf_copy_partial(packet, bytes.data(), bytes.size(), 0);
  return write(deviceOf(interface), bytes.data(), length) == length ? ERR_OK : ERR_IF;
}

void input(netif* interface) {
  std::array<char, kMtu> bytes;
  for (ssize_t length; (length = read(deviceOf(interface), bytes.data(), bytes.size())) > 0;) {
    pbuf* packet = pbuf_alloc(PBUF_RAW, static_cast<u16_t>(length), PBUF_RAM);
    if (packet == nullptr) continue;
    pbuf_take(packet, bytes.data(), static_cast<u16_t>(length));
    if (interface->input(packet, interface) != ERR_OK) pbuf_free(packet);
  }
  fail("the TUN device is gone");
}

err_t prepare(netif* interface) {
  interface->name[0] = 't';
  interface->name[1] = 'u';
  interface->mtu = kMtu;
  interface->output = output;
  return ERR_OK;
}

/// Starts the stack's own thread and its interface.
void start(netif& interface, int& device, ip4_addr_t address) {
  std::srand(
      static_cast<unsigned>(Clock::now().time_since_epoch().count()));  // lwIP's port numbers
  sys_sem_t ready;
  sys_sem_new(&ready, 0);
  tcpip_init([](void* semaphore) { sys_sem_signal(static_cast<sys_sem_t*>(semaphore)); }, &ready);
  sys_arch_sem_wait(&ready, 0);
  ip4_addr_t mask = parse("255.255.255.252");
  LOCK_TCPIP_CORE();
  netif_add(&interface, &address, &mask, &address, &device, prepare, tcpip_input);
  netif_set_default(&interface);
  netif_set_up(&interface);
  netif_set_link_up(&interface);
  UNLOCK_TCPIP_CORE();
  std::thread(input, &interface).detach();
}

void listenOn(const char* port) {
  netconn* listener = netconn_new(NETCONN_TCP);
  if (netconn_bind(listener, IP_ADDR_ANY, static_cast<u16_t>(std::atoi(port))) != ERR_OK ||
      netconn_listen(listener) != ERR_OK)
    fail("cannot listen");
  std::thread(acceptAll, listener).detach();
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: lwip_peer TUN ADDRESS PORT\n");
    return 2;
  }
  static netif interface;
  static int device = openTun(words[1]);
  start(interface, device, parse(words[2]));
  listenOn(words[3]);
  print("ready\n");
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream order(line);
    std::string address;
    std::string seed;
    int port = 0;
    std::size_t bytes = 0;
    if (!(order >> address >> port >> seed >> bytes)) continue;
    ip_addr_t to = IPADDR4_INIT(parse(address.c_str()).addr);
    std::thread(fetch, to, port, seed, bytes).detach();
  }
  std::_Exit(0);  // detached threads still use the stack
}
