#include "tunnel/subflow/subflow.h"
#include "tunnel/tunnel.h"
#include "tunnel/wire/wire.h"
