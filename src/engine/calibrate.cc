#include "fleetfit/engine/calibrate.h"

#include <algorithm>
#include <utility>

#include "fleetfit/engine/program.h"

namespace fleetfit::engine {
namespace {

/// The network with everything that is to be observed among its outputs.
graph::Graph with_outputs(graph::Graph graph, const std::vector<graph::TensorId>& observed) {
  graph.outputs = observed;
  return graph;
}

std::span<const float> as_floats(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

/// Runs the samples through a program whose outputs are the observed tensors.
class Observer {
 public:
  Observer(Program program, std::vector<graph::TensorId> observed,
           const graph::RangeOptions& options)
      : program_(std::move(program)), observed_(std::move(observed)), collector_(options) {}

  Status observe(const std::vector<graph::Value>& inputs) {
    if (inputs.size() != program_.inputs().size()) {
      return fail(ErrorCode::invalid_input,
                  "a sample has another number of inputs than the network");
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      FLEETFIT_TRY(program_.set_input(i, inputs[i]));
    }
    FLEETFIT_TRY(program_.run());
    for (std::size_t i = 0; i < observed_.size(); ++i)
      collector_.observe(observed_[i], as_floats(program_.output(i)));
    return {};
  }

  graph::Ranges ranges() const { return collector_.ranges(); }

 private:
  Program program_;
  std::vector<graph::TensorId> observed_;
  graph::RangeCollector collector_;
};

}  // namespace

Result<graph::Graph> quantize_on(const graph::Graph& float_graph, const Samples& samples,
                                 const CalibrationOptions& options) {
  FLEETFIT_ASSIGN(auto prepared, prepare_for_quantization(float_graph));
  const auto observed = tensors_to_observe(prepared, options.quantize);
  FLEETFIT_ASSIGN(auto program,
                  Program::prepare(with_outputs(prepared, observed),
                                   {.threads = options.threads, .choosing = Choosing::fixed}));
  Observer observer(std::move(program), observed, options.ranges);
  int count = 0;
  while (true) {
    FLEETFIT_ASSIGN(const auto sample, samples());
    if (!sample) break;
    FLEETFIT_TRY(observer.observe(*sample));
    ++count;
  }
  if (count == 0) return fail(ErrorCode::invalid_input, "there is no sample to calibrate with");
  return quantize(std::move(prepared), observer.ranges(), options.quantize);
}

Samples random_samples(const graph::Graph& graph, int count) {
  return [&graph, count, next = 0]() mutable -> Result<std::optional<std::vector<graph::Value>>> {
    if (next == count) return std::nullopt;
    return random_inputs(graph, static_cast<std::uint64_t>(++next));
  };
}

}  // namespace fleetfit::engine
