#include "../graph/onnx_reader.h"
