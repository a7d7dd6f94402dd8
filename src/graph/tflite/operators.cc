#include "graph/tflite/parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/operators/traits.h"

namespace fleetfit::graph::tflite {
namespace {

using Code = file::BuiltinOperator;

/// What the file calls an operator.
struct OperatorKind {
  Code code = Code::CUSTOM;
  std::string type;
  const TfliteReader* reader = nullptr;  ///< null: no counterpart in a graph
};

// The one custom operator that is known; all others are of the schema.
constexpr std::string_view kMediapipeTransposeConv = "Convolution2DTransposeBias";

const TfliteReader* find_reader(std::string_view code) {
  for (const auto& family : operator_families()) {
    for (const auto& reader : family.tflite) {
      if (reader.code == code) return &reader;
    }
  }
  return nullptr;
}

OperatorKind kind_of(const file::OperatorCode& source) {
  constexpr std::size_t kLongestCustomCode = 256;
  // Files of old converters have the code in the one field, those of new ones in both or the other.
  OperatorKind kind{
      .code = std::max(static_cast<Code>(source.deprecated_builtin_code()), source.builtin_code())};
  if (kind.code == Code::CUSTOM) {
    const auto* custom = source.custom_code();
    if (custom != nullptr) kind.type = custom->string_view().substr(0, kLongestCustomCode);
    if (kind.type == kMediapipeTransposeConv) kind.reader = find_reader(kind.type);
    return kind;
  }
  kind.type = file::EnumNameBuiltinOperator(kind.code);
  if (kind.type.empty()) kind.type = fmt::format("BUILTIN_{}", static_cast<int>(kind.code));
  kind.reader = find_reader(kind.type);
  return kind;
}

std::string why_not_known(const OperatorKind& kind) {
  switch (kind.code) {
    case Code::CUSTOM:
      return "a custom operator that is not known";
    case Code::CALL:
    case Code::CALL_ONCE:
    case Code::IF:
    case Code::WHILE:
      return "it runs another graph of the file";
    default:
      return "no such operator is known";
  }
}

class OperatorsReader {
 public:
  OperatorsReader(const file::SubGraph& subgraph, CopyBudget& budget, Graph& graph)
      : subgraph_(subgraph),
        file_tensors_(graph.tensors.size()),
        progress_{graph, budget, {}, {}, {}} {}

  /// Counts who reads what. Fails if an index is out of range.
  Status count_readers() {
    progress_.readers.assign(file_tensors_, 0);
    FLEETFIT_TRY(count(subgraph_.outputs()));
    if (subgraph_.operators() == nullptr) return {};
    for (const auto* op : *subgraph_.operators()) {
      FLEETFIT_TRY(count(op->inputs()));
    }
    return {};
  }

  Status read(const file::Operator& source, const OperatorKind& kind, std::size_t index) {
    auto& graph = progress_.graph;
    auto inputs = ids(source.inputs());
    auto outputs = ids(source.outputs());
    FLEETFIT_TRY(inputs);
    FLEETFIT_TRY(outputs);
    FLEETFIT_TRY(claim(*outputs));
    Conversion conversion{.progress = progress_,
                          .graph = graph,
                          .source = source,
                          .name = name_of(*outputs, index),
                          .inputs = std::move(*inputs),
                          .outputs = std::move(*outputs)};
    FLEETFIT_ASSIGN(auto converted, convert(conversion, kind));
    if (auto* unknown = std::get_if<Unknown>(&converted.op))
      describe_unknown(conversion, kind, *unknown, converted);
    for (const auto id : conversion.outputs) progress_.made_by[id] = graph.nodes.size();
    graph.nodes.push_back({.name = std::move(conversion.name),
                           .op = std::move(converted.op),
                           .inputs = std::move(converted.inputs),
                           .outputs = std::move(conversion.outputs),
                           .activation = converted.activation});
    return {};
  }

 private:
  using FileIds = flatbuffers::Vector<std::int32_t>;

  Status count(const FileIds* list) {
    if (list == nullptr) return {};
    for (const auto id : *list) {
      if (!in_range(id)) return refuse(fmt::format("there is no tensor {}", id));
      if (id >= 0) ++progress_.readers[static_cast<std::size_t>(id)];
    }
    return {};
  }

  bool in_range(std::int32_t id) const {
    return id >= kNoTensor && (id < 0 || static_cast<std::size_t>(id) < file_tensors_);
  }

  Result<std::vector<TensorId>> ids(const FileIds* list) {
    if (list == nullptr) return std::vector<TensorId>{};
    if (!progress_.budget.take(list->size() * sizeof(TensorId)))
      return refuse("the file refers to the same list of tensors again and again");
    for (const auto id : *list) {
      if (!in_range(id)) return refuse(fmt::format("there is no tensor {}", id));
    }
    return std::vector<TensorId>(list->begin(), list->end());
  }

  /// Checks that these may be outputs of one operator.
  Status claim(const std::vector<TensorId>& outputs) const {
    for (const auto id : outputs) {
      if (id == kNoTensor) return refuse("an output is left out");
      if (progress_.graph.tensor(id).is_constant())
        return refuse(
            fmt::format("it writes to the constant '{}'", progress_.graph.tensor(id).name));
      if (progress_.made_by.contains(id))
        return refuse(fmt::format("tensor {} is written to a second time", id));
    }
    return {};
  }

  std::string name_of(const std::vector<TensorId>& outputs, std::size_t index) const {
    const auto name = outputs.empty() ? std::string{} : progress_.graph.tensor(outputs[0]).name;
    return name.empty() ? fmt::format("op{}", index) : name;
  }

  static Result<Converted> convert(Conversion& conversion, const OperatorKind& kind) {
    if (kind.reader == nullptr) return not_known(why_not_known(kind));
    const auto& arity = kind.reader->arity;
    const auto count = conversion.inputs.size();
    if (count < arity.least_inputs || count > arity.most_inputs)
      return refuse(fmt::format("it has {} inputs", count));
    if (conversion.outputs.empty() || conversion.outputs.size() > arity.most_outputs)
      return refuse(fmt::format("it has {} outputs", conversion.outputs.size()));
    const auto required = arity.most_inputs == kAnyNumber ? count : arity.least_inputs;
    const auto end = conversion.inputs.begin() + static_cast<std::ptrdiff_t>(required);
    if (std::find(conversion.inputs.begin(), end, kNoTensor) != end)
      return refuse("an input that it needs is left out");
    return kind.reader->convert(conversion);
  }

  void describe_unknown(const Conversion& conversion, const OperatorKind& kind, Unknown& unknown,
                        Converted& converted) {
    unknown.domain = kind.code == Code::CUSTOM ? "custom" : "";
    unknown.type = kind.type;
    unknown.attributes = read_attributes(conversion.source, progress_.budget);
    converted.inputs = conversion.inputs;
    // State that the operator keeps from run to run is made by nobody.
    for (auto& id : converted.inputs) {
      if (id != kNoTensor &&
          subgraph_.tensors()->Get(static_cast<flatbuffers::uoffset_t>(id))->is_variable())
        id = kNoTensor;
    }
  }

  const file::SubGraph& subgraph_;
  std::size_t file_tensors_;
  Progress progress_;
};

}  // namespace

Status read_operators(const file::Model& file, CopyBudget& budget, Graph& graph) {
  const auto& subgraph = *file.subgraphs()->Get(0);
  std::vector<OperatorKind> kinds;
  if (file.operator_codes() != nullptr) {
    for (const auto* code : *file.operator_codes()) kinds.push_back(kind_of(*code));
  }
  OperatorsReader reader(subgraph, budget, graph);
  FLEETFIT_TRY(reader.count_readers());
  if (subgraph.operators() == nullptr) return {};
  for (flatbuffers::uoffset_t i = 0; i < subgraph.operators()->size(); ++i) {
    const auto& source = *subgraph.operators()->Get(i);
    if (source.opcode_index() >= kinds.size())
      return refuse(
          fmt::format("operator {}: there is no operator code {}", i, source.opcode_index()));
    const auto& kind = kinds[source.opcode_index()];
    if (auto read = reader.read(source, kind, i); !read)
      return core::within(fmt::format("operator {} ({})", i, kind.type), read.error());
  }
  return {};
}

}  // namespace fleetfit::graph::tflite
