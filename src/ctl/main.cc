#include <iostream>

#include "ctl/ask_user.h"
#include "ctl/cli.h"

int main(int argc, char** argv) {
  std::string invitation = braid::hideInvitations(argc, argv);
  return braid::runBraidctl(argc, argv, std::cout, std::cerr, invitation);
}
