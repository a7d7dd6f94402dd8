#include "cost/table.h"
#include "graph/onnx_reader.h"
#include "table.h"
