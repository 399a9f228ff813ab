#include "gateway/loop.h"
#include "tunnel/session/session.h"
