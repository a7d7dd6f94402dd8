#include "train/torch/fits.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "fleetfit/core/counting.h"
#include "fleetfit/predict/regressor.h"
#include "train/torch/border.h"
#include "train/torch/parameters.h"

namespace fleetfit::train {
namespace {

// How far beyond the times of training a prediction may go.
constexpr double kRoom = 4;

double transformed(double value, predict::Transform transform) {
  return transform == predict::Transform::plain ? value
                                                : std::copysign(std::log1p(std::abs(value)), value);
}

/// Mean of |predicted - measured| / measured, in percent; predicted as the network at work will.
double percent_error(std::span<const float> outputs, std::span<const double> ms,
                     const predict::OutputScaling& scaling) {
  std::vector<double> predicted(outputs.size());
  std::transform(outputs.begin(), outputs.end(), predicted.begin(),
                 [&](float value) { return predict::scaled_output(scaling, value); });
  return predict::mape_percent(predicted, ms);
}

/// Samples between two steps of the optimizer.
std::int64_t batch_size(std::int64_t samples) {
  if (samples < 512) return 16;
  return samples < 8192 ? 32 : 64;
}

/// What the fits of both kinds of networks have.
struct Learned {
  Learned(const Targets& targets, double decay, const core::Random& random)
      : parameters(decay),
        order(random.split("order")),
        slope(tensor_of(targets.slope, std::ssize(targets.slope), 1)),
        offset(tensor_of(targets.offset, std::ssize(targets.offset), 1)) {}

  /// All samples in another order each time.
  std::vector<std::int64_t> shuffled() {
    auto samples = core::counting(slope.size(0));
    order.shuffle(samples);
    return samples;
  }

  TorchParameters parameters;
  core::Random order;
  at::Tensor slope;
  at::Tensor offset;
};

class TorchDenseFit final : public DenseFit {
 public:
  TorchDenseFit(DenseFitData data, const DenseFitOptions& options, const core::Random& random);

  void run_epoch(double rate) override;
  double validation_percent() override;
  void keep() override { learned_.parameters.keep(); }
  std::vector<float> outputs(std::span<const float> rows) override;
  std::vector<predict::DenseLayer> layers() const override {
    return learned_.parameters.kept(0, learned_.parameters.layers());
  }

 private:
  DenseFitData data_;
  Learned learned_;
  at::Tensor rows_;
};

TorchDenseFit::TorchDenseFit(DenseFitData data, const DenseFitOptions& options,
                             const core::Random& random)
    : data_(std::move(data)), learned_(data_.training.targets, options.decay, random) {
  std::size_t inputs = data_.features;
  for (int layer = 0; layer < options.layers; ++layer) {
    const auto width = static_cast<std::size_t>(options.width);
    learned_.parameters.add_layer(inputs, width, random.split(static_cast<std::uint64_t>(layer)));
    inputs = width;
  }
  learned_.parameters.add_layer(inputs, 1, random.split("last"));
  rows_ = tensor_of(data_.training.rows, learned_.slope.size(0),
                    static_cast<std::int64_t>(data_.features));
}

void TorchDenseFit::run_epoch(double rate) {
  const auto chosen = tensor_of(learned_.shuffled());
  const auto rows = at::index_select(rows_, 0, chosen);
  const auto slope = at::index_select(learned_.slope, 0, chosen);
  const auto offset = at::index_select(learned_.offset, 0, chosen);
  const auto samples = chosen.size(0);
  const auto batch = batch_size(samples);
  for (std::int64_t first = 0; first < samples; first += batch) {
    const std::int64_t count = std::min(batch, samples - first);
    learned_.parameters.learn_chain(rows.narrow(0, first, count), slope.narrow(0, first, count),
                                    offset.narrow(0, first, count), rate);
  }
}

std::vector<float> TorchDenseFit::outputs(std::span<const float> rows) {
  const at::NoGradGuard at_work;
  const auto features = static_cast<std::int64_t>(data_.features);
  return numbers_of(learned_.parameters.apply_chain(
      0, learned_.parameters.layers(),
      tensor_of(rows, static_cast<std::int64_t>(rows.size()) / features, features)));
}

double TorchDenseFit::validation_percent() {
  return percent_error(outputs(data_.validation.rows), data_.validation.targets.ms, data_.output);
}

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
    auto node = core::counting(std::ssize(graph_));
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
  void keep() override { learned_.parameters.keep(); }
  std::vector<float> outputs(std::span<const GraphSamples::Graph> graphs) override;
  std::vector<predict::DenseLayer> layers() const override {
    return learned_.parameters.kept(0, messages_);
  }
  std::vector<predict::DenseLayer> readout() const override {
    return learned_.parameters.kept(messages_, learned_.parameters.layers());
  }

 private:
  at::Tensor forward(const Batch& batch) const;
  void step(std::span<const std::int64_t> chosen, double rate);

  GraphFitData data_;
  Learned learned_;
  std::size_t messages_;
  predict::ReadoutOf readout_of_;
};

TorchGraphFit::TorchGraphFit(GraphFitData data, const GraphFitOptions& options,
                             const core::Random& random)
    : data_(std::move(data)),
      learned_(data_.training.targets, options.decay, random),
      messages_(static_cast<std::size_t>(options.layers)),
      readout_of_(options.readout_of) {
  const auto width = static_cast<std::size_t>(options.width);
  std::size_t inputs = data_.features;
  for (std::size_t layer = 0; layer < messages_; ++layer) {
    learned_.parameters.add_layer(3 * inputs, width, random.split(layer));
    inputs = width;
  }
  const std::size_t read = readout_of_ == predict::ReadoutOf::graph ? 2 * inputs : inputs;
  learned_.parameters.add_layer(read, width, random.split("readout"));
  learned_.parameters.add_layer(width, 1, random.split("last"));
}

at::Tensor TorchGraphFit::forward(const Batch& batch) const {
  auto values = batch.nodes;
  const std::int64_t nodes = values.size(0);
  for (std::size_t layer = 0; layer < messages_; ++layer) {
    const auto before = SumRows::apply(values, batch.from, batch.to, nodes);
    const auto behind = SumRows::apply(values, batch.to, batch.from, nodes);
    values = at::relu(learned_.parameters.apply(layer, at::cat({values, before, behind}, 1)));
  }
  if (readout_of_ == predict::ReadoutOf::nodes) {
    const auto costs =
        learned_.parameters.apply_chain(messages_, learned_.parameters.layers(), values);
    return SumRows::apply(costs, batch.node, batch.graph, batch.graphs).mul(data_.sum_scale);
  }
  const auto sum = SumRows::apply(values, batch.node, batch.graph, batch.graphs);
  return learned_.parameters.apply_chain(
      messages_, learned_.parameters.layers(),
      at::cat({sum.mul(batch.share), sum.mul(data_.sum_scale)}, 1));
}

void TorchGraphFit::run_epoch(double rate) {
  const auto order = learned_.shuffled();
  const auto batch = static_cast<std::size_t>(batch_size(std::ssize(order)));
  for (std::size_t first = 0; first < order.size(); first += batch) {
    const std::size_t count = std::min(batch, order.size() - first);
    step(std::span(order).subspan(first, count), rate);
  }
}

void TorchGraphFit::step(std::span<const std::int64_t> chosen, double rate) {
  BatchBuilder builder(data_.features);
  for (const auto graph : chosen)
    builder.add(data_.training.graphs[static_cast<std::size_t>(graph)]);
  const auto index = tensor_of(chosen);
  learned_.parameters.learn(forward(builder.build()), at::index_select(learned_.slope, 0, index),
                            at::index_select(learned_.offset, 0, index), rate);
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

void use_one_thread_per_fit() { use_threads(1); }

predict::OutputScaling fit_output(std::span<const double> ms, predict::Transform transform) {
  const auto count = static_cast<double>(ms.size());
  double mean = 0;
  for (const double time : ms) mean += std::log(time) / count;
  double square = 0;
  for (const double time : ms) square += std::pow(std::log(time) - mean, 2) / count;
  const auto [least, most] = std::minmax_element(ms.begin(), ms.end());
  predict::OutputScaling scaling{
      .transform = transform, .min = *least / kRoom, .max = *most * kRoom};
  if (transform == predict::Transform::logarithm) {
    scaling.offset = mean;
    scaling.scale = std::max(std::sqrt(square), 1e-3);
  } else {
    scaling.scale = std::exp(mean);
  }
  return scaling;
}

Targets make_targets(std::vector<double> ms, const predict::OutputScaling& scaling) {
  Targets targets;
  for (const double time : ms) {
    const bool log = scaling.transform == predict::Transform::logarithm;
    targets.slope.push_back(static_cast<float>(log ? scaling.scale : scaling.scale / time));
    targets.offset.push_back(
        static_cast<float>(log ? scaling.offset - std::log(time) : scaling.offset / time - 1));
  }
  targets.ms = std::move(ms);
  return targets;
}

predict::InputScaling fit_inputs(std::span<const double> rows, std::size_t columns,
                                 predict::Transform transform) {
  predict::InputScaling scaling{.transform = transform,
                                .mean = std::vector<double>(columns),
                                .scale = std::vector<double>(columns)};
  const std::size_t row_count = rows.size() / columns;
  const auto count = static_cast<double>(row_count);
  for (std::size_t i = 0; i < rows.size(); ++i)
    scaling.mean[i % columns] += transformed(rows[i], transform) / count;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double deviation = transformed(rows[i], transform) - scaling.mean[i % columns];
    scaling.scale[i % columns] += deviation * deviation / count;
  }
  for (std::size_t c = 0; c < columns; ++c) {
    const double deviation = std::sqrt(scaling.scale[c]);
    // What is left of a constant column is rounding.
    scaling.scale[c] = deviation > 1e-9 * std::abs(scaling.mean[c]) ? deviation : 0;
  }
  return scaling;
}

std::unique_ptr<DenseFit> make_dense_fit(DenseFitData data, const DenseFitOptions& options,
                                         const core::Random& random) {
  return std::make_unique<TorchDenseFit>(std::move(data), options, random);
}

std::unique_ptr<GraphFit> make_graph_fit(GraphFitData data, const GraphFitOptions& options,
                                         const core::Random& random) {
  return std::make_unique<TorchGraphFit>(std::move(data), options, random);
}

}  // namespace fleetfit::train
