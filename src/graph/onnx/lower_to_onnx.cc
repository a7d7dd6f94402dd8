#include "graph/onnx/lower_to_onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unordered_map>
#include <unordered_set>

#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::graph::onnx_format {
namespace {

bool is_image_last(const Node& node) {
  return std::visit(
      [](const auto& op) {
        if constexpr (requires { op.layout; }) return op.layout == Layout::nhwc;
        using Op = std::decay_t<decltype(op)>;
        return std::is_same_v<Op, SpaceToBatch> || std::is_same_v<Op, BatchToSpace>;
      },
      node.op);
}

/// Rewrites nodes one after the other into a new list.
class Lowering {
 public:
  explicit Lowering(Graph graph) : graph_(std::move(graph)) {}

  Result<Graph> run() {
    auto nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (auto& node : nodes) {
      FLEETFIT_TRY(lower(std::move(node)));
    }
    for (auto& tensor : graph_.tensors) tensor.quantization.reset();
    make_names_unique();
    FLEETFIT_TRY(infer_shapes(graph_));
    return std::move(graph_);
  }

 private:
  // --- Emitting ---

  TensorId fresh(const Node& near, std::string_view role, DType dtype = DType::f32) {
    return graph_.add_tensor({.name = fmt::format("{}.{}", near.name, role), .dtype = dtype});
  }

  void emit(const Node& near, std::string_view role, Operator op, std::vector<TensorId> inputs,
            TensorId output) {
    graph_.nodes.push_back({.name = fmt::format("{}.{}", near.name, role),
                            .op = std::move(op),
                            .inputs = std::move(inputs),
                            .outputs = {output}});
  }

  /// A node with a result of its own.
  TensorId step(const Node& near, std::string_view role, Operator op,
                std::vector<TensorId> inputs) {
    const auto result = fresh(near, role);
    emit(near, role, std::move(op), std::move(inputs), result);
    return result;
  }

  TensorId scalar(const Node& near, std::string_view role, float value) {
    return graph_.add_tensor({.name = fmt::format("{}.{}", near.name, role),
                              .dtype = DType::f32,
                              .shape = Shape{},
                              .data = TensorData::copy(std::vector<float>{value})});
  }

  TensorId ints(const Node& near, std::string_view role, const Ints& values) {
    return graph_.add_ints(fmt::format("{}.{}", near.name, role), values);
  }

  // --- One node ---

  Status lower(Node node) {
    if (const auto* unknown = std::get_if<Unknown>(&node.op)) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{} cannot be written as ONNX: {}", describe(node), unknown->reason));
    }
    FLEETFIT_TRY(dequantize_operands(node));
    widen_counts(node);
    if (node.activation) {
      const auto plain = fresh(node, "plain");
      const auto activated = std::exchange(node.outputs[0], plain);
      const auto activation = std::exchange(node.activation, Activation{});
      const Node near{.name = node.name};
      FLEETFIT_TRY(write_out(std::move(node)));
      activate(near, activation, plain, activated);
    } else if (auto ok = write_out(std::move(node)); !ok) {
      return ok;
    }
    // Results are quantized after the node that made them.
    for (auto& late : std::exchange(late_, {})) graph_.nodes.push_back(std::move(late));
    return {};
  }

  // --- Quantized tensors ---

  std::vector<TensorId> quantization_inputs(const Tensor& tensor) {
    const auto& q = *tensor.quantization;
    const auto shape = q.axis ? Shape{static_cast<std::int64_t>(q.scales.size())} : Shape{};
    std::vector<TensorId> inputs{graph_.add_tensor({.name = tensor.name + ".scale",
                                                    .dtype = DType::f32,
                                                    .shape = shape,
                                                    .data = TensorData::copy(q.scales)})};
    if (tensor.dtype == DType::i32) return inputs;  // ONNX wants no zero point there
    std::vector<std::byte> points;
    for (const auto point : q.zero_points) points.push_back(static_cast<std::byte>(point));
    inputs.push_back(graph_.add_tensor({.name = tensor.name + ".zero_point",
                                        .dtype = tensor.dtype,
                                        .shape = shape,
                                        .data = TensorData::own(std::move(points))}));
    return inputs;
  }

  Status check_quantized(const Node& node, const Tensor& tensor) const {
    const bool eight_bits = tensor.dtype == DType::i8 || tensor.dtype == DType::u8;
    const auto& zeros = tensor.quantization->zero_points;
    const bool bias = tensor.dtype == DType::i32 &&
                      std::all_of(zeros.begin(), zeros.end(), [](auto z) { return z == 0; });
    if (eight_bits || bias) return {};
    return fail(ErrorCode::unsupported,
                fmt::format("{}: tensor '{}' is quantized to {}, which ONNX cannot express",
                            describe(node), tensor.name, to_string(tensor.dtype)));
  }

  /// The real values of a quantized tensor, made once.
  TensorId real(TensorId id) {
    if (const auto found = real_.find(id); found != real_.end()) return found->second;
    const auto tensor = graph_.tensor(id);
    const Node near{.name = tensor.name};
    const auto result = fresh(near, "real");
    std::vector<TensorId> inputs{id};
    for (const auto extra : quantization_inputs(tensor)) inputs.push_back(extra);
    emit(near, "dequantize", DequantizeLinear{tensor.quantization->axis.value_or(1)},
         std::move(inputs), result);
    real_.emplace(id, result);
    return result;
  }

  Status dequantize_operands(Node& node) {
    for (auto& id : node.inputs) {
      if (id == kNoTensor || !graph_.tensor(id).quantization) continue;
      FLEETFIT_TRY(check_quantized(node, graph_.tensor(id)));
      id = real(id);
    }
    for (auto& id : node.outputs) {
      if (id == kNoTensor || !graph_.tensor(id).quantization ||
          std::holds_alternative<Constant>(node.op))
        continue;
      const auto tensor = graph_.tensor(id);
      FLEETFIT_TRY(check_quantized(node, tensor));
      const auto stored = std::exchange(id, fresh(Node{.name = tensor.name}, "exact"));
      std::vector<TensorId> inputs{id};
      for (const auto extra : quantization_inputs(tensor)) inputs.push_back(extra);
      late_.push_back({.name = tensor.name + ".quantize",
                       .op = QuantizeLinear{tensor.quantization->axis.value_or(1)},
                       .inputs = std::move(inputs),
                       .outputs = {stored}});
    }
    return {};
  }

  // --- Whole numbers ---

  /// Positions of inputs that ONNX wants in 64 bits.
  static std::vector<std::size_t> count_inputs(const Operator& op) {
    return std::visit(Overloaded{[](const Reshape&) { return std::vector<std::size_t>{1}; },
                                 [](const Pad&) { return std::vector<std::size_t>{1}; },
                                 [](const Expand&) { return std::vector<std::size_t>{1}; },
                                 [](const Tile&) { return std::vector<std::size_t>{1}; },
                                 [](const Split&) { return std::vector<std::size_t>{1}; },
                                 [](const Squeeze&) { return std::vector<std::size_t>{1}; },
                                 [](const Unsqueeze&) { return std::vector<std::size_t>{1}; },
                                 [](const TopK&) { return std::vector<std::size_t>{1}; },
                                 [](const Resize&) { return std::vector<std::size_t>{3}; },
                                 [](const ConstantOfShape&) { return std::vector<std::size_t>{0}; },
                                 [](const Slice&) { return std::vector<std::size_t>{1, 2, 3, 4}; },
                                 [](const auto&) { return std::vector<std::size_t>{}; }},
                      op);
  }

  void widen_counts(Node& node) {
    for (const auto i : count_inputs(node.op)) {
      if (i >= node.inputs.size() || node.inputs[i] == kNoTensor) continue;
      if (graph_.tensor(node.inputs[i]).dtype != DType::i32) continue;
      const auto values = constant_ints(graph_, node.inputs[i]);
      const auto role = fmt::format("input{}", i);
      if (values) {
        node.inputs[i] = ints(node, role, *values);
      } else {
        node.inputs[i] = step(node, role, Cast{DType::i64}, {node.inputs[i]});
        graph_.tensor(node.inputs[i]).dtype = DType::i64;
      }
    }
  }

  // --- Activations that ONNX 17 lacks ---

  void activate(const Node& near, const Activation& activation, TensorId x, TensorId y) {
    switch (activation.kind) {
      case ActivationKind::silu:
        return emit(near, "silu", Elementwise{ElementwiseKind::mul},
                    {x, step(near, "sigmoid", Activate{kSigmoid}, {x})}, y);
      case ActivationKind::mish: {
        const auto soft = step(near, "softplus", Activate{{ActivationKind::softplus}}, {x});
        return emit(near, "mish", Elementwise{ElementwiseKind::mul},
                    {x, step(near, "tanh", Activate{kTanh}, {soft})}, y);
      }
      case ActivationKind::gelu: {
        const auto inner = step(near, "over_sqrt2", Elementwise{ElementwiseKind::div},
                                {x, scalar(near, "sqrt2", std::numbers::sqrt2_v<float>)});
        return half_of_one_more(near, x, step(near, "erf", Unary{UnaryKind::erf}, {inner}), y);
      }
      case ActivationKind::gelu_tanh: {
        // tanh(sqrt(2/pi) * (x + 0.044715 x^3))
        const auto cube =
            step(near, "cube", Elementwise{ElementwiseKind::pow}, {x, scalar(near, "three", 3)});
        const auto small = step(near, "small", Elementwise{ElementwiseKind::mul},
                                {cube, scalar(near, "c", 0.044715F)});
        const auto sum = step(near, "sum", Elementwise{ElementwiseKind::add}, {x, small});
        const auto factor = static_cast<float>(std::sqrt(2 / std::numbers::pi));
        const auto inner = step(near, "inner", Elementwise{ElementwiseKind::mul},
                                {sum, scalar(near, "factor", factor)});
        return half_of_one_more(near, x, step(near, "tanh", Activate{kTanh}, {inner}), y);
      }
      default:
        return emit(near, "activation", Activate{activation}, {x}, y);
    }
  }

  /// y = x * (1 + z) / 2
  void half_of_one_more(const Node& near, TensorId x, TensorId z, TensorId y) {
    const auto one_more =
        step(near, "one_more", Elementwise{ElementwiseKind::add}, {z, scalar(near, "one", 1)});
    const auto product = step(near, "product", Elementwise{ElementwiseKind::mul}, {x, one_more});
    emit(near, "gelu", Elementwise{ElementwiseKind::mul}, {product, scalar(near, "half", 0.5F)}, y);
  }

  // --- Operators that ONNX lacks, or has in a narrower form ---

  Status keep(Node node) {
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  Status write_out(Node node) {
    return std::visit([&](const auto& op) { return write_out(op, node); }, Operator(node.op));
  }

  template <class Op>
  Status write_out(const Op&, Node& node) {
    return keep(std::move(node));
  }

  Status write_out(const Activate& op, Node& node) {
    switch (op.function.kind) {
      case ActivationKind::silu:
      case ActivationKind::mish:
      case ActivationKind::gelu:
      case ActivationKind::gelu_tanh:
        activate(node, op.function, node.inputs[0], node.outputs[0]);
        return {};
      default:
        return keep(std::move(node));
    }
  }

  Status write_out(const Requantize& op, Node& node) {
    const bool cast = graph_.tensor(node.inputs[0]).dtype != op.to && op.to == DType::f32;
    if (cast) {
      node.op = Cast{DType::f32};
    } else {
      node.op = Identity{};
    }
    return keep(std::move(node));
  }

  Status write_out(const Unary& op, Node& node) {
    const auto x = node.inputs[0];
    if (op.kind == UnaryKind::square) {
      emit(node, "square", Elementwise{ElementwiseKind::mul}, {x, x}, node.outputs[0]);
    } else if (op.kind == UnaryKind::rsqrt) {
      emit(node, "rsqrt", Unary{UnaryKind::reciprocal},
           {step(node, "sqrt", Unary{UnaryKind::sqrt}, {x})}, node.outputs[0]);
    } else {
      return keep(std::move(node));
    }
    return {};
  }

  Status write_out(const Elementwise& op, Node& node) {
    if (op.kind != ElementwiseKind::squared_difference) return keep(std::move(node));
    const auto difference =
        step(node, "difference", Elementwise{ElementwiseKind::sub}, node.inputs);
    emit(node, "square", Elementwise{ElementwiseKind::mul}, {difference, difference},
         node.outputs[0]);
    return {};
  }

  Status write_out(const Gemm& op, Node& node) {
    // Copies: adding tensors moves the others.
    const auto a = graph_.tensor(node.inputs[0]).shape;
    const auto b = graph_.tensor(node.inputs[1]).shape;
    const auto y = graph_.tensor(node.outputs[0]).shape;
    if (!a || !b) return keep(std::move(node));
    const auto depth = op.trans_b ? (*b)[1] : (*b)[0];
    const bool is_matrix = a->size() == 2 && (op.trans_a || (*a)[1] == depth);
    auto plain = op;
    plain.keep_leading = false;
    node.op = plain;
    if (is_matrix) return keep(std::move(node));
    node.inputs[0] =
        step(node, "rows", Reshape{}, {node.inputs[0], ints(node, "rows_shape", {-1, depth})});
    if (!op.keep_leading || !y) return keep(std::move(node));
    Ints leading = *y;
    leading[0] = -1;
    const auto matrix = fresh(node, "matrix");
    const auto result = std::exchange(node.outputs[0], matrix);
    const Node near{.name = node.name};
    graph_.nodes.push_back(std::move(node));
    emit(near, "leading", Reshape{}, {matrix, ints(near, "leading_shape", leading)}, result);
    return {};
  }

  Status write_out(const MatMul& op, Node& node) {
    const std::array<bool, 2> transposed{op.trans_a, op.trans_b};
    for (std::size_t i = 0; i < 2; ++i) {
      if (!transposed[i]) continue;
      const auto shape = graph_.tensor(node.inputs[i]).shape;
      if (!shape || shape->size() < 2)
        return fail(ErrorCode::unsupported,
                    fmt::format("{}: an operand of unknown shape is transposed", describe(node)));
      Ints perm(shape->size());
      for (std::size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<std::int64_t>(d);
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      node.inputs[i] =
          step(node, i == 0 ? "a_transposed" : "b_transposed", Transpose{perm}, {node.inputs[i]});
    }
    node.op = MatMul{};
    return keep(std::move(node));
  }

  Status write_out(const Softmax& op, Node& node) {
    const auto shape = graph_.tensor(node.inputs[0]).shape;
    if (!op.to_end || !shape || shape->empty()) return keep(std::move(node));
    const auto rank = static_cast<std::int64_t>(shape->size());
    const auto axis = op.axis < 0 ? op.axis + rank : op.axis;
    const bool single = elements({shape->begin() + axis + 1, shape->end()}) == 1;
    const Shape& whole = *shape;
    node.op = Softmax{.axis = single ? axis : 1, .log = op.log};
    if (single) return keep(std::move(node));
    node.inputs[0] = step(node, "flat", Flatten{axis}, {node.inputs[0]});
    const auto result = std::exchange(node.outputs[0], fresh(node, "rows"));
    const Node near{.name = node.name};
    const auto rows = node.outputs[0];
    graph_.nodes.push_back(std::move(node));
    emit(near, "whole", Reshape{}, {rows, ints(near, "whole_shape", whole)}, result);
    return {};
  }

  Status write_out(const Slice& op, Node& node) {
    if (op.squeezed.empty()) return keep(std::move(node));
    const auto axes = op.squeezed;
    const auto cut = fresh(node, "cut", graph_.tensor(node.outputs[0]).dtype);
    const auto result = std::exchange(node.outputs[0], cut);
    const Node near{.name = node.name};
    node.op = Slice{};
    graph_.nodes.push_back(std::move(node));
    emit(near, "squeeze", Squeeze{}, {cut, ints(near, "squeezed_axes", axes)}, result);
    return {};
  }

  Status write_out(const Stack& op, Node& node) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto dtype = graph_.tensor(node.inputs[i]).dtype;
      node.inputs[i] = step(node, fmt::format("part{}", i), Unsqueeze{},
                            {node.inputs[i], ints(node, fmt::format("axis{}", i), {op.axis})});
      graph_.tensor(node.inputs[i]).dtype = dtype;
    }
    // The new axis is counted in the joined tensor, where it is the same one.
    node.op = Concat{op.axis};
    return keep(std::move(node));
  }

  Status write_out(const Unstack& op, Node& node) {
    const Node near{.name = node.name};
    Node split{.name = node.name, .op = Split{op.axis}, .inputs = node.inputs};
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const auto dtype =
          node.outputs[i] == kNoTensor ? DType::f32 : graph_.tensor(node.outputs[i]).dtype;
      split.outputs.push_back(fresh(near, fmt::format("part{}", i), dtype));
    }
    const auto parts = split.outputs;
    graph_.nodes.push_back(std::move(split));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (node.outputs[i] == kNoTensor) continue;
      emit(near, fmt::format("squeeze{}", i), Squeeze{},
           {parts[i], ints(near, fmt::format("axis{}", i), {op.axis})}, node.outputs[i]);
    }
    return {};
  }

  Status write_out(const ChannelShuffle& op, Node& node) {
    const auto shape = graph_.tensor(node.inputs[0]).shape;
    if (!shape || shape->size() != 4)
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: only images are shuffled", describe(node)));
    const Shape& x = *shape;
    const auto apart = step(
        node, "groups", Reshape{},
        {node.inputs[0], ints(node, "groups_shape", {0, op.groups, x[1] / op.groups, x[2], x[3]})});
    const auto swapped = step(node, "swapped", Transpose{{0, 2, 1, 3, 4}}, {apart});
    emit(node, "joined", Reshape{}, {swapped, ints(node, "joined_shape", {0, x[1], x[2], x[3]})},
         node.outputs[0]);
    return {};
  }

  Status write_out(const ArgExtreme& op, Node& node) {
    if (op.index_type == DType::i64) return keep(std::move(node));
    auto wide = op;
    wide.index_type = DType::i64;
    node.op = wide;
    return keep_narrowed(std::move(node), 0, op.index_type);
  }

  Status write_out(const ShapeOf& op, Node& node) {
    if (op.index_type == DType::i64) return keep(std::move(node));
    auto wide = op;
    wide.index_type = DType::i64;
    node.op = wide;
    return keep_narrowed(std::move(node), 0, op.index_type);
  }

  Status write_out(const TopK&, Node& node) {
    if (node.outputs.size() < 2 || node.outputs[1] == kNoTensor ||
        graph_.tensor(node.outputs[1]).dtype != DType::i32) {
      return keep(std::move(node));
    }
    return keep_narrowed(std::move(node), 1, DType::i32);
  }

  /// ONNX's indices have 64 bits.
  Status keep_narrowed(Node node, std::size_t output, DType wanted) {
    const auto wide = fresh(node, "indices", DType::i64);
    const auto result = std::exchange(node.outputs[output], wide);
    const Node near{.name = node.name};
    graph_.nodes.push_back(std::move(node));
    emit(near, "narrow", Cast{wanted}, {wide}, result);
    return {};
  }

  Status write_out(const MultiHeadAttention& op, Node& node) {
    const auto q = graph_.tensor(node.inputs[0]).shape;
    const auto weights = graph_.tensor(node.inputs[3]).shape;
    if (!q || !weights)
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: operands of unknown shape", describe(node)));
    const bool batched = q->size() == 3;
    const auto width = weights->front();
    const auto size = width / op.heads;
    const auto project = [&](std::string_view role, TensorId x, std::size_t w) {
      const auto turned =
          step(node, fmt::format("{}_weight", role), Transpose{{1, 0}}, {node.inputs[w]});
      const auto product = step(node, fmt::format("{}_product", role), MatMul{}, {x, turned});
      return step(node, fmt::format("{}_sum", role), Elementwise{ElementwiseKind::add},
                  {product, node.inputs[w + 1]});
    };
    const auto split_heads = [&](std::string_view role, TensorId x, const Ints& perm) {
      const auto rows = batched ? Ints{0, 0, op.heads, size} : Ints{1, -1, op.heads, size};
      const auto apart = step(node, fmt::format("{}_heads", role), Reshape{},
                              {x, ints(node, fmt::format("{}_shape", role), rows)});
      return step(node, fmt::format("{}_turned", role), Transpose{perm}, {apart});
    };
    const auto query = split_heads("q", project("q", node.inputs[0], 3), {0, 2, 1, 3});
    const auto key = split_heads("k", project("k", node.inputs[1], 5), {0, 2, 3, 1});
    const auto value = split_heads("v", project("v", node.inputs[2], 7), {0, 2, 1, 3});
    const auto scores = step(node, "scores", MatMul{}, {query, key});
    const auto factor = scalar(node, "factor", 1 / std::sqrt(static_cast<float>(size)));
    const auto scaled = step(node, "scaled", Elementwise{ElementwiseKind::mul}, {scores, factor});
    const auto shares = step(node, "shares", Softmax{}, {scaled});
    const auto mixed = step(node, "mixed", MatMul{}, {shares, value});
    const auto turned = step(node, "turned", Transpose{{0, 2, 1, 3}}, {mixed});
    const auto joined =
        step(node, "joined", Reshape{},
             {turned, ints(node, "joined_shape", batched ? Ints{0, 0, width} : Ints{-1, width})});
    emit(node, "out", Identity{}, {project("out", joined, 9)}, node.outputs[0]);
    return {};
  }

  // --- Names ---

  void make_names_unique() {
    std::unordered_set<std::string> used;
    // Inputs and outputs are what users refer to: they keep theirs.
    std::vector<bool> fixed(graph_.tensors.size());
    for (const auto* ids : {&graph_.inputs, &graph_.outputs}) {
      for (const auto id : *ids) {
        const auto t = static_cast<std::size_t>(id);
        if (!graph_.tensors[t].name.empty() && used.insert(graph_.tensors[t].name).second)
          fixed[t] = true;
      }
    }
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      if (fixed[t]) continue;
      auto& name = graph_.tensors[t].name;
      const auto base = name.empty() ? std::string("tensor") : name;
      if (name.empty()) name = base;
      for (int i = 1; !used.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
    }
  }

  Graph graph_;
  std::unordered_map<TensorId, TensorId> real_;
  std::vector<Node> late_;
};

}  // namespace

Result<Graph> lower(Graph graph) {
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), is_image_last)) {
    FLEETFIT_TRY(convert_layout(graph, Layout::nchw));
  }
  return Lowering(std::move(graph)).run();
}

}  // namespace fleetfit::graph::onnx_format
