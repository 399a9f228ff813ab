#include "coding/block.h"
