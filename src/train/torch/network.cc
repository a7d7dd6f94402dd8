#include "train/torch/network.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fleetfit/core/random.h"
#include "fleetfit/cost/cost.h"
#include "train/torch/border.h"
#include "train/torch/images.h"
#include "train/torch/operators.h"

namespace fleetfit::train {
namespace {

std::size_t index(graph::TensorId id) { return static_cast<std::size_t>(id); }

/// The type of a constant's bytes.
std::optional<at::ScalarType> stored_type(graph::DType type) {
  switch (type) {
    case graph::DType::f16:
      return at::kHalf;
    case graph::DType::bf16:
      return at::kBFloat16;
    case graph::DType::f64:
      return at::kDouble;
    case graph::DType::i32:
      return at::kInt;
    case graph::DType::i8:
      return at::kChar;
    case graph::DType::u8:
      return at::kByte;
    default:
      return scalar_type_of(type);
  }
}

Result<at::Tensor> constant_of(const graph::Tensor& constant, const at::Device& device) {
  const auto type = stored_type(constant.dtype);
  if (!type || constant.quantization || !constant.shape) {
    return fail(ErrorCode::unsupported, fmt::format("constant '{}' ({}) cannot be trained on",
                                                    constant.name, to_string(constant.dtype)));
  }
  auto stored = at::empty(*constant.shape, *type);
  constant.data->copy_to({static_cast<std::byte*>(stored.data_ptr()), stored.nbytes()});
  if (graph::is_float(constant.dtype)) return stored.to(device, at::kFloat);
  return constant.dtype == graph::DType::boolean ? stored : stored.to(at::kLong);
}

graph::TensorData data_of(const at::Tensor& value, graph::DType dtype) {
  const auto stored = value.detach().to(at::kCPU, *stored_type(dtype)).contiguous();
  const auto* const first = static_cast<const std::byte*>(stored.data_ptr());
  return graph::TensorData::own({first, first + stored.nbytes()});
}

/// Which tensors nobody reads any more, by node.
std::vector<std::vector<graph::TensorId>> last_reads(const graph::Graph& graph) {
  std::vector<std::vector<graph::TensorId>> released(graph.nodes.size());
  std::set<graph::TensorId> needed(graph.outputs.begin(), graph.outputs.end());
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const auto& node = graph.nodes[n];
    for (const auto id : node.inputs)
      if (id != graph::kNoTensor && needed.insert(id).second) released[n].push_back(id);
    for (const auto id : node.outputs)
      if (id != graph::kNoTensor && !needed.contains(id)) released[n].push_back(id);
  }
  return released;
}

/// Which nodes are the only ones that still need their first operand.
std::vector<bool> overwriting(const graph::Graph& graph,
                              const std::vector<std::vector<graph::TensorId>>& released) {
  const auto made_by = producers(graph);
  const graph::Consumers read_by(graph);
  std::vector<bool> overwrites;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto first = graph.nodes[n].inputs.empty() ? graph::kNoTensor : graph.nodes[n].inputs[0];
    const auto producer = first == graph::kNoTensor ? -1 : made_by[index(first)];
    if (producer < 0) {
      overwrites.push_back(false);
      continue;
    }
    const auto& maker = graph.nodes[static_cast<std::size_t>(producer)];
    overwrites.push_back(std::ranges::find(released[n], first) != released[n].end() &&
                         read_by[index(first)].size() == 1 && !maker.activation &&
                         forgets_results(maker.op));
  }
  return overwrites;
}

std::set<graph::TensorId> statistics_of(const graph::Graph& graph) {
  std::set<graph::TensorId> statistics;
  for (const auto& node : graph.nodes) {
    if (!std::holds_alternative<graph::BatchNorm>(node.op)) continue;
    for (const std::size_t i : {3U, 4U})
      if (graph.tensor(node.inputs[i]).is_constant()) statistics.insert(node.inputs[i]);
  }
  return statistics;
}

class Network final : public TorchNetwork {
 public:
  Network(const graph::Graph& graph, const at::Device& device)
      : graph_(graph),
        device_(device),
        is_static_(static_tensors(graph)),
        released_(last_reads(graph)),
        may_overwrite_(overwriting(graph, released_)),
        constants_(graph.tensors.size()) {}

  Status prepare();

  std::vector<at::Tensor> forward(std::vector<at::Tensor> inputs) override;
  std::vector<at::Tensor> parameters() override { return values_of(parameters_); }
  std::vector<at::Tensor> state() override { return values_of(state_); }
  std::vector<bool> decaying() const override;
  void batch_statistics(bool on, double momentum) override {
    norm_ = {.batch_statistics = on, .momentum = momentum};
  }
  void drop_out(double share, std::uint64_t seed) override {
    drop_ = {.share = share, .seed = seed};
  }
  graph::Graph graph() const override;

 private:
  Status check_operators() const;
  Status load_constants();
  Status try_out();
  std::vector<at::Tensor> values_of(const std::vector<graph::TensorId>& ids) const;
  void run(std::size_t node, std::vector<at::Tensor>& values, std::int64_t batch) const;
  std::int64_t graph_batch() const;

  graph::Graph graph_;
  at::Device device_;
  std::vector<bool> is_static_;
  std::vector<std::vector<graph::TensorId>> released_;  // after each node
  std::vector<bool> may_overwrite_;                     // of each node: its first operand
  std::vector<at::Tensor> constants_;                   // by id; undefined for what is computed
  std::vector<graph::TensorId> parameters_;
  std::vector<graph::TensorId> state_;
  NormMode norm_;
  DropMode drop_;
};

Status Network::check_operators() const {
  for (const auto& node : graph_.nodes) {
    if (const auto reason = why_not_trainable(node.op))
      return fail(ErrorCode::unsupported,
                  fmt::format("{} cannot be trained: {}", describe(node), *reason));
  }
  for (const auto& tensor : graph_.tensors) {
    if (tensor.quantization)
      return fail(ErrorCode::unsupported,
                  fmt::format("tensor '{}' is quantized: what is trained computes with floats",
                              tensor.name));
  }
  return {};
}

Status Network::load_constants() {
  std::set<graph::TensorId> used(graph_.outputs.begin(), graph_.outputs.end());
  for (const auto& node : graph_.nodes) used.insert(node.inputs.begin(), node.inputs.end());
  for (const auto id : used) {
    if (id == graph::kNoTensor || !graph_.tensor(id).data) continue;
    FLEETFIT_ASSIGN(auto value, constant_of(graph_.tensor(id), device_));
    constants_[index(id)] = std::move(value);
  }
  const auto statistics = statistics_of(graph_);
  for (const auto id : cost::trained_constants(graph_)) {
    if (statistics.contains(id)) continue;
    constants_[index(id)].set_requires_grad(true);
    parameters_.push_back(id);
  }
  state_ = parameters_;
  state_.insert(state_.end(), statistics.begin(), statistics.end());
  std::ranges::sort(state_);
  return {};
}

Status Network::try_out() {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> inputs;
  for (const auto id : graph_.inputs) {
    const auto& tensor = graph_.tensor(id);
    if (!tensor.shape) return {};  // nothing to try it with
    const auto type = scalar_type_of(tensor.dtype).value_or(at::kFloat);
    inputs.push_back(at::zeros(*tensor.shape, at::TensorOptions().dtype(type).device(device_)));
  }
  auto done = guarded([&] { forward(std::move(inputs)); });
  if (!done) done.error().code = ErrorCode::unsupported;
  return done;
}

Status Network::prepare() {
  FLEETFIT_TRY(check_operators());
  FLEETFIT_TRY(load_constants());
  return try_out();
}

std::vector<at::Tensor> Network::values_of(const std::vector<graph::TensorId>& ids) const {
  std::vector<at::Tensor> values;
  values.reserve(ids.size());
  for (const auto id : ids) values.push_back(constants_[index(id)]);
  return values;
}

std::vector<bool> Network::decaying() const {
  std::vector<bool> decays;
  for (const auto id : parameters_) decays.push_back(constants_[index(id)].squeeze().dim() > 1);
  return decays;
}

std::int64_t Network::graph_batch() const {
  if (graph_.inputs.empty()) return 1;
  const auto& shape = graph_.tensor(graph_.inputs[0]).shape;
  return shape && !shape->empty() ? shape->front() : 1;
}

void Network::run(std::size_t n, std::vector<at::Tensor>& values, std::int64_t batch) const {
  const auto& node = graph_.nodes[n];
  if (std::holds_alternative<graph::Constant>(node.op)) return;
  OperatorCall call{.graph = graph_,
                    .node = node,
                    .is_static = is_static_,
                    .graph_batch = graph_batch(),
                    .batch = batch,
                    .norm = norm_,
                    .drop = {.share = drop_.share, .seed = core::mix(drop_.seed, n)},
                    .may_overwrite = may_overwrite_[n]};
  for (const auto id : node.inputs)
    call.inputs.push_back(id == graph::kNoTensor ? at::Tensor() : values[index(id)]);
  auto outputs = run_operator(call);
  for (std::size_t i = 0; i < node.outputs.size() && i < outputs.size(); ++i)
    if (node.outputs[i] != graph::kNoTensor) values[index(node.outputs[i])] = std::move(outputs[i]);
  for (const auto id : released_[n]) values[index(id)].reset();
}

std::vector<at::Tensor> Network::forward(std::vector<at::Tensor> inputs) {
  if (inputs.size() != graph_.inputs.size())
    throw std::runtime_error(
        fmt::format("{} inputs for a network that has {}", inputs.size(), graph_.inputs.size()));
  const auto batch = inputs.empty() || inputs[0].dim() == 0 ? graph_batch() : inputs[0].size(0);
  auto values = constants_;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    values[index(graph_.inputs[i])] = std::move(inputs[i]);
  for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
    try {
      run(n, values, batch);
    } catch (const std::exception& thrown) {
      throw std::runtime_error(
          fmt::format("{}: {}", describe(graph_.nodes[n]), message_of(thrown)));
    }
  }
  std::vector<at::Tensor> outputs;
  for (const auto id : graph_.outputs) outputs.push_back(values[index(id)]);
  return outputs;
}

graph::Graph Network::graph() const {
  auto trained = graph_;
  for (const auto id : state_) {
    auto& tensor = trained.tensor(id);
    tensor.data = data_of(constants_[index(id)], tensor.dtype);
  }
  return trained;
}

}  // namespace

Result<std::unique_ptr<TorchNetwork>> TorchNetwork::create(const graph::Graph& graph,
                                                           const at::Device& device) {
  FLEETFIT_TRY(validate(graph));
  auto network = std::make_unique<Network>(graph, device);
  FLEETFIT_TRY(guarded([&] { return network->prepare(); }));
  return std::unique_ptr<TorchNetwork>(std::move(network));
}

Result<double> accuracy_of(TorchNetwork& network, const TorchImages& images,
                           const std::stop_token& stop) {
  constexpr std::int64_t kBatch = 250;
  const at::NoGradGuard at_work;
  network.batch_statistics(false);
  const OrderedBatches batches(images, kBatch);
  std::int64_t right = 0;
  std::int64_t labels = 0;
  for (std::int64_t i = 0; i < batches.size(); ++i) {
    if (stop.stop_requested()) return fail(ErrorCode::cancelled, "interrupted");
    FLEETFIT_ASSIGN(const auto batch, batches.batch(i));
    const auto found = network.forward_one(batch.images).argmax(1);
    right += found.eq(batch.labels).sum().item<std::int64_t>();
    labels += batch.labels.numel();
  }
  return static_cast<double>(right) / static_cast<double>(labels);
}

}  // namespace fleetfit::train
