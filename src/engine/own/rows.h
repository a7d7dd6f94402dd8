#pragma once

#include <array>
#include <cstdint>

#include "fleetfit/graph/operators.h"

/// The innermost loops of our kernels: functions of rows of numbers, made of vector instructions.
namespace fleetfit::engine::own {

/// In place or not.
void activate_row(const graph::Activation& activation, const float* x, float* out,
                  std::int64_t count);

void unary_row(graph::UnaryKind kind, const float* x, float* out, std::int64_t count);

/// An operand of functions of two: neighbours in a row are `step` apart and rows `row_step`; 0
/// repeats. The result's rows lie one behind the other.
template <class T>
struct RowsOf {
  const T* data;
  std::int64_t step;
  std::int64_t row_step;
};
using FloatRows = RowsOf<float>;
struct Extents {
  std::int64_t rows;
  std::int64_t count;
};
bool has_fast_combination(graph::ElementwiseKind kind);
void combine_rows(graph::ElementwiseKind kind, const FloatRows& a, const FloatRows& b, float* out,
                  const Extents& extents);
/// What is below zero times its slope.
void slope_rows(const FloatRows& x, const FloatRows& slopes, float* out, const Extents& extents);

/// A comparison or a logical function.
void compare_rows(graph::ElementwiseKind kind, const FloatRows& a, const FloatRows& b,
                  std::uint8_t* out, const Extents& extents);

/// Whole numbers that stand for real ones: real = scale * (stored - zero_point).
struct Scale {
  float scale = 1;
  std::int32_t zero_point = 0;
  bool is_signed = false;  ///< i8, else u8
};
void dequantize_row(const Scale& scale, const std::uint8_t* bytes, float* out, std::int64_t count);
/// To the nearest, ties to even, and to the type's bounds beyond them.
void quantize_row(const Scale& scale, const float* reals, std::uint8_t* out, std::int64_t count);
/// From one scale to another at once.
void requantize_row(const Scale& from, const std::uint8_t* bytes, const Scale& to,
                    std::uint8_t* out, std::int64_t count);

/// What each byte becomes.
using ByteTable = std::array<std::uint8_t, 256>;
/// out[i] = table[in[i]]. `in` and `out` may be the same.
void look_up(const ByteTable& table, const std::uint8_t* in, std::uint8_t* out, std::int64_t count);

// --- Sums and the like over a row.
float sum_of_row(const float* x, std::int64_t count);
/// Passes over what is no number.
float max_of_row(const float* x, std::int64_t count);
/// Sum of (x - center)^2.
float squares_of_row(const float* x, float center, std::int64_t count);
/// Gives e^(x - highest) and their sum.
float exponentials_of_row(const float* x, float highest, float* out, std::int64_t count);

/// What a reduction without its last step (a mean's division, a root, a logarithm) gives. Not for
/// log_sum_exp.
float reduce_row(graph::ReduceKind kind, const float* x, std::int64_t count);
/// The same, element by element, over rows: starts with the first, then takes in one row after
/// another.
void start_reduction(graph::ReduceKind kind, const float* x, float* out, std::int64_t count);
void continue_reduction(graph::ReduceKind kind, const float* x, float* out, std::int64_t count);

// --- Rows from rows; `out` may be one of the others.
void scale_row(const float* x, float factor, float* out, std::int64_t count);
/// out = (x - shift) * factor
void normalize_row(const float* x, float shift, float factor, float* out, std::int64_t count);
/// out = x * factors + offsets, element by element; `offsets` may be null.
void affine_row(const float* x, const float* factors, const float* offsets, float* out,
                std::int64_t count);
/// out = x * factor + offset
void affine_row(const float* x, float factor, float offset, float* out, std::int64_t count);
/// sums += factor * x
void add_scaled_row(const float* x, float factor, float* sums, std::int64_t count);
/// sums += a * b
void add_product_row(const float* a, const float* b, float* sums, std::int64_t count);
/// out = wa * a + wb * b
void blend_rows(const float* a, float wa, const float* b, float wb, float* out, std::int64_t count);
void max_rows(const float* x, float* best, std::int64_t count);
/// sums += x^2
void add_squares_row(const float* x, float* sums, std::int64_t count);
/// out = x / (bias + alpha * squares)^beta
struct Response {
  float bias;
  float alpha;
  float beta;
};
void response_row(const Response& response, const float* x, const float* squares, float* out,
                  std::int64_t count);

/// Softmax, or its logarithm, along columns: `width` of them, at most kMostColumns, whose elements
/// are `stride` apart.
inline constexpr std::int64_t kMostColumns = 64;
struct Columns {
  std::int64_t extent;
  std::int64_t stride;
  std::int64_t width;
};
void softmax_columns(const Columns& columns, const float* x, float* out);
void log_softmax_columns(const Columns& columns, const float* x, float* out);

}  // namespace fleetfit::engine::own
