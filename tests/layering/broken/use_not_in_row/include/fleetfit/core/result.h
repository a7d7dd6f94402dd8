#pragma once

#include "fleetfit/graph/graph.h"
