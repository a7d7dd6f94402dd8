#include <fmt/format.h>

#include <array>
#include <cmath>

#include "graph/operators/family.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace tflite;

Outcomes infer(const Gemm& op, const Operands& in) {
  const auto* a = in.shape(0);
  const auto* b = in.shape(1);
  if (a == nullptr || b == nullptr) return open(in.dtype(0));
  if (b->size() != 2) return misfit("B is {}, not a matrix", to_string(*b));
  const auto depth = op.trans_b ? (*b)[1] : (*b)[0];
  const auto columns = op.trans_b ? (*b)[0] : (*b)[1];
  if (op.trans_a && a->size() != 2) return misfit("A is {}, not a matrix", to_string(*a));

  const auto count = elements(*a);
  if (a->size() == 2) {
    const auto inner = op.trans_a ? (*a)[0] : (*a)[1];
    if (inner != depth && (op.trans_a || op.keep_leading || depth == 0 || count % depth != 0)) {
      return misfit("A is {} and B is {}", to_string(*a), to_string(*b));
    }
  }
  if (depth == 0 || count % depth != 0)
    return misfit("A is {} and B is {}", to_string(*a), to_string(*b));
  Shape shape{count / depth, columns};
  if (op.keep_leading) {
    if (a->empty() || a->back() != depth)
      return misfit("A is {} and B is {}", to_string(*a), to_string(*b));
    shape = *a;
    shape.back() = columns;
  }
  if (const auto* c = in.shape(2)) {
    FLEETFIT_ASSIGN(const auto sum, broadcast(shape, *c));
    if (sum != shape) return misfit("C is {} and the product {}", to_string(*c), to_string(shape));
  }
  return one(in.dtype(0), shape);
}

Outcomes infer(const MatMul& op, const Operands& in) {
  if (in.shape(0) == nullptr || in.shape(1) == nullptr) return open(in.dtype(0));
  Shape a = *in.shape(0);
  Shape b = *in.shape(1);
  if (a.empty() || b.empty()) return misfit("a scalar has no matrix product");
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  if ((row && op.trans_a) || (column && op.trans_b)) return misfit("a vector cannot be transposed");
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (op.trans_a) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (op.trans_b) std::swap(b[b.size() - 1], b[b.size() - 2]);
  if (a.back() != b[b.size() - 2]) {
    return misfit("operands are {} and {}", to_string(*in.shape(0)), to_string(*in.shape(1)));
  }
  const auto rows = a[a.size() - 2];
  const auto columns = b.back();
  FLEETFIT_ASSIGN(auto shape, broadcast({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2}));
  if (!row) shape.push_back(rows);
  if (!column) shape.push_back(columns);
  return one(in.dtype(0), shape);
}

Outcomes infer(const MultiHeadAttention& op, const Operands& in) {
  const auto* q = in.shape(0);
  if (q == nullptr || in.shape(9) == nullptr) return open(in.dtype(0));
  for (std::size_t i = 0; i < 3; ++i) {
    const auto* x = in.shape(i);
    const auto* weights = in.shape(3 + 2 * i);
    if (x == nullptr || weights == nullptr) return open(in.dtype(0));
    if (x->size() < 2 || x->size() > 3 || weights->size() != 2)
      return misfit("operand {} is {}", i, to_string(*x));
    if (x->back() != weights->back())
      return misfit("operand {} is {}, its weights {}", i, to_string(*x), to_string(*weights));
  }
  const auto width = in.shape(3)->front();
  if (op.heads < 1 || width % op.heads != 0)
    return misfit("{} heads for {} features", op.heads, width);
  if (in.shape(1)->size() != q->size() || in.shape(2)->size() != q->size() ||
      (*in.shape(1))[q->size() - 2] != (*in.shape(2))[q->size() - 2]) {
    return misfit("keys {} and values {} do not go together", to_string(*in.shape(1)),
                  to_string(*in.shape(2)));
  }
  auto shape = *q;
  shape.back() = in.shape(9)->front();
  return one(in.dtype(0), shape);
}

void link(const Gemm& op, ChannelLinks& links) {
  const std::size_t k = op.trans_b ? 1 : 0;
  const std::size_t last = links.rank(links.in(0)) - 1;
  const bool fits = !op.trans_a && links.rank(links.in(0)) == links.rank(links.out()) &&
                    links.rank(links.in(1)) == 2 &&
                    links.extent(links.in(0), last) == links.extent(links.in(1), k);
  if (!fits) return links.pin_node();
  for (std::size_t a = 0; a < last; ++a) links.same(links.in(0), a, links.out(), a);
  links.same(links.in(0), last, links.in(1), k);
  links.same(links.out(), last, links.in(1), 1 - k);
  if (links.has(2)) links.broadcast(links.in(2));
}

void link(const MatMul& op, ChannelLinks& links) {
  const std::size_t a_rank = links.rank(links.in(0));
  const std::size_t b_rank = links.rank(links.in(1));
  if (a_rank < 2 || b_rank < 2) return links.pin_node();
  const std::size_t out_rank = links.rank(links.out());
  const std::size_t a_rows = a_rank - (op.trans_a ? 1 : 2);
  const std::size_t a_columns = a_rank - (op.trans_a ? 2 : 1);
  const std::size_t b_rows = b_rank - (op.trans_b ? 1 : 2);
  const std::size_t b_columns = b_rank - (op.trans_b ? 2 : 1);
  links.same(links.in(0), a_columns, links.in(1), b_rows);
  links.same(links.in(0), a_rows, links.out(), out_rank - 2);
  links.same(links.in(1), b_columns, links.out(), out_rank - 1);
  for (std::size_t a = 0; a + 2 < a_rank; ++a)
    links.same_or_one(links.in(0), a, a + out_rank - a_rank);
  for (std::size_t b = 0; b + 2 < b_rank; ++b)
    links.same_or_one(links.in(1), b, b + out_rank - b_rank);
}

Count products(const Gemm& op, const Graph& graph, const Node& node) {
  const auto& b = input_shape(graph, node, 1);
  return product({elements(output_shape(graph, node)), op.trans_b ? b[1] : b[0]});
}

Count products(const MatMul& op, const Graph& graph, const Node& node) {
  const auto& a = input_shape(graph, node, 0);
  const auto depth = op.trans_a && a.size() > 1 ? a[a.size() - 2] : a.back();
  return product({elements(output_shape(graph, node)), depth});
}

Count products(const MultiHeadAttention&, const Graph& graph, const Node& node) {
  const auto in = [&](std::size_t i) -> const Shape& { return input_shape(graph, node, i); };
  const auto& q = in(0);
  const auto queries = q[q.size() - 2];
  const auto keys = in(1)[q.size() - 2];
  const auto batch = q.size() == 3 ? q[0] : 1;
  return sum({product({elements(q), in(3).front()}), product({elements(in(1)), in(5).front()}),
              product({elements(in(2)), in(7).front()}),
              product({batch, queries, keys, in(3).front()}),
              product({batch, queries, keys, in(7).front()}),
              product({elements(output_shape(graph, node)), in(9).back()})});
}

bool has_row_bias(const Graph& graph, const Node& node, std::int64_t columns) {
  if (node.inputs.size() < 3 || node.inputs[2] == kNoTensor) return true;
  const auto& shape = graph.tensor(node.inputs[2]).shape;
  return shape && !shape->empty() && shape->back() == columns && elements(*shape) == columns;
}

quantization::Role role_of(const Gemm& op, const Graph& graph, const Node& node) {
  const auto& b = graph.tensor(node.inputs[1]).shape;
  const bool is_layer = op.alpha == 1 && op.beta == 1 && !op.trans_a && !op.keep_leading && b &&
                        b->size() == 2 && has_row_bias(graph, node, (*b)[op.trans_b ? 0 : 1]);
  return is_layer ? quantization::role_of_layer(op, graph, node) : quantization::Role::floats;
}

Status lower_onnx(const Gemm& op, Node& node, Lowering& out) {
  // Copies: adding tensors moves the others.
  const auto a = out.tensor(node.inputs[0]).shape;
  const auto b = out.tensor(node.inputs[1]).shape;
  const auto y = out.tensor(node.outputs[0]).shape;
  if (!a || !b) return out.keep(std::move(node));
  const auto depth = op.trans_b ? (*b)[1] : (*b)[0];
  const bool is_matrix = a->size() == 2 && (op.trans_a || (*a)[1] == depth);
  auto plain = op;
  plain.keep_leading = false;
  node.op = plain;
  if (is_matrix) return out.keep(std::move(node));
  node.inputs[0] = out.step(node, "rows", Reshape{},
                            {node.inputs[0], out.ints(node, "rows_shape", {-1, depth})});
  if (!op.keep_leading || !y) return out.keep(std::move(node));
  Ints leading = *y;
  leading[0] = -1;
  const auto matrix = out.fresh(node, "matrix");
  const auto result = std::exchange(node.outputs[0], matrix);
  const Node near{.name = node.name};
  FLEETFIT_TRY(out.keep(std::move(node)));
  out.emit(near, "leading", Reshape{}, {matrix, out.ints(near, "leading_shape", leading)}, result);
  return {};
}

Status lower_onnx(const MatMul& op, Node& node, Lowering& out) {
  const std::array<bool, 2> transposed{op.trans_a, op.trans_b};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!transposed[i]) continue;
    const auto shape = out.tensor(node.inputs[i]).shape;
    if (!shape || shape->size() < 2)
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: an operand of unknown shape is transposed", describe(node)));
    Ints perm(shape->size());
    for (std::size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<std::int64_t>(d);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    node.inputs[i] =
        out.step(node, i == 0 ? "a_transposed" : "b_transposed", Transpose{perm}, {node.inputs[i]});
  }
  node.op = MatMul{};
  return out.keep(std::move(node));
}

Status lower_onnx(const MultiHeadAttention& op, Node& node, Lowering& out) {
  const auto q = out.tensor(node.inputs[0]).shape;
  const auto weights = out.tensor(node.inputs[3]).shape;
  if (!q || !weights)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: operands of unknown shape", describe(node)));
  const bool batched = q->size() == 3;
  const auto width = weights->front();
  const auto size = width / op.heads;
  const auto project = [&](std::string_view role, TensorId x, std::size_t w) {
    const auto turned =
        out.step(node, fmt::format("{}_weight", role), Transpose{{1, 0}}, {node.inputs[w]});
    const auto product = out.step(node, fmt::format("{}_product", role), MatMul{}, {x, turned});
    return out.step(node, fmt::format("{}_sum", role), Elementwise{ElementwiseKind::add},
                    {product, node.inputs[w + 1]});
  };
  const auto split_heads = [&](std::string_view role, TensorId x, const Ints& perm) {
    const auto rows = batched ? Ints{0, 0, op.heads, size} : Ints{1, -1, op.heads, size};
    const auto apart = out.step(node, fmt::format("{}_heads", role), Reshape{},
                                {x, out.ints(node, fmt::format("{}_shape", role), rows)});
    return out.step(node, fmt::format("{}_turned", role), Transpose{perm}, {apart});
  };
  const auto query = split_heads("q", project("q", node.inputs[0], 3), {0, 2, 1, 3});
  const auto key = split_heads("k", project("k", node.inputs[1], 5), {0, 2, 3, 1});
  const auto value = split_heads("v", project("v", node.inputs[2], 7), {0, 2, 1, 3});
  const auto scores = out.step(node, "scores", MatMul{}, {query, key});
  const auto factor = out.scalar(node, "factor", 1 / std::sqrt(static_cast<float>(size)));
  const auto scaled = out.step(node, "scaled", Elementwise{ElementwiseKind::mul}, {scores, factor});
  const auto shares = out.step(node, "shares", Softmax{}, {scaled});
  const auto mixed = out.step(node, "mixed", MatMul{}, {shares, value});
  const auto turned = out.step(node, "turned", Transpose{{0, 2, 1, 3}}, {mixed});
  const auto joined = out.step(
      node, "joined", Reshape{},
      {turned, out.ints(node, "joined_shape", batched ? Ints{0, 0, width} : Ints{-1, width})});
  out.emit(node, "out", Identity{}, {project("out", joined, 9)}, node.outputs[0]);
  return {};
}

Result<Converted> convert_fully_connected(Conversion& c) {
  const auto options = c.options("FullyConnectedOptions");
  const auto activation = fused(options);
  if (!activation) return not_known(std::string(kUnknownActivation));
  if (options && options.name("weights_format") != "DEFAULT")
    return not_known("its weights are shuffled");
  const bool keep_leading = options.flag("keep_num_dims");
  return Converted{.op = Gemm{.trans_b = true, .keep_leading = keep_leading},
                   .inputs = with_optional({c.input(0), c.input(1)}, c.input(2)),
                   .activation = *activation};
}

Result<Converted> convert_batch_matmul(Conversion& c) {
  const auto options = c.options("BatchMatMulOptions");
  return Converted{.op = MatMul{.trans_a = options.flag("adj_x"), .trans_b = options.flag("adj_y")},
                   .inputs = c.inputs};
}

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<Gemm>(
        {.number = 3,
         .name = "Gemm",
         .arity = {2, 3},
         .is_layer = true,
         .trained = {0, 1, 2},
         .kernel_kind = "fully_connected",
         .onnx = {attribute<&Gemm::alpha>("alpha"), attribute<&Gemm::beta>("beta"),
                  attribute<&Gemm::trans_a>("transA"), attribute<&Gemm::trans_b>("transB")}}),
    describe<MatMul>({.number = 4,
                      .name = "MatMul",
                      .arity = {2, 2},
                      .is_layer = true,
                      .quantized = quantization::Role::computes,
                      .trained = {0, 1},
                      .kernel_kind = "fully_connected"}),
    describe<MultiHeadAttention>({.number = 5,
                                  .name = "MultiHeadAttention",
                                  .arity = {11, 11},
                                  .trained = {3, 4, 5, 6, 7, 8, 9, 10},
                                  .kernel_kind = "matmul",
                                  .outside_onnx = true}),
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"FULLY_CONNECTED", convert_fully_connected, {2, 3}},
    {"BATCH_MATMUL", convert_batch_matmul, {2, 2}},
});

}  // namespace

OperatorFamily matrix_family() { return {.operators = kOperators, .tflite = kTflite}; }

}  // namespace fleetfit::graph
