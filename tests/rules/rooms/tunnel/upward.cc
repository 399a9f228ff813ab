#include "gateway/loop.h"
#include "inet/good.h"
