#include "gateway/config/config.h"
