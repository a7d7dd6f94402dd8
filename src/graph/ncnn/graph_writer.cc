#include "graph/ncnn/graph_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/infer_node.h"

namespace fleetfit::graph::ncnn {
namespace {

// 64 MB in all, a hundred times what the largest real network has.
constexpr std::int64_t kMostScales = std::int64_t{1} << 24;

}  // namespace

std::vector<TensorId> GraphWriter::add(Node node, std::size_t outputs) {
  for (std::size_t i = 0; i < outputs; ++i) {
    const auto name = outputs == 1 ? node.name : fmt::format("{}:{}", node.name, i);
    node.outputs.push_back(graph_.add_tensor({.name = name, .dtype = DType::f32}));
  }
  if (status_) infer(node);
  auto ids = node.outputs;
  graph_.nodes.push_back(std::move(node));
  return ids;
}

void GraphWriter::infer(const Node& node) {
  std::vector<Operand> operands;
  for (const auto id : node.inputs) {
    if (id == kNoTensor) {
      operands.push_back({});
      continue;
    }
    const auto& tensor = graph_.tensor(id);
    operands.push_back({.present = true,
                        .dtype = tensor.dtype,
                        .shape = tensor.shape ? &*tensor.shape : nullptr,
                        .value = tensor.data ? &*tensor.data : nullptr});
  }
  auto outcomes = infer_node(node, operands);
  if (!outcomes) return keep(outcomes.error().code, outcomes.error().message);
  for (std::size_t i = 0; i < node.outputs.size() && i < outcomes->size(); ++i) {
    auto& tensor = graph_.tensor(node.outputs[i]);
    if ((*outcomes)[i].dtype != DType::unknown) tensor.dtype = (*outcomes)[i].dtype;
    tensor.shape = std::move((*outcomes)[i].shape);
  }
}

void GraphWriter::define(std::string_view name, const Blob& blob, int line) {
  const auto [entry, is_new] = blobs_.try_emplace(std::string(name), Definition{blob, line});
  if (!is_new) {
    return keep(ErrorCode::invalid_input,
                fmt::format("blob {} is already made in line {}", name, entry->second.line));
  }
  order_.emplace_back(name);
}

const Blob& GraphWriter::read(std::string_view name) {
  static constexpr Blob kNothing{};
  const auto found = blobs_.find(name);
  if (found == blobs_.end()) {
    keep(ErrorCode::invalid_input, fmt::format("no layer before it makes blob {}", name));
    return kNothing;
  }
  found->second.is_read = true;
  return found->second.blob;
}

void GraphWriter::finish_outputs() {
  std::vector<bool> is_output(graph_.tensors.size(), false);
  const auto append = [&](TensorId id) {
    if (is_output[static_cast<std::size_t>(id)]) return;
    is_output[static_cast<std::size_t>(id)] = true;
    graph_.outputs.push_back(id);
  };
  for (const auto& name : order_) {
    const auto& definition = blobs_.find(name)->second;
    if (!definition.is_read) append(definition.blob.tensor);
  }
  for (const auto id : extra_outputs_) append(id);
}

bool GraphWriter::reserve_scales(std::int64_t count) {
  scales_ += std::min(count, kMostScales + 1 - scales_);
  return scales_ <= kMostScales;
}

void GraphWriter::keep(ErrorCode code, std::string message) {
  if (status_) status_ = fail(code, std::move(message));
}

}  // namespace fleetfit::graph::ncnn
