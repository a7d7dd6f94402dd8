#include "fleetfit/graph/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fleetfit/core/sha256.h"
#include "graph/operator_fields.h"
#include "graph/operators/traits.h"

namespace fleetfit::graph {
namespace {

// Changes whenever the text below does, so that what older versions stored is not taken for it.
constexpr std::string_view kVersion = "structure 1";

/// Values one after another, so written that different ones make different texts.
class Text {
 public:
  void add(std::string_view text) { text_ += fmt::format("{}:{};", text.size(), text); }
  void add(const std::string& text) { add(std::string_view(text)); }
  void add(const Window& window) { add_all(fields(window)); }
  void add(const Activation& activation) { add_all(fields(activation)); }

  template <class T>
  void add(const std::vector<T>& values) {
    add(values.size());
    for (const auto& value : values) add(value);
  }
  template <class T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  template <class K, class V>
  void add(const std::map<K, V>& values) {
    add(values.size());
    for (const auto& [key, value] : values) {
      add(key);
      add(value);
    }
  }
  template <class... T>
  void add(const std::variant<T...>& value) {
    add(value.index());
    std::visit([&](const auto& held) { add(held); }, value);
  }
  template <class T>
  void add(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      text_ += fmt::format("{};", static_cast<int>(value));
    } else {
      text_ += fmt::format("{};", value);
    }
  }

  template <class... T>
  void add_all(const std::tuple<T...>& values) {
    std::apply([&](const auto&... value) { (add(value), ...); }, values);
  }

  std::string digest() const { return core::sha256_hex(text_); }

 private:
  std::string text_;
};

void add_operator(Text& text, const Operator& op) {
  text.add(traits(op).number);
  std::visit([&](const auto& held) { text.add_all(fields(held)); }, op);
}

/// Digests of tensors and nodes, each made of those before it.
class Digests {
 public:
  explicit Digests(const Graph& graph)
      : graph_(graph),
        tensors_(graph.tensors.size()),
        uses_(graph.tensors.size()),
        is_weight_(graph.tensors.size()) {
    count_uses();
    for (std::size_t i = 0; i < graph.tensors.size(); ++i)
      if (graph.tensors[i].is_constant()) tensors_[i] = constant(graph.tensors[i], is_weight_[i]);
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) of(graph.inputs[i]) = input(i);
    for (const auto& node : graph.nodes) add(node);
  }

  std::string whole() {
    std::ranges::sort(nodes_);
    Text text;
    text.add(kVersion);
    text.add(graph_.inputs.size());
    for (const auto id : graph_.outputs) text.add(of(id));
    text.add(nodes_);
    return text.digest();
  }

 private:
  std::string& of(TensorId id) { return tensors_[static_cast<std::size_t>(id)]; }

  /// How often a tensor is read separates a shared one from several alike.
  void count_uses() {
    for (const auto& node : graph_.nodes) {
      const bool weighs = std::holds_alternative<DequantizeLinear>(node.op) ||
                          std::holds_alternative<Conv>(node.op) ||
                          std::holds_alternative<Gemm>(node.op);
      for (const auto id : node.inputs) {
        if (id == kNoTensor) continue;
        ++uses_[static_cast<std::size_t>(id)];
        if (weighs) is_weight_[static_cast<std::size_t>(id)] = true;
      }
    }
  }

  static void add_type(Text& text, const Tensor& tensor) {
    text.add(tensor.dtype);
    text.add(tensor.shape);
    text.add(tensor.quantization.has_value());
    if (tensor.quantization) text.add(tensor.quantization->axis);
  }

  static std::string constant(const Tensor& tensor, bool is_weight) {
    Text text;
    text.add("constant");
    add_type(text, tensor);
    const bool computes = tensor.dtype == DType::i64 || (tensor.dtype == DType::i32 && !is_weight &&
                                                         !tensor.quantization.has_value());
    if (computes) {
      const auto bytes = tensor.data->bytes();
      text.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
    return text.digest();
  }

  std::string input(std::size_t index) const {
    Text text;
    text.add("input");
    text.add(index);
    add_type(text, graph_.tensor(graph_.inputs[index]));
    return text.digest();
  }

  void add(const Node& node) {
    if (std::holds_alternative<Constant>(node.op)) return;
    Text text;
    add_operator(text, node.op);
    text.add(node.activation);
    text.add(node.inputs.size());
    for (const auto id : node.inputs) {
      text.add(id == kNoTensor ? std::string() : of(id));
      if (id != kNoTensor) text.add(uses_[static_cast<std::size_t>(id)]);
    }
    for (const auto id : node.outputs) {
      if (id != kNoTensor) add_type(text, graph_.tensor(id));
    }
    auto digest = text.digest();
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoTensor || graph_.tensor(node.outputs[i]).is_constant()) continue;
      Text output;
      output.add(digest);
      output.add(i);
      of(node.outputs[i]) = output.digest();
    }
    nodes_.push_back(std::move(digest));
  }

  const Graph& graph_;
  std::vector<std::string> tensors_;
  std::vector<std::size_t> uses_;
  std::vector<bool> is_weight_;
  std::vector<std::string> nodes_;
};

}  // namespace

std::string structure_id(const Graph& graph) { return Digests(graph).whole(); }

}  // namespace fleetfit::graph
