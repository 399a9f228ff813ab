#include "tunnel/tunnel.h"
