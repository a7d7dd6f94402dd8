#pragma once

#include <cstdint>

namespace fleetfit::graph::interpreter {

/// A matrix in someone else's memory, row by row.
template <class T>
struct Matrix {
  const T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  const T* row(std::int64_t i) const { return data + i * columns; }
};

/// out += a * b, for each row of a; out has a.rows x b.columns sums.
template <class T, class Sum>
void multiply(const Matrix<T>& a, const Matrix<T>& b, Sum* out) {
  for (std::int64_t i = 0; i < a.rows; ++i, out += b.columns) {
    for (std::int64_t k = 0; k < a.columns; ++k) {
      const auto factor = static_cast<Sum>(a.row(i)[k]);
      const T* from = b.row(k);
      for (std::int64_t j = 0; j < b.columns; ++j) out[j] += factor * static_cast<Sum>(from[j]);
    }
  }
}

/// out += a * b^T; out has a.rows x b.rows sums.
template <class T, class Sum>
void multiply_transposed(const Matrix<T>& a, const Matrix<T>& b, Sum* out) {
  for (std::int64_t i = 0; i < a.rows; ++i, out += b.rows) {
    for (std::int64_t j = 0; j < b.rows; ++j) {
      Sum sum{};
      const T* left = a.row(i);
      const T* right = b.row(j);
      for (std::int64_t k = 0; k < a.columns; ++k) {
        sum += static_cast<Sum>(left[k]) * static_cast<Sum>(right[k]);
      }
      out[j] += sum;
    }
  }
}

}  // namespace fleetfit::graph::interpreter
