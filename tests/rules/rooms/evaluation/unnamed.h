#include <simnet/world.h>

#include "figures.h"
#include "tests/sim/scenario.h"
