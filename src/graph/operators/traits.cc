#include "graph/operators/traits.h"

#include <algorithm>
#include <array>

#include "graph/operator_fields.h"

namespace fleetfit::graph {
namespace {

std::string_view unknown_name(const Unknown& op) { return op.type; }

constexpr OperatorTraits kUnknown{.type = kTypeOf<Unknown>,
                                  .number = 0,
                                  .name_of = rule<unknown_name>,
                                  .arity = {0, kAnyNumber, kAnyNumber}};

OperatorTable<OperatorTraits> collect() {
  OperatorTable<OperatorTraits> table({{&kUnknown, 1}});
  for (const auto& family : operator_families()) table.add(family.operators);
  return table;
}

}  // namespace

std::span<const OperatorFamily> operator_families() {
  static const std::array kFamilies{
      convolution_family(), matrix_family(),      normalization_family(), pooling_family(),
      activation_family(),  elementwise_family(), conversion_family(),    joining_family(),
      selection_family(),   resizing_family(),    reshaping_family(),     regrouping_family(),
      reduction_family(),   constants_family()};
  return kFamilies;
}

std::vector<OnnxReader> onnx_readers() {
  std::vector<OnnxReader> readers;
  for (const auto& family : operator_families()) {
    for (const auto& entry : family.operators) {
      if (entry.outside_onnx) continue;
      if (!entry.name.empty()) readers.push_back({entry.name, entry.read_onnx});
      for (const auto name : entry.kinds.names.first(entry.kinds.in_onnx))
        readers.push_back({name, entry.read_onnx});
    }
    readers.insert(readers.end(), family.onnx.begin(), family.onnx.end());
  }
  return readers;
}

const OperatorTraits& traits(const Operator& op) {
  static const auto kTable = collect();
  return *kTable.find(op);
}

Operator::Operator() = default;
Operator::Operator(const Operator& other) = default;
Operator::Operator(Operator&& other) noexcept = default;
Operator::~Operator() = default;
Operator& Operator::operator=(const Operator& other) = default;
Operator& Operator::operator=(Operator&& other) noexcept = default;

bool Operator::operator==(const Operator& other) const {
  const auto is_same = [&]<class Op>(const Op& op) {
    const auto& like = *std::get_if<Op>(&other);
    if constexpr (std::is_same_v<Op, Unknown>)
      return op == like;
    else
      return fields(op) == fields(like);
  };
  return index() == other.index() && std::visit(is_same, static_cast<const AnyOperator&>(*this));
}

std::string_view type_name(const Operator& op) {
  const auto& entry = traits(op);
  if (entry.name_of != nullptr) return entry.name_of(op);
  return entry.kinds.names.empty() ? entry.name : entry.kinds.names[entry.kinds.get(op)];
}

// --- Facts

std::optional<std::int64_t> multiply_accumulates(const Graph& graph, const Node& node) {
  const auto products = traits(node.op).products;
  return products != nullptr ? products(node.op, graph, node) : 0;
}

std::vector<std::size_t> trained_inputs(const Node& node) {
  const auto& trained = traits(node.op).trained;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (trained.contains(i)) positions.push_back(i);
  }
  return positions;
}

bool takes_any_factor(const Operator& op) { return traits(op).takes_any_factor; }

std::string_view kernel_kind(const Operator& op) {
  const auto& entry = traits(op);
  return entry.kernel_kind_of != nullptr ? entry.kernel_kind_of(op) : entry.kernel_kind;
}

Price price_of(const Node& node) {
  const auto& entry = traits(node.op);
  const Price own = entry.price_of != nullptr ? entry.price_of(node.op) : entry.price;
  return std::max(own, price_of(node.activation));
}

bool shares_memory(const Operator& op) {
  return traits(op).only_reshapes || traits(op).shares_memory;
}

bool is_layer(const Operator& op) { return traits(op).is_layer; }

bool only_reshapes(const Operator& op) { return traits(op).only_reshapes; }

bool is_activation(const Operator& op) { return !traits(op).activation_names.empty(); }

std::vector<std::string_view> activation_names() {
  std::vector<std::string_view> names;
  for (const auto& family : operator_families()) {
    for (const auto& entry : family.operators)
      names.insert(names.end(), entry.activation_names.begin(), entry.activation_names.end());
  }
  return names;
}

std::optional<Layout> layout_of(const Operator& op) {
  if (traits(op).only_nhwc) return Layout::nhwc;
  return std::visit(
      [](const auto& known) -> std::optional<Layout> {
        if constexpr (requires { known.layout; }) {
          return known.layout;
        } else {
          return std::nullopt;
        }
      },
      op);
}

}  // namespace fleetfit::graph
