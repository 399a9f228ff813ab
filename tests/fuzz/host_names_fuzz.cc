// Files with the names of hosts (/etc/hosts and leases of DHCP servers), in every format: a lease
// holds what a stranger on the LAN chose. The names must be short and without control characters,
// and must not look like an address.

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "ctl/views/host_names.h"
#include "host/system.h"
#include "inet/addresses.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

using namespace braid;

void checkName(std::string_view name) {
  CHECK(name.size() <= HostNames::kLongest);
  CHECK(name.empty() || !Address::parse(name));
  for (const char c : name) CHECK(c > ' ' && c < 0x7f);
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  using enum HostNames::Format;
  const UniqueFd file(::memfd_create("host_names", MFD_CLOEXEC));
  CHECK(file && ::write(file.get(), data, size) == static_cast<ssize_t>(size));
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  for (const HostNames::Format format : {kHosts, kDnsmasq, kDhcpd, kKea}) {
    HostNames names({{format, path}});
    names.refresh();
    // The addresses that the corpus gives a name.
    for (const char* address : {"192.168.1.5", "fd00::5"})
      checkName(names.of(*Address::parse(address)));
    const std::string flow = names.inFlow("tcp 192.168.1.5:5000 > [fd00::5]:443");
    for (const char c : flow) CHECK(c >= ' ' && c < 0x7f);
  }
}
