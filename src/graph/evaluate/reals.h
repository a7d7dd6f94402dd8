#pragma once

#include <span>
#include <vector>

#include "graph/evaluate/values.h"

namespace fleetfit::graph::interpreter {

/// The elements of a tensor as floats or doubles, without a copy where they are stored so.
template <class T>
class Reals {
 public:
  /// `value` must live as long.
  explicit Reals(const Value& value) {
    if (value.dtype == (std::is_same_v<T, double> ? DType::f64 : DType::f32)) {
      all_ = value.data.as<T>();
    } else {
      owned_ = read<T>(value);
      all_ = owned_;
    }
  }
  Reals(const Reals&) = delete;
  Reals& operator=(const Reals&) = delete;

  const T* data() const { return all_.data(); }
  std::size_t size() const { return all_.size(); }
  T operator[](std::size_t i) const { return all_[i]; }

 private:
  std::vector<T> owned_;
  std::span<const T> all_;
};

/// Calls `visit` with a zero of the type to keep operands in where the result is of `type`: float
/// for float32, double for all else. Sums are doubles in both cases.
template <class Visit>
decltype(auto) with_reals(DType type, Visit&& visit) {
  if (type == DType::f32) return visit(float{});
  return visit(double{});
}

}  // namespace fleetfit::graph::interpreter
