#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/cost/flops.h"
#include "fleetfit/graph/graph.h"
