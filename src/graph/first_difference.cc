#include <fmt/format.h>

#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {
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
