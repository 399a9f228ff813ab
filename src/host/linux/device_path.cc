#include "host/linux/device_path.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <vector>

namespace braid {

namespace {

bool isHex(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isxdigit(c) != 0; });
}

bool isDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "0000:03:00.0": domain, bus, device and function.
bool isPci(std::string_view part) {
  size_t first = part.find(':'), second = part.find(':', first + 1), dot = part.rfind('.');
  if (first == part.npos || second == part.npos || dot == part.npos || dot < second) return false;
  return isHex(part.substr(0, first)) && isHex(part.substr(first + 1, second - first - 1)) &&
         isHex(part.substr(second + 1, dot - second - 1)) && isHex(part.substr(dot + 1));
}

// The ports of a USB interface, as ID_PATH has them: "1-2.1:1.0" is "2.1:1.0", because the number
// of the bus depends on the order in which buses are found. Empty: this is none.
std::string_view usbPorts(std::string_view part) {
  size_t dash = part.find('-'), colon = part.find(':');
  if (dash == part.npos || colon == part.npos || colon < dash) return {};
  if (!isDigits(part.substr(0, dash))) return {};
  return part.substr(dash + 1);
}

// "1-2", "1-2.1": a device at a USB port.
bool isUsbDevice(std::string_view part) {
  size_t dash = part.find('-');
  return dash != part.npos && isDigits(part.substr(0, dash));
}

std::vector<std::string_view> partsOf(std::string_view folder) {
  std::vector<std::string_view> out;
  while (!folder.empty()) {
    size_t end = folder.find('/');
    if (end != 0) out.push_back(folder.substr(0, end));
    if (end == folder.npos) break;
    folder.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

std::string devicePath(std::string_view folder) {
  std::string host, usb;
  std::string_view before;
  for (std::string_view part : partsOf(folder)) {
    if (isPci(part)) {
      host = "pci-" + std::string(part);
    } else if (std::string_view ports = usbPorts(part); !ports.empty() && usb.empty()) {
      usb = "-usb-0:" + std::string(ports);
    } else if (host.empty() && (before == "platform" || before == "soc") && part != "soc") {
      host = "platform-" + std::string(part);
    } else if (host.starts_with("platform-") && usb.empty() && part.find('.') != part.npos &&
               part.find(':') == part.npos && !isUsbDevice(part)) {
      host = "platform-" + std::string(part);  // the deepest platform device counts
    }
    before = part;
  }
  return host.empty() ? "" : host + usb;
}

std::string devicePathOf(const std::string& interface) {
  std::error_code error;
  auto folder = std::filesystem::canonical("/sys/class/net/" + interface + "/device", error);
  return error ? "" : devicePath(folder.string());
}

}  // namespace braid
