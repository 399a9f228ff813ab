#include "../base/time.h"
