#pragma once

#include "graph/onnx_reader.h"
