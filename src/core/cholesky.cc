#include "fleetfit/core/cholesky.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace fleetfit::core {
namespace {

/// Where a row of the triangle begins.
std::size_t row_at(std::size_t row) { return row * (row + 1) / 2; }

}  // namespace

Cholesky::Cholesky(std::vector<double> lower) : factor_(std::move(lower)) {
  for (; row_at(size_) < factor_.size(); ++size_) {
    double* const row = factor_.data() + row_at(size_);
    const double least = std::numeric_limits<double>::epsilon() * row[size_];
    for (std::size_t j = 0; j <= size_; ++j) {
      const double* const other = factor_.data() + row_at(j);
      double rest = row[j];
      for (std::size_t k = 0; k < j; ++k) rest -= row[k] * other[k];
      row[j] = j < size_ ? rest / other[j] : std::sqrt(std::max(rest, least));
    }
  }
}

void Cholesky::whiten(std::span<double> b) const {
  const double* row = factor_.data();
  for (std::size_t i = 0; i < b.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) b[i] -= row[j] * b[j];
    b[i] /= row[i];
    row += i + 1;
  }
}

void Cholesky::solve(std::span<double> b) const {
  whiten(b);
  for (std::size_t i = b.size(); i-- > 0;) {
    for (std::size_t k = i + 1; k < b.size(); ++k) b[i] -= factor_[row_at(k) + i] * b[k];
    b[i] /= factor_[row_at(i) + i];
  }
}

double Cholesky::log_determinant() const {
  double sum = 0;
  for (std::size_t i = 0; i < size_; ++i) sum += 2 * std::log(factor_[row_at(i) + i]);
  return sum;
}

}  // namespace fleetfit::core
