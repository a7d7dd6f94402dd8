#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/quantize.h"
#include "fleetfit/graph/shape_inference.h"
#include "graph/passes/channel_affine.h"
#include "graph/passes/constants.h"
#include "graph/passes/rewriter.h"

namespace fleetfit::graph {
namespace {

bool is_quantized(const Graph& graph, const Node& node) {
  return std::holds_alternative<QuantizeLinear>(node.op) ||
         std::holds_alternative<DequantizeLinear>(node.op) ||
         rewrite::touches_quantized(graph, node);
}

/// A constant that is the same for each row: one number for each of `columns`.
bool is_row(const Tensor& tensor, std::int64_t columns) {
  return tensor.is_constant() && tensor.dtype == DType::f32 && !tensor.shape->empty() &&
         tensor.shape->back() == columns && elements(*tensor.shape) == columns;
}

/// A product with constant weights followed by the addition of a constant row is one Gemm, whose
/// bias keeps 32 bits.
Result<bool> join_bias(Graph& graph) {
  rewrite::Rewriter rewriter(graph);
  for (int n = 0; n < rewriter.node_count(); ++n) {
    const auto* add = std::get_if<Elementwise>(&rewriter.node(n).op);
    if (add == nullptr || add->kind != ElementwiseKind::add) continue;
    for (const std::size_t side : {0U, 1U}) {
      const auto product = rewriter.node(n).inputs[side];
      const auto bias = rewriter.node(n).inputs[1 - side];
      const int origin = rewriter.maker_of<MatMul>(product);
      if (origin == rewrite::kNoNode || !rewriter.read_once(product)) continue;
      const auto matmul = std::get<MatMul>(rewriter.node(origin).op);
      const auto& a = graph.tensor(rewriter.node(origin).inputs[0]);
      const auto& b = graph.tensor(rewriter.node(origin).inputs[1]);
      if (matmul.trans_a || rewriter.node(origin).activation || !a.shape || a.shape->size() < 2)
        continue;
      if (!b.is_constant() || b.dtype != DType::f32 || b.shape->size() != 2) continue;
      const auto columns = (*b.shape)[matmul.trans_b ? 0 : 1];
      const auto& row = graph.tensor(bias);
      if (!is_row(row, columns) ||
          !rewrite::same_shape(graph, product, rewriter.node(n).outputs[0]))
        continue;
      const auto vector = graph.add_tensor(
          {.name = row.name, .dtype = DType::f32, .shape = Shape{columns}, .data = row.data});
      auto inputs = rewriter.node(origin).inputs;
      inputs.push_back(vector);
      rewriter.set_inputs(origin, std::move(inputs));
      rewriter.node(origin).op = Gemm{.trans_b = matmul.trans_b, .keep_leading = true};
      rewriter.take_over(origin, n);
      break;
    }
  }
  return rewriter.finish();
}

/// Writes nodes one after the other into a new list, in the form that is quantized best.
class Preparation {
 public:
  explicit Preparation(Graph graph) : graph_(std::move(graph)) {}

  Graph run() {
    for (auto& node : std::exchange(graph_.nodes, {})) separate_activation(std::move(node));
    return std::move(graph_);
  }

 private:
  TensorId fresh(const std::string& near, std::string_view role) {
    return graph_.add_tensor({.name = fmt::format("{}.{}", near, role), .dtype = DType::f32});
  }

  void emit(const std::string& near, std::string_view role, Operator op,
            std::vector<TensorId> inputs, TensorId output) {
    graph_.nodes.push_back({.name = fmt::format("{}.{}", near, role),
                            .op = std::move(op),
                            .inputs = std::move(inputs),
                            .outputs = {output}});
  }

  void separate_activation(Node node) {
    const auto kind = node.activation.kind;
    const bool stays = kind == ActivationKind::none || kind == ActivationKind::relu ||
                       kind == ActivationKind::clip;
    if (stays) return write(std::move(node));
    const auto name = node.name;
    const auto x = fresh(name, "plain");
    graph_.tensor(x).dtype = graph_.tensor(node.outputs[0]).dtype;
    graph_.tensor(x).shape = graph_.tensor(node.outputs[0]).shape;
    const auto y = std::exchange(node.outputs[0], x);
    const auto function = std::exchange(node.activation, Activation{});
    write(std::move(node));
    write({.name = name + ".activation", .op = Activate{function}, .inputs = {x}, .outputs = {y}});
  }

  void write(Node node) {
    const auto* activate = std::get_if<Activate>(&node.op);
    if (activate != nullptr && activate->function.kind == ActivationKind::silu)
      return write_silu(node);
    if (std::holds_alternative<Gemm>(node.op)) return write_gemm(std::move(node));
    if (std::holds_alternative<BatchNorm>(node.op)) return write_batch_norm(std::move(node));
    graph_.nodes.push_back(std::move(node));
  }

  void write_silu(const Node& node) {
    const auto gate = fresh(node.name, "sigmoid");
    graph_.tensor(gate).shape = graph_.tensor(node.inputs[0]).shape;
    emit(node.name, "sigmoid", Activate{kSigmoid}, {node.inputs[0]}, gate);
    graph_.nodes.push_back({.name = node.name,
                            .op = Elementwise{ElementwiseKind::mul},
                            .inputs = {node.inputs[0], gate},
                            .outputs = node.outputs,
                            .activation = node.activation});
  }

  /// A batch norm that no layer could take in is a convolution of each channel with one weight, for
  /// which there are integer kernels.
  void write_batch_norm(Node node) {
    const auto norm = std::get<BatchNorm>(node.op);
    const auto shape = graph_.tensor(node.inputs[0]).shape;
    const auto constants = rewrite::constants_of_batch_norm(graph_, node);
    if (shape && shape->size() > 2 && constants && constants->scale.size_bytes() > 0 &&
        node.outputs.size() == 1) {
      const auto channels = elements(*graph_.tensor(node.inputs[1]).shape);
      const Ints ones(shape->size() - 2, 1);
      const Ints zeros(shape->size() - 2, 0);
      Shape weights(shape->size(), 1);
      weights[0] = channels;
      const Window window{.kernel = ones,
                          .strides = ones,
                          .dilations = ones,
                          .pads_begin = zeros,
                          .pads_end = zeros};
      node.inputs = {node.inputs[0],
                     add_derived(node.name + ".weights", weights, *constants, &Affine::scale),
                     add_derived(node.name + ".bias", {channels}, *constants, &Affine::shift)};
      node.op = Conv{.window = window, .groups = channels, .layout = norm.layout};
    }
    graph_.nodes.push_back(std::move(node));
  }

  using Affine = rewrite::ChannelAffine;

  /// What a batch norm multiplies with or adds, made when somebody asks for it.
  TensorId add_derived(std::string name, Shape shape, const rewrite::BatchNormConstants& constants,
                       std::vector<double> Affine::* part) {
    auto data = TensorData::derive(constants.scale, [constants, part](std::span<std::byte> bytes) {
      const auto affine = constants.affine();
      std::ranges::transform(affine.*part, reinterpret_cast<float*>(bytes.data()),
                             [](double value) { return static_cast<float>(value); });
    });
    return graph_.add_tensor({.name = std::move(name),
                              .dtype = DType::f32,
                              .shape = std::move(shape),
                              .data = std::move(data)});
  }

  /// ONNX's Gemm takes matrices only.
  void write_gemm(Node node) {
    auto& gemm = std::get<Gemm>(node.op);
    const auto a = graph_.tensor(node.inputs[0]).shape;
    const auto b = graph_.tensor(node.inputs[1]).shape;
    const auto y = graph_.tensor(node.outputs[0]).shape;
    if (!a || !b || !y || b->size() != 2 || gemm.trans_a) {
      graph_.nodes.push_back(std::move(node));
      return;
    }
    const auto depth = (*b)[gemm.trans_b ? 1 : 0];
    const auto name = node.name;
    if (a->size() != 2 || (*a)[1] != depth) {
      const auto rows = fresh(name, "rows");
      emit(name, "rows", Reshape{},
           {node.inputs[0], graph_.add_ints(name + ".rows_shape", {-1, depth})}, rows);
      node.inputs[0] = rows;
    }
    gemm.keep_leading = false;
    if (y->size() == 2) {
      graph_.nodes.push_back(std::move(node));
      return;
    }
    Ints leading = *y;
    leading[0] = -1;
    const auto matrix = fresh(name, "matrix");
    const auto result = std::exchange(node.outputs[0], matrix);
    graph_.nodes.push_back(std::move(node));
    emit(name, "leading", Reshape{}, {matrix, graph_.add_ints(name + ".leading_shape", leading)},
         result);
  }

  Graph graph_;
};

}  // namespace

Result<Graph> prepare_for_quantization(Graph float_graph) {
  for (const auto& node : float_graph.nodes) {
    if (is_quantized(float_graph, node))
      return refuse(fmt::format("{}: the network is quantized already", describe(node)));
  }
  FLEETFIT_TRY(simplify(float_graph));
  FLEETFIT_TRY(join_bias(float_graph));
  auto prepared = Preparation(std::move(float_graph)).run();
  FLEETFIT_TRY(infer_shapes(prepared));
  return prepared;
}

}  // namespace fleetfit::graph
