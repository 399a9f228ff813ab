#include <iostream>

#include "ctl/join/new_gateway.h"
#include "ctl/verbs/verbs.h"

int main(int argc, char** argv) {
  std::string invitation = braid::hideInvitations(argc, argv);
  return braid::runBraidctl(argc, argv, std::cout, std::cerr, invitation);
}
