#pragma once

#include <cstddef>
#include <variant>

#include "engine/kernel.h"
#include "fleetfit/graph/operator_table.h"

namespace fleetfit::engine {

/// Makes a kernel; gives nothing for a task that it does not cover.
using MakeKernel = KernelPtr (*)(const Task&);

/// A function of operators of one type as a function of tasks with such an operator.
template <class Op, KernelPtr (*make)(const Task&, const Op&)>
KernelPtr make_of(const Task& task) {
  return make(task, *std::get_if<Op>(&task.node.op));
}

/// The kernels that a library has for one type of operators.
struct KernelEntry {
  std::size_t type = 0;  ///< graph::kTypeOf
  MakeKernel make = nullptr;
};

template <class Op, KernelPtr (*make)(const Task&, const Op&)>
constexpr KernelEntry entry() {
  return {graph::kTypeOf<Op>, make_of<Op, make>};
}

/// Of a function that does not look at the operator.
template <class Op>
constexpr KernelEntry entry(MakeKernel make) {
  return {graph::kTypeOf<Op>, make};
}

}  // namespace fleetfit::engine
