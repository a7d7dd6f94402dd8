#pragma once

#include "engine/own/own.h"
#include "engine/own/rows.h"

namespace fleetfit::engine::own {

/// What the stored numbers of a quantized operand mean.
Scale scale_of(const Operand& operand);

bool touches_quantized(const Task& task);

// Each of these gives nothing for a task that it does not cover.
KernelPtr make_quantized_elementwise(const Task& task, const graph::Elementwise& op);
/// Functions of one element: a table of what each stored number becomes.
KernelPtr make_quantized_table(const Task& task);
KernelPtr make_quantized_concat(const Task& task, const graph::Concat& op);
/// Anything else: brings operands to floats, runs a kernel of floats, and rounds what it gives.
KernelPtr make_on_reals(const Task& task, KernelPtr (*make)(const Task&));

}  // namespace fleetfit::engine::own
