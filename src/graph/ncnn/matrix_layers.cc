#include <fmt/format.h>

#include <array>
#include <cmath>

#include "graph/ncnn/layers.h"

namespace fleetfit::graph::ncnn {
namespace {

// --- InnerProduct

/// ncnn multiplies every row of a matrix if the rows fit the weights; anything else is one vector.
bool is_rows(const Conversion& c, const Blob& blob, std::int64_t inputs) {
  const auto extents = c.extents(blob);
  return blob.dims == 2 && extents.size() == 2 && extents[1] == inputs && extents[0] > 1;
}

void inner_product(Conversion& c) {
  auto& p = c.params();
  const auto outputs = p.integer({.id = 0, .name = "num_output", .fallback = 1, .low = 1});
  const auto size = p.integer({.id = 2, .name = "weight_data_size", .fallback = 1, .low = 1});
  if (!p.has(0) || !p.has(2)) return c.fail("parameter 0 or 2 is missing");
  const auto inputs = size / outputs;
  if (inputs * outputs != size || inputs < 1)
    return c.fail(
        fmt::format("{} weights (parameter 2) cannot be parted over {} outputs", size, outputs));
  const auto blob = c.blob(0);
  const bool rows = is_rows(c, blob, inputs);
  const auto x =
      rows || blob.dims == 1 ? c.flat(blob) : c.add(Flatten{.axis = 1}, {blob.tensor}, "flatten");
  if (c.failed()) return;
  const auto& shape = c.writer().graph().tensor(x).shape;
  if (shape && shape->back() != inputs) {
    return c.fail(
        fmt::format("its input has {} elements and its weights are for {}", shape->back(), inputs));
  }
  std::vector<TensorId> operands{x, c.weights({.role = "weight",
                                               .shape = {outputs, inputs},
                                               .fan_in = inputs,
                                               .is_int8 = p.flag(8, "int8_scale_term")})};
  if (p.flag(1, "bias_term")) operands.push_back(c.filled("bias", {outputs}, 0));
  const auto y = c.add(Gemm{.trans_b = true, .keep_leading = rows}, std::move(operands));
  c.output(0, fused_activation(c, y));
}

// --- Gemm: (A * B + beta * C) * alpha, each operand a blob or a constant

struct GemmSpec {
  float alpha = 1;
  float beta = 1;
  bool trans_a = false;
  bool trans_b = false;
  bool constant_a = false;
  bool constant_b = false;
  bool constant_c = false;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t c_kind = 0;
  bool is_int8 = false;
};

GemmSpec read_gemm(Conversion& c) {
  auto& p = c.params();
  return {
      .alpha = p.number(0, "alpha", 1),
      .beta = p.number(1, "beta", 1),
      .trans_a = p.flag(2, "transA"),
      .trans_b = p.flag(3, "transB"),
      .constant_a = p.flag(4, "constantA"),
      .constant_b = p.flag(5, "constantB"),
      .constant_c = p.flag(6, "constantC"),
      .m = p.integer({.id = 7, .name = "constantM"}),
      .n = p.integer({.id = 8, .name = "constantN"}),
      .k = p.integer({.id = 9, .name = "constantK"}),
      .c_kind = p.integer({.id = 10, .name = "constant_broadcast_type_C", .low = -1, .high = 4}),
      .is_int8 = p.flag(18, "int8_scale_term")};
}

TensorId constant_operand(Conversion& c, const GemmSpec& spec, std::string_view role,
                          const Shape& shape) {
  return c.weights({.role = role,
                    .shape = shape,
                    .fan_in = spec.k,
                    .is_int8 = spec.is_int8,
                    .channel_axis = shape[0] == spec.k ? 1 : 0});
}

TensorId constant_c(Conversion& c, const GemmSpec& spec) {
  const std::array<Shape, 5> shapes = {Shape{1}, Shape{spec.m, 1}, Shape{spec.m, 1},
                                       Shape{spec.m, spec.n}, Shape{spec.n}};
  return c.filled("C", shapes[static_cast<std::size_t>(spec.c_kind)], 0);
}

/// A blob as a matrix; ncnn reads one of a single dimension as a row, and of C x 1 x W as C x W.
TensorId matrix(Conversion& c, std::size_t i, std::string_view role) {
  const auto blob = c.blob(i);
  if (blob.dims == 1)
    return c.add(Unsqueeze{}, {c.flat(blob), c.ints(fmt::format("{}_axes", role), {1})}, role);
  if (blob.dims == 3)
    return c.add(Squeeze{}, {blob.tensor, c.ints(fmt::format("{}_axes", role), {2})}, role);
  return blob.tensor;
}

/// The product of a blob and constant weights: a dense layer.
TensorId dense(Conversion& c, const GemmSpec& spec, TensorId addend) {
  auto a = matrix(c, 0, "A_matrix");
  if (spec.trans_a) a = c.add(Transpose{.perm = {0, 2, 1}}, {a}, "A_transpose");
  const auto shape = spec.trans_b ? Shape{spec.n, spec.k} : Shape{spec.k, spec.n};
  std::vector<TensorId> inputs{a, constant_operand(c, spec, "B", shape)};
  if (addend != kNoTensor) inputs.push_back(addend);
  return c.add(Gemm{.alpha = spec.alpha,
                    .beta = spec.beta * spec.alpha,
                    .trans_b = spec.trans_b,
                    .keep_leading = true},
               std::move(inputs));
}

TensorId scaled(Conversion& c, TensorId x, float factor, std::string_view role) {
  if (factor == 1) return x;
  return c.add(Elementwise{.kind = ElementwiseKind::mul},
               {x, c.scalar(fmt::format("{}_factor", role), factor)}, role);
}

TensorId product(Conversion& c, const GemmSpec& spec, TensorId addend) {
  std::size_t next = 0;
  const auto a = spec.constant_a ? constant_operand(
                                       c, spec, "A",
                                       spec.trans_a ? Shape{spec.k, spec.m} : Shape{spec.m, spec.k})
                                 : matrix(c, next++, "A_matrix");
  const auto b = spec.constant_b ? constant_operand(
                                       c, spec, "B",
                                       spec.trans_b ? Shape{spec.n, spec.k} : Shape{spec.k, spec.n})
                                 : matrix(c, next++, "B_matrix");
  auto y = c.add(MatMul{.trans_a = spec.trans_a, .trans_b = spec.trans_b}, {a, b});
  if (addend != kNoTensor) {
    y = c.add(Elementwise{.kind = ElementwiseKind::add},
              {y, scaled(c, addend, spec.beta, "C_scaled")}, "add");
  }
  return scaled(c, y, spec.alpha, "scale");
}

void gemm(Conversion& c) {
  const auto spec = read_gemm(c);
  if ((spec.constant_a && (spec.m < 1 || spec.k < 1)) ||
      (spec.constant_b && (spec.n < 1 || spec.k < 1)))
    return c.fail("the extents of its constants (parameters 7 to 9) are missing");
  const std::size_t blobs = (spec.constant_a ? 0U : 1U) + (spec.constant_b ? 0U : 1U);
  auto addend = kNoTensor;
  if (spec.constant_c && spec.c_kind >= 0) addend = constant_c(c, spec);
  if (!spec.constant_c && c.input_count() > blobs) addend = c.flat(blobs);

  auto y = !spec.constant_a && spec.constant_b ? dense(c, spec, addend) : product(c, spec, addend);
  if (c.params().flag(14, "output_transpose"))
    y = c.add(Transpose{.perm = {0, 2, 1}}, {y}, "transpose");
  if (c.params().flag(11, "output_N1M"))
    y = c.add(Unsqueeze{}, {y, c.ints("output_axes", {2})}, "output");
  c.output(0, y);
}

void matmul(Conversion& c) {
  const auto a = c.flat(0);
  const auto b = c.flat(1);
  c.output(0, c.add(MatMul{.trans_b = c.params().flag(0, "transB")}, {a, b}));
}

// --- MultiHeadAttention

struct Projection {
  std::string_view weight;
  std::string_view bias;
  std::int64_t out = 0;
  std::int64_t in = 0;
};

void multi_head_attention(Conversion& c) {
  auto& p = c.params();
  const auto features = p.integer({.id = 0, .name = "embed_dim", .fallback = 1, .low = 1});
  const auto heads = p.integer({.id = 1, .name = "num_heads", .fallback = 1, .low = 1});
  const auto size = p.integer({.id = 2, .name = "weight_data_size", .fallback = 1, .low = 1});
  const auto key = p.integer({.id = 3, .name = "kdim", .fallback = features, .low = 1});
  const auto value = p.integer({.id = 4, .name = "vdim", .fallback = features, .low = 1});
  const auto query = size / features;
  if (query * features != size || features % heads != 0)
    return c.fail(
        fmt::format("{} weights and {} heads do not fit {} features", size, heads, features));
  const auto per_head = features / heads;
  const auto usual = 1 / std::sqrt(static_cast<float>(per_head));
  if (p.flag(5, "attn_mask")) return c.unknown("attention with a mask is not supported");
  if (std::abs(p.number(6, "scale", usual) - usual) > 1e-4F * usual)
    return c.unknown("attention with a scale of its own is not supported");
  if (c.input_count() == 0) return c.fail("it has no input");

  std::vector<TensorId> inputs;
  for (std::size_t i = 0; i < 3; ++i) inputs.push_back(c.flat(std::min(i, c.input_count() - 1)));
  const std::array<Projection, 4> projections = {{{"q_weight", "q_bias", features, query},
                                                  {"k_weight", "k_bias", features, key},
                                                  {"v_weight", "v_bias", features, value},
                                                  {"out_weight", "out_bias", query, features}}};
  for (const auto& projection : projections) {
    inputs.push_back(c.weights({.role = projection.weight,
                                .shape = {projection.out, projection.in},
                                .fan_in = projection.in,
                                .is_int8 = p.flag(18, "int8_scale_term")}));
    inputs.push_back(c.filled(projection.bias, {projection.out}, 0));
  }
  c.output(0, c.add(MultiHeadAttention{.heads = heads}, std::move(inputs)));
}

constexpr std::array<LayerType, 4> kLayers = {{
    {"InnerProduct", inner_product},
    {"Gemm", gemm},
    {"MatMul", matmul},
    {"MultiHeadAttention", multi_head_attention},
}};

}  // namespace

std::span<const LayerType> matrix_layers() { return kLayers; }

}  // namespace fleetfit::graph::ncnn
