#pragma once

#include <cstdint>

/// Products of matrices of floats, for whatever the libraries do not take.
namespace fleetfit::engine::own {

/// A matrix in memory: element (i, j) is at i * row_step + j * column_step.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t row_step = 0;
  std::int64_t column_step = 1;
};

/// Floats that a packed right-hand side takes.
std::int64_t packed_floats(std::int64_t depth, std::int64_t columns);

/// Lays the right-hand side of a product out in the order in which it is read.
void pack(const MatrixView& b, std::int64_t depth, std::int64_t columns, float* packed);

/// rows x depth times depth x columns.
struct Product {
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  float alpha = 1;              ///< factor of the product
  const float* bias = nullptr;  ///< one for each column, or null
};

/// out = alpha * a * b + bias; rows of `out` are `out_step` apart. On all threads, unless it is
/// called on one of them.
void multiply(const Product& product, const MatrixView& a, const float* packed_b, float* out,
              std::int64_t out_step);

}  // namespace fleetfit::engine::own
