#include "inet/address.h"
