#include "graph/tflite/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "graph/tflite/attributes.h"
#include "graph/tflite/conversion.h"

namespace fleetfit::graph::tflite {
namespace {

using Code = file::BuiltinOperator;

constexpr std::size_t kAnyNumber = 100'000;

/// How one operator of the file is read, and how many tensors it has.
struct Row {
  Code code;
  Converter convert;
  std::size_t required_inputs = 1;
  std::size_t most_inputs = 1;
  std::size_t most_outputs = 1;
};

constexpr Activation kRelu0To1{ActivationKind::clip, 0, 1};
constexpr Activation kReluN1To1{ActivationKind::clip, -1, 1};
constexpr Activation kElu{ActivationKind::elu, 1};

constexpr auto kRows = std::to_array<Row>({
    {Code::CONV_2D, convert_conv_2d, 2, 3},
    {Code::DEPTHWISE_CONV_2D, convert_depthwise_conv_2d, 2, 3},
    {Code::TRANSPOSE_CONV, convert_transpose_conv, 3, 4},
    {Code::FULLY_CONNECTED, convert_fully_connected, 2, 3},
    {Code::BATCH_MATMUL, convert_batch_matmul, 2, 2},
    {Code::AVERAGE_POOL_2D, convert_average_pool_2d},
    {Code::MAX_POOL_2D, convert_max_pool_2d},
    {Code::SOFTMAX, convert_softmax},
    {Code::LOG_SOFTMAX, convert_log_softmax},
    {Code::L2_NORMALIZATION, convert_l2_normalization},
    {Code::LOCAL_RESPONSE_NORMALIZATION, convert_local_response_normalization},

    {Code::LOGISTIC, convert_activation<kSigmoid>},
    {Code::TANH, convert_activation<kTanh>},
    {Code::RELU, convert_activation<kRelu>},
    {Code::RELU6, convert_activation<kRelu6>},
    {Code::RELU_0_TO_1, convert_activation<kRelu0To1>},
    {Code::RELU_N1_TO_1, convert_activation<kReluN1To1>},
    {Code::ELU, convert_activation<kElu>},
    {Code::HARD_SWISH, convert_activation<kHardSwish>},
    {Code::LEAKY_RELU, convert_leaky_relu},
    {Code::GELU, convert_gelu},
    {Code::PRELU, convert_prelu, 2, 2},

    {Code::ADD, convert_add, 2, 2},
    {Code::SUB, convert_sub, 2, 2},
    {Code::MUL, convert_mul, 2, 2},
    {Code::DIV, convert_div, 2, 2},
    {Code::ADD_N, convert_elementwise<ElementwiseKind::sum>, 1, kAnyNumber},
    {Code::POW, convert_elementwise<ElementwiseKind::pow>, 2, 2},
    {Code::MINIMUM, convert_elementwise<ElementwiseKind::min>, 2, 2},
    {Code::MAXIMUM, convert_elementwise<ElementwiseKind::max>, 2, 2},
    {Code::SQUARED_DIFFERENCE, convert_elementwise<ElementwiseKind::squared_difference>, 2, 2},
    {Code::EQUAL, convert_elementwise<ElementwiseKind::equal>, 2, 2},
    {Code::NOT_EQUAL, convert_not_equal, 2, 2},
    {Code::GREATER, convert_elementwise<ElementwiseKind::greater>, 2, 2},
    {Code::GREATER_EQUAL, convert_elementwise<ElementwiseKind::greater_or_equal>, 2, 2},
    {Code::LESS, convert_elementwise<ElementwiseKind::less>, 2, 2},
    {Code::LESS_EQUAL, convert_elementwise<ElementwiseKind::less_or_equal>, 2, 2},
    {Code::LOGICAL_AND, convert_elementwise<ElementwiseKind::logical_and>, 2, 2},
    {Code::LOGICAL_OR, convert_elementwise<ElementwiseKind::logical_or>, 2, 2},
    {Code::FLOOR_DIV, convert_floor_div, 2, 2},
    {Code::FLOOR_MOD, convert_floor_mod, 2, 2},

    {Code::ABS, convert_unary<UnaryKind::abs>},
    {Code::NEG, convert_unary<UnaryKind::neg>},
    {Code::EXP, convert_unary<UnaryKind::exp>},
    {Code::LOG, convert_unary<UnaryKind::log>},
    {Code::SQRT, convert_unary<UnaryKind::sqrt>},
    {Code::RSQRT, convert_unary<UnaryKind::rsqrt>},
    {Code::SQUARE, convert_unary<UnaryKind::square>},
    {Code::FLOOR, convert_unary<UnaryKind::floor>},
    {Code::CEIL, convert_unary<UnaryKind::ceil>},
    {Code::ROUND, convert_unary<UnaryKind::round>},
    {Code::SIN, convert_unary<UnaryKind::sin>},
    {Code::COS, convert_unary<UnaryKind::cos>},
    {Code::SIGN, convert_unary<UnaryKind::sign>},
    {Code::LOGICAL_NOT, convert_unary<UnaryKind::logical_not>},

    {Code::MEAN, convert_reduce<ReduceKind::mean>, 2, 2},
    {Code::SUM, convert_reduce<ReduceKind::sum>, 2, 2},
    {Code::REDUCE_MAX, convert_reduce<ReduceKind::max>, 2, 2},
    {Code::REDUCE_MIN, convert_reduce<ReduceKind::min>, 2, 2},
    {Code::REDUCE_PROD, convert_reduce<ReduceKind::prod>, 2, 2},
    {Code::ARG_MAX, convert_arg_max, 2, 2},
    {Code::ARG_MIN, convert_arg_min, 2, 2},
    {Code::TOPK_V2, convert_topk_v2, 2, 2, 2},

    {Code::CAST, convert_cast},
    {Code::QUANTIZE, convert_quantize},
    {Code::DEQUANTIZE, convert_dequantize},
    {Code::SELECT, convert_select, 3, 3},
    {Code::SELECT_V2, convert_select_v2, 3, 3},
    {Code::SHAPE, convert_shape},
    {Code::RANGE, convert_range, 3, 3},
    {Code::FILL, convert_fill, 2, 2},

    {Code::CONCATENATION, convert_concatenation, 1, kAnyNumber},
    {Code::SPLIT, convert_split, 2, 2, kAnyNumber},
    {Code::SPLIT_V, convert_split_v, 3, 3, kAnyNumber},
    {Code::SLICE, convert_slice, 3, 3},
    {Code::STRIDED_SLICE, convert_strided_slice, 4, 4},
    {Code::PAD, convert_pad, 2, 2},
    {Code::PADV2, convert_pad, 3, 3},
    {Code::MIRROR_PAD, convert_mirror_pad, 2, 2},
    {Code::RESIZE_BILINEAR, convert_resize_bilinear, 2, 2},
    {Code::RESIZE_NEAREST_NEIGHBOR, convert_resize_nearest_neighbor, 2, 2},
    {Code::RESHAPE, convert_reshape, 1, 2},
    {Code::SQUEEZE, convert_squeeze},
    {Code::EXPAND_DIMS, convert_expand_dims, 2, 2},
    {Code::TRANSPOSE, convert_transpose, 2, 2},
    {Code::TILE, convert_tile, 2, 2},
    {Code::BROADCAST_TO, convert_broadcast_to, 2, 2},
    {Code::GATHER, convert_gather, 2, 2},
    {Code::PACK, convert_pack, 1, kAnyNumber},
    {Code::UNPACK, convert_unpack, 1, 1, kAnyNumber},
    {Code::SPACE_TO_DEPTH, convert_space_to_depth},
    {Code::DEPTH_TO_SPACE, convert_depth_to_space},
    {Code::SPACE_TO_BATCH_ND, convert_space_to_batch_nd, 3, 3},
    {Code::BATCH_TO_SPACE_ND, convert_batch_to_space_nd, 3, 3},
});

constexpr Row kMediapipeTransposeConv{Code::CUSTOM, convert_mediapipe_transpose_conv, 2, 3};

/// What the file calls an operator.
struct OperatorKind {
  Code code = Code::CUSTOM;
  std::string type;
  const Row* row = nullptr;  ///< null: no counterpart in a graph
};

OperatorKind kind_of(const file::OperatorCode& source) {
  constexpr std::size_t kLongestCustomCode = 256;
  // Files of old converters have the code in the one field, those of new ones in both or the other.
  OperatorKind kind{
      .code = std::max(static_cast<Code>(source.deprecated_builtin_code()), source.builtin_code())};
  if (kind.code == Code::CUSTOM) {
    const auto* custom = source.custom_code();
    if (custom != nullptr) kind.type = custom->string_view().substr(0, kLongestCustomCode);
    if (kind.type == "Convolution2DTransposeBias") kind.row = &kMediapipeTransposeConv;
    return kind;
  }
  kind.type = file::EnumNameBuiltinOperator(kind.code);
  if (kind.type.empty()) kind.type = fmt::format("BUILTIN_{}", static_cast<int>(kind.code));
  const auto row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.code == kind.code; });
  if (row != kRows.end()) kind.row = &*row;
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
    if (kind.row == nullptr) return not_known(why_not_known(kind));
    const auto& row = *kind.row;
    const auto count = conversion.inputs.size();
    if (count < row.required_inputs || count > row.most_inputs)
      return refuse(fmt::format("it has {} inputs", count));
    if (conversion.outputs.empty() || conversion.outputs.size() > row.most_outputs)
      return refuse(fmt::format("it has {} outputs", conversion.outputs.size()));
    const auto required = row.most_inputs == kAnyNumber ? count : row.required_inputs;
    const auto end = conversion.inputs.begin() + static_cast<std::ptrdiff_t>(required);
    if (std::find(conversion.inputs.begin(), end, kNoTensor) != end)
      return refuse("an input that it needs is left out");
    return row.convert(conversion);
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
