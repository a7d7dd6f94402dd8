#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "fleetfit/engine/program.h"
#include "fleetfit/graph/import.h"

namespace {

using namespace fleetfit;

constexpr std::size_t kMostNodes = 64;
constexpr double kMostElements = 1e5;
constexpr double kMostWork = 1e7;

double elements(const graph::Graph& graph, graph::TensorId id) {
  if (id == graph::kNoTensor || !graph.tensor(id).shape) return 0;
  return static_cast<double>(graph::elements(*graph.tensor(id).shape));
}

/// What a node might cost at most, whatever it is: every output from every weight or input.
double work(const graph::Graph& graph, const graph::Node& node) {
  double inputs = 1;
  double outputs = 0;
  for (const auto id : node.inputs) inputs += elements(graph, id);
  for (const auto id : node.outputs) outputs += elements(graph, id);
  return inputs * outputs;
}

/// Large networks prove nothing that small ones do not, and take long.
bool is_tiny(const graph::Graph& graph) {
  if (graph.nodes.size() > kMostNodes) return false;
  double sum = 0;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    sum += elements(graph, static_cast<graph::TensorId>(i));
  }
  return sum < kMostElements &&
         std::ranges::all_of(
             graph.nodes, [&](const graph::Node& node) { return work(graph, node) < kMostWork; });
}

}  // namespace

// A model is refused, or prepared and run; two runs give the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto model = graph::import_onnx(std::as_bytes(std::span(data, size)), "no-such-folder",
                                        {.open_extent = 8});
  if (!model || !is_tiny(model->graph)) return 0;
  for (const auto library : {engine::Library::automatic, engine::Library::xnnpack}) {
    auto program = engine::Program::prepare(
        model->graph, {.library = library, .choosing = engine::Choosing::fixed});
    if (!program) {
      if (program.error().code == ErrorCode::internal) std::abort();
      return 0;
    }
    const auto inputs = graph::random_inputs(model->graph, 1);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!program->set_input(i, inputs[i])) std::abort();
    }
    std::vector<graph::Value> first;
    const auto status = program->run();
    for (std::size_t i = 0; i < program->outputs().size(); ++i)
      first.push_back(program->output_value(i));
    if (program->run().has_value() != status.has_value()) std::abort();
    for (std::size_t i = 0; status && i < first.size(); ++i) {
      if (!(program->output_value(i).data == first[i].data)) std::abort();
    }
  }
  return 0;
}
