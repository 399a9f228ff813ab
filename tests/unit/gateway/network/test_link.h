#pragma once

#include <string>
#include <vector>

#include "host/network.h"

namespace braid::test {

/// An interface with these addresses, each as "192.168.1.1/24".
inline Link linkOf(int index, const char* name, const std::vector<std::string>& addresses) {
  Link out;
  out.index = index;
  out.name = name;
  for (const std::string& text : addresses) {
    LinkAddress a;
    a.address = *Address::parse(text.substr(0, text.find('/')));
    a.prefixLength = static_cast<uint8_t>(std::stoi(text.substr(text.find('/') + 1)));
    out.addresses.insert(a);
  }
  return out;
}

}  // namespace braid::test
