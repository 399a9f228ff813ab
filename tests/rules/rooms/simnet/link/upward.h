#include "base/time.h"
#include "inet/endpoint.h"
