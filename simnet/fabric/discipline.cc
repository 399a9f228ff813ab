#include "simnet/fabric/discipline.h"

#include <stdexcept>

namespace braid::sim {

Discipline disciplineOf(const std::string& name) {
  if (name == "droptail") return Discipline::kDropTail;
  if (name == "droprand") return Discipline::kDropRand;
  if (name == "red-ecn") return Discipline::kRedEcn;
  if (name == "dctcp") return Discipline::kDctcp;
  throw std::runtime_error("no queue discipline " + name);
}

}  // namespace braid::sim
