#include "fleetfit/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "graph/infer_node.h"

namespace fleetfit::graph {

TensorId Graph::add_tensor(Tensor tensor) {
  tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors.size() - 1);
}

TensorId Graph::add_ints(std::string tensor_name, const Ints& values) {
  return add_tensor({.name = std::move(tensor_name),
                     .dtype = DType::i64,
                     .shape = Shape{static_cast<std::int64_t>(values.size())},
                     .data = TensorData::copy(values)});
}

TensorId Graph::add_floats(std::string tensor_name, Shape shape, const std::vector<float>& values) {
  return add_tensor({.name = std::move(tensor_name),
                     .dtype = DType::f32,
                     .shape = std::move(shape),
                     .data = TensorData::copy(values)});
}

namespace {

template <class To, class From>
std::vector<To> converted(const TensorData& data) {
  std::vector<To> values;
  for (const auto value : data.as<From>()) values.push_back(static_cast<To>(value));
  return values;
}

}  // namespace

std::optional<Ints> ints_in(DType type, const TensorData& data) {
  if (type == DType::i64) return converted<std::int64_t, std::int64_t>(data);
  if (type == DType::i32) return converted<std::int64_t, std::int32_t>(data);
  return std::nullopt;
}

std::optional<std::vector<double>> numbers_in(DType type, const TensorData& data) {
  switch (type) {
    case DType::f32:
      return converted<double, float>(data);
    case DType::f64:
      return converted<double, double>(data);
    case DType::i8:
      return converted<double, std::int8_t>(data);
    case DType::u8:
    case DType::boolean:
      return converted<double, std::uint8_t>(data);
    case DType::i16:
      return converted<double, std::int16_t>(data);
    case DType::u16:
      return converted<double, std::uint16_t>(data);
    case DType::i32:
      return converted<double, std::int32_t>(data);
    case DType::u32:
      return converted<double, std::uint32_t>(data);
    case DType::i64:
      return converted<double, std::int64_t>(data);
    default:
      return std::nullopt;
  }
}

std::optional<Ints> constant_ints(const Graph& graph, TensorId id) {
  if (id == kNoTensor || !graph.tensor(id).data) return std::nullopt;
  return ints_in(graph.tensor(id).dtype, *graph.tensor(id).data);
}

std::optional<std::vector<double>> constant_numbers(const Graph& graph, TensorId id) {
  if (id == kNoTensor || !graph.tensor(id).data) return std::nullopt;
  return numbers_in(graph.tensor(id).dtype, *graph.tensor(id).data);
}

std::vector<int> producers(const Graph& graph) {
  std::vector<int> made_by(graph.tensors.size(), -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const auto id : graph.nodes[n].outputs) {
      if (id != kNoTensor) made_by[static_cast<std::size_t>(id)] = static_cast<int>(n);
    }
  }
  return made_by;
}

namespace {

/// Calls `visit` with each tensor that a node reads and the node's index, node by node.
template <class Visit>
void each_read(const Graph& graph, Visit visit) {
  std::vector<int> last(graph.tensors.size(), -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const int node = static_cast<int>(n);
    for (const auto id : graph.nodes[n].inputs) {
      if (id == kNoTensor || std::exchange(last[static_cast<std::size_t>(id)], node) == node)
        continue;
      visit(static_cast<std::size_t>(id), node);
    }
  }
}

/// Whether each node reads only what is given or made before it.
bool is_sorted(const Graph& graph) {
  std::vector<bool> known(graph.tensors.size());
  for (std::size_t t = 0; t < known.size(); ++t) known[t] = graph.tensors[t].is_constant();
  for (const auto id : graph.inputs) known[static_cast<std::size_t>(id)] = true;
  return std::ranges::all_of(graph.nodes, [&](const Node& node) {
    const bool ready = std::ranges::all_of(node.inputs, [&](TensorId id) {
      return id == kNoTensor || known[static_cast<std::size_t>(id)];
    });
    for (const auto id : node.outputs) {
      if (id != kNoTensor) known[static_cast<std::size_t>(id)] = true;
    }
    return ready;
  });
}

}  // namespace

Consumers::Consumers(const Graph& graph) : first_(graph.tensors.size() + 1, 0) {
  each_read(graph, [&](std::size_t tensor, int) { ++first_[tensor + 1]; });
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  nodes_.resize(first_.back());
  auto next = first_;
  each_read(graph, [&](std::size_t tensor, int node) { nodes_[next[tensor]++] = node; });
}

std::vector<bool> static_tensors(const Graph& graph) {
  std::vector<bool> is_static(graph.tensors.size());
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    is_static[t] = graph.tensors[t].is_constant();
  for (const auto& node : graph.nodes) {
    const bool all = std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) {
      return id == kNoTensor || is_static[static_cast<std::size_t>(id)];
    });
    // An unknown operator may give something else each time, and one without inputs may read a
    // sensor.
    if (!all || std::holds_alternative<Unknown>(node.op)) continue;
    for (const auto id : node.outputs) {
      if (id != kNoTensor) is_static[static_cast<std::size_t>(id)] = true;
    }
  }
  return is_static;
}

Status sort_nodes(Graph& graph) {
  if (is_sorted(graph)) return {};
  const auto made_by = producers(graph);
  const auto count = graph.nodes.size();
  std::vector<std::vector<std::size_t>> followers(count);
  std::vector<int> waiting(count, 0);
  std::vector<bool> given(graph.tensors.size(), false);
  for (const auto id : graph.inputs) given[static_cast<std::size_t>(id)] = true;

  for (std::size_t n = 0; n < count; ++n) {
    for (const auto id : graph.nodes[n].inputs) {
      if (id == kNoTensor) continue;
      const auto t = static_cast<std::size_t>(id);
      if (made_by[t] >= 0) {
        followers[static_cast<std::size_t>(made_by[t])].push_back(n);
        ++waiting[n];
      } else if (!given[t] && !graph.tensors[t].is_constant()) {
        return fail(ErrorCode::invalid_input,
                    fmt::format("{} reads tensor '{}', which nothing makes",
                                describe(graph.nodes[n]), graph.tensors[t].name));
      }
    }
  }

  // The ready node that stood first in the file goes first.
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t n = 0; n < count; ++n) {
    if (waiting[n] == 0) ready.push(n);
  }
  std::vector<Node> sorted;
  sorted.reserve(count);
  while (!ready.empty()) {
    const auto n = ready.top();
    ready.pop();
    for (const auto follower : followers[n]) {
      if (--waiting[follower] == 0) ready.push(follower);
    }
    sorted.push_back(std::move(graph.nodes[n]));
    waiting[n] = -1;
  }
  if (sorted.size() < count) {
    const auto stuck = std::find_if(waiting.begin(), waiting.end(), [](int w) { return w > 0; });
    const auto& node = graph.nodes[static_cast<std::size_t>(stuck - waiting.begin())];
    return fail(ErrorCode::invalid_input,
                fmt::format("{} waits for its own result: the graph has a cycle", describe(node)));
  }
  graph.nodes = std::move(sorted);
  return {};
}

std::string describe(const Node& node) {
  return node.name.empty() ? fmt::format("a node ({})", type_name(node.op))
                           : fmt::format("node {} ({})", node.name, type_name(node.op));
}

namespace {

/// What differs between two tensors, or "".
std::string tensor_difference(const Tensor& a, const Tensor& b) {
  if (a.name != b.name) return fmt::format("tensor '{}' is called '{}'", a.name, b.name);
  if (a.dtype != b.dtype)
    return fmt::format("tensor '{}' is {} and {}", a.name, to_string(a.dtype), to_string(b.dtype));
  if (a.shape != b.shape) {
    const auto text = [](const Tensor& t) {
      return t.shape ? to_string(*t.shape) : std::string("of unknown shape");
    };
    return fmt::format("tensor '{}' is {} and {}", a.name, text(a), text(b));
  }
  if (a.quantization != b.quantization)
    return fmt::format("tensor '{}' is quantized differently", a.name);
  if (a.symbols != b.symbols) return fmt::format("tensor '{}' has other open dimensions", a.name);
  if (a.is_constant() != b.is_constant())
    return fmt::format("tensor '{}' is a constant in one only", a.name);
  if (a.data && !(*a.data == *b.data)) return fmt::format("constant '{}' has other values", a.name);
  return {};
}

struct Comparison {
  const Graph& a;
  const Graph& b;

  std::string lists(const std::vector<TensorId>& left, const std::vector<TensorId>& right,
                    const std::string& where) const {
    if (left.size() != right.size())
      return fmt::format("{} has {} and {} tensors", where, left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      if ((left[i] == kNoTensor) != (right[i] == kNoTensor))
        return fmt::format("{} leaves tensor {} out in one only", where, i);
      if (left[i] == kNoTensor) continue;
      if (auto text = tensor_difference(a.tensor(left[i]), b.tensor(right[i])); !text.empty())
        return fmt::format("{}: {}", where, text);
    }
    return {};
  }

  std::string nodes(const Node& left, const Node& right) const {
    if (left.name != right.name)
      return fmt::format("{} is called '{}'", describe(left), right.name);
    if (!(left.op == right.op))
      return fmt::format("{} and {} differ in their attributes", describe(left), describe(right));
    if (!(left.activation == right.activation))
      return fmt::format("{} has another activation", describe(left));
    if (auto text = lists(left.inputs, right.inputs, "inputs of " + describe(left)); !text.empty())
      return text;
    return lists(left.outputs, right.outputs, "outputs of " + describe(left));
  }
};

}  // namespace

std::optional<std::string> first_difference(const Graph& a, const Graph& b) {
  const Comparison compare{a, b};
  if (a.name != b.name) return fmt::format("graph '{}' is called '{}'", a.name, b.name);
  if (auto text = compare.lists(a.inputs, b.inputs, "input"); !text.empty()) return text;
  if (a.nodes.size() != b.nodes.size())
    return fmt::format("{} and {} nodes", a.nodes.size(), b.nodes.size());
  for (std::size_t n = 0; n < a.nodes.size(); ++n) {
    if (auto text = compare.nodes(a.nodes[n], b.nodes[n]); !text.empty()) return text;
  }
  if (auto text = compare.lists(a.outputs, b.outputs, "output"); !text.empty()) return text;
  return std::nullopt;
}

}  // namespace fleetfit::graph
