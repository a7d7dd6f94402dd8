#include "graph/evaluate/kernels.h"
#include "graph/operands.h"
#include "graph/shape_of.h"

namespace fleetfit::graph::interpreter {

Values run(const ConstantOfShape& op, const Call& call) {
  return one(write(call.result(), std::vector<double>(elements(call.result().shape), op.value)));
}

Values run(const ShapeOf& op, const Call& call) {
  return one(write(call.result(), extents_of(op, call.input(0).shape)));
}

Values run(const graph::Range&, const Call& call) {
  const auto count = call.result().shape[0];
  if (is_float(call.result().dtype)) {
    const auto start = read<double>(call.input(0));
    const auto delta = read<double>(call.input(2));
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < count; ++i) {
      numbers.push_back(start[0] + static_cast<double>(i) * delta[0]);
    }
    return one(write(call.result(), numbers));
  }
  const auto start = read<std::uint64_t>(call.input(0));
  const auto delta = read<std::uint64_t>(call.input(2));
  std::vector<std::uint64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(start[0] + i * delta[0]);
  return one(write(call.result(), numbers));
}

}  // namespace fleetfit::graph::interpreter
