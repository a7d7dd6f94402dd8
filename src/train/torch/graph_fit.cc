#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <numeric>

#include "train/torch/fits.h"
#include "train/torch/parameters.h"
#include "train/validation.h"

namespace fleetfit::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// Row to[e] of the result takes up row from[e] of the values, for every e. Sums are taken in the
// order of the edges.
at::Tensor sum_rows(const at::Tensor& values, const at::Tensor& from, const at::Tensor& to,
                    std::int64_t rows) {
  const auto source = values.contiguous();
  const std::int64_t width = source.size(1);
  auto result = at::zeros({rows, width}, source.options());
  const float* const in = source.data_ptr<float>();
  float* const out = result.data_ptr<float>();
  const auto* const begin = from.data_ptr<std::int64_t>();
  const auto* const end = to.data_ptr<std::int64_t>();
  for (std::int64_t edge = 0; edge < from.numel(); ++edge) {
    const float* const taken = in + begin[edge] * width;
    float* const sum = out + end[edge] * width;
    for (std::int64_t i = 0; i < width; ++i) sum[i] += taken[i];
  }
  return result;
}

// The same as an operation that gradients go through: back they go along the edges turned round.
struct SumRows : torch::autograd::Function<SumRows> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& values,
                            const at::Tensor& from, const at::Tensor& to, std::int64_t rows) {
    context->save_for_backward({from, to});
    context->saved_data["rows"] = values.size(0);
    return sum_rows(values, from, to, rows);
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto rows = context->saved_data["rows"].toInt();
    return {sum_rows(gradients[0], saved[1], saved[0], rows), {}, {}, {}};
  }
};

// Several graphs as one that is not connected.
struct Batch {
  at::Tensor nodes;
  at::Tensor from;
  at::Tensor to;
  at::Tensor node;   // 0, 1, 2, …
  at::Tensor graph;  // that each node belongs to
  at::Tensor share;  // 1 / number of nodes, of each graph
  std::int64_t graphs = 0;
};

class BatchBuilder {
 public:
  explicit BatchBuilder(std::size_t features) : features_(static_cast<std::int64_t>(features)) {}

  void add(const GraphSamples::Graph& graph) {
    const auto first = static_cast<std::int64_t>(graph_.size());
    const auto count = static_cast<std::int64_t>(graph.nodes.size()) / features_;
    nodes_.insert(nodes_.end(), graph.nodes.begin(), graph.nodes.end());
    graph_.insert(graph_.end(), static_cast<std::size_t>(count),
                  static_cast<std::int64_t>(share_.size()));
    for (const auto& edge : graph.edges) {
      from_.push_back(first + edge.from);
      to_.push_back(first + edge.to);
    }
    share_.push_back(1.0F / static_cast<float>(count));
  }

  Batch build() const {
    std::vector<std::int64_t> node(graph_.size());
    std::iota(node.begin(), node.end(), 0);
    const auto graphs = static_cast<std::int64_t>(share_.size());
    return {.nodes = tensor_of(nodes_, static_cast<std::int64_t>(graph_.size()), features_),
            .from = tensor_of(from_),
            .to = tensor_of(to_),
            .node = tensor_of(node),
            .graph = tensor_of(graph_),
            .share = tensor_of(share_, graphs, 1),
            .graphs = graphs};
  }

 private:
  std::int64_t features_;
  std::vector<float> nodes_;
  std::vector<float> share_;
  std::vector<std::int64_t> from_;
  std::vector<std::int64_t> to_;
  std::vector<std::int64_t> graph_;
};

class TorchGraphFit final : public GraphFit {
 public:
  TorchGraphFit(GraphFitData data, const GraphFitOptions& options, const core::Random& random);

  void run_epoch(double rate) override;
  double validation_percent() override;
  void keep() override { parameters_.keep(); }
  std::vector<float> outputs(std::span<const GraphSamples::Graph> graphs) override;
  std::vector<predict::DenseLayer> layers() const override {
    return parameters_.kept(0, messages_);
  }
  std::vector<predict::DenseLayer> readout() const override {
    return parameters_.kept(messages_, parameters_.layers());
  }

 private:
  at::Tensor forward(const Batch& batch) const;
  void step(std::span<const std::int64_t> chosen, double rate);

  GraphFitData data_;
  TorchParameters parameters_;
  core::Random order_;
  std::size_t messages_;
  predict::ReadoutOf readout_of_;
  at::Tensor slope_;
  at::Tensor offset_;
};

TorchGraphFit::TorchGraphFit(GraphFitData data, const GraphFitOptions& options,
                             const core::Random& random)
    : data_(std::move(data)),
      parameters_(options.decay),
      order_(random.split("order")),
      messages_(static_cast<std::size_t>(options.layers)),
      readout_of_(options.readout_of) {
  const auto width = static_cast<std::size_t>(options.width);
  std::size_t inputs = data_.features;
  for (std::size_t layer = 0; layer < messages_; ++layer) {
    parameters_.add_layer(3 * inputs, width, random.split(layer));
    inputs = width;
  }
  const std::size_t read = readout_of_ == predict::ReadoutOf::graph ? 2 * inputs : inputs;
  parameters_.add_layer(read, width, random.split("readout"));
  parameters_.add_layer(width, 1, random.split("last"));

  const auto& targets = data_.training.targets;
  const auto count = static_cast<std::int64_t>(targets.slope.size());
  slope_ = tensor_of(targets.slope, count, 1);
  offset_ = tensor_of(targets.offset, count, 1);
}

at::Tensor TorchGraphFit::forward(const Batch& batch) const {
  auto values = batch.nodes;
  const std::int64_t nodes = values.size(0);
  for (std::size_t layer = 0; layer < messages_; ++layer) {
    const auto before = SumRows::apply(values, batch.from, batch.to, nodes);
    const auto behind = SumRows::apply(values, batch.to, batch.from, nodes);
    values = at::relu(parameters_.apply(layer, at::cat({values, before, behind}, 1)));
  }
  if (readout_of_ == predict::ReadoutOf::nodes) {
    const auto costs = parameters_.apply_chain(messages_, parameters_.layers(), values);
    return SumRows::apply(costs, batch.node, batch.graph, batch.graphs).mul(data_.sum_scale);
  }
  const auto sum = SumRows::apply(values, batch.node, batch.graph, batch.graphs);
  return parameters_.apply_chain(messages_, parameters_.layers(),
                                 at::cat({sum.mul(batch.share), sum.mul(data_.sum_scale)}, 1));
}

void TorchGraphFit::run_epoch(double rate) {
  std::vector<std::int64_t> order(data_.training.graphs.size());
  std::iota(order.begin(), order.end(), 0);
  order_.shuffle(order);
  const std::size_t batch = batch_size(order.size());
  for (std::size_t first = 0; first < order.size(); first += batch) {
    const std::size_t count = std::min(batch, order.size() - first);
    step(std::span<const std::int64_t>(order).subspan(first, count), rate);
  }
}

void TorchGraphFit::step(std::span<const std::int64_t> chosen, double rate) {
  BatchBuilder builder(data_.features);
  for (const auto graph : chosen)
    builder.add(data_.training.graphs[static_cast<std::size_t>(graph)]);
  const auto index = tensor_of(chosen);
  parameters_.learn(forward(builder.build()), at::index_select(slope_, 0, index),
                    at::index_select(offset_, 0, index), rate);
}

std::vector<float> TorchGraphFit::outputs(std::span<const GraphSamples::Graph> graphs) {
  const at::NoGradGuard at_work;
  std::vector<float> results;
  constexpr std::size_t kAtOnce = 256;
  for (std::size_t first = 0; first < graphs.size(); first += kAtOnce) {
    BatchBuilder builder(data_.features);
    for (const auto& graph : graphs.subspan(first, std::min(kAtOnce, graphs.size() - first)))
      builder.add(graph);
    const auto some = numbers_of(forward(builder.build()));
    results.insert(results.end(), some.begin(), some.end());
  }
  return results;
}

double TorchGraphFit::validation_percent() {
  return percent_error(outputs(data_.validation.graphs), data_.validation.targets.ms, data_.output);
}

}  // namespace

std::unique_ptr<GraphFit> make_graph_fit(GraphFitData data, const GraphFitOptions& options,
                                         const core::Random& random) {
  return std::make_unique<TorchGraphFit>(std::move(data), options, random);
}

}  // namespace fleetfit::train
