#include "base/time.h"
#include "scheduler/rate/rtt.h"
