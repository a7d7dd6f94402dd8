#include "engine/own/product.h"

#include <algorithm>
#include <cstring>

#include "engine/own/own.h"
#include "fleetfit/core/vectorize.h"

namespace fleetfit::engine::own {
namespace {

constexpr std::int64_t kWidth = 16;       // columns of a panel of the packed matrix
constexpr std::int64_t kRows = 6;         // rows that are worked on at a time
constexpr std::int64_t kRowsOfPart = 96;  // rows of a part of the work

/// As many floats as the largest vector has; the compiler splits it where vectors are smaller.
using Lanes = float __attribute__((vector_size(kWidth * sizeof(float))));

struct Tile {
  const float* a;
  std::int64_t row_step;
  std::int64_t depth_step;
  std::int64_t depth;
  const float* panel;
  float alpha;
  const float* bias;
  float* out;
  std::int64_t out_step;
  std::int64_t width;
};

template <int rows>
FLEETFIT_INLINE void multiply_tile(const Tile& t) {
  Lanes sums[rows] = {};
  const float* a = t.a;
  for (std::int64_t k = 0; k < t.depth; ++k) {
    Lanes b;
    std::memcpy(&b, t.panel + k * kWidth, sizeof(b));
    for (int r = 0; r < rows; ++r) sums[r] += a[r * t.row_step] * b;
    a += t.depth_step;
  }
  Lanes bias = {};
  const auto bytes = static_cast<std::size_t>(t.width) * sizeof(float);
  if (t.bias != nullptr) std::memcpy(&bias, t.bias, bytes);
  for (int r = 0; r < rows; ++r) {
    const Lanes result = sums[r] * t.alpha + bias;
    std::memcpy(t.out + r * t.out_step, &result, bytes);
  }
}

FLEETFIT_VECTORIZE void multiply_rows(const Tile& tile, std::int64_t rows) {
  Tile t = tile;
  for (; rows >= kRows; rows -= kRows) {
    multiply_tile<kRows>(t);
    t.a += kRows * t.row_step;
    t.out += kRows * t.out_step;
  }
  for (; rows > 0; --rows) {
    multiply_tile<1>(t);
    t.a += t.row_step;
    t.out += t.out_step;
  }
}

}  // namespace

std::int64_t packed_floats(std::int64_t depth, std::int64_t columns) {
  return depth * ((columns + kWidth - 1) / kWidth * kWidth);
}

void pack(const MatrixView& b, std::int64_t depth, std::int64_t columns, float* packed) {
  const std::int64_t panels = (columns + kWidth - 1) / kWidth;
  parallel_each(panels, depth * kWidth, [&](std::int64_t panel) {
    const std::int64_t width = std::min(kWidth, columns - panel * kWidth);
    const float* from = b.data + panel * kWidth * b.column_step;
    float* to = packed + panel * depth * kWidth;
    for (std::int64_t k = 0; k < depth; ++k, to += kWidth) {
      for (std::int64_t j = 0; j < width; ++j) {
        to[j] = from[k * b.row_step + j * b.column_step];
      }
      std::fill(to + width, to + kWidth, 0.0F);
    }
  });
}

void multiply(const Product& product, const MatrixView& a, const float* packed_b, float* out,
              std::int64_t out_step) {
  const std::int64_t panels = (product.columns + kWidth - 1) / kWidth;
  const std::int64_t row_parts = (product.rows + kRowsOfPart - 1) / kRowsOfPart;
  const std::int64_t cost = std::min(product.rows, kRowsOfPart) * product.depth;
  parallel_each(panels * row_parts, cost, [&](std::int64_t i) {
    const std::int64_t panel = i % panels;
    const std::int64_t row = i / panels * kRowsOfPart;
    const std::int64_t column = panel * kWidth;
    const Tile tile{.a = a.data + row * a.row_step,
                    .row_step = a.row_step,
                    .depth_step = a.column_step,
                    .depth = product.depth,
                    .panel = packed_b + column * product.depth,
                    .alpha = product.alpha,
                    .bias = product.bias == nullptr ? nullptr : product.bias + column,
                    .out = out + row * out_step + column,
                    .out_step = out_step,
                    .width = std::min(kWidth, product.columns - column)};
    multiply_rows(tile, std::min(kRowsOfPart, product.rows - row));
  });
}

}  // namespace fleetfit::engine::own
