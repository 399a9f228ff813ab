#include <iostream>

#include "ctl/cli.h"

int main(int argc, char** argv) {
  return braid::runBraidctl(argc, argv, std::cout, std::cerr);
}
