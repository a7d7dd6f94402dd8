#include <algorithm>
#include <cmath>

#include "graph/evaluate/kernels.h"
#include "graph/operands.h"

namespace fleetfit::graph::interpreter {
namespace {

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments moments(std::span<const double> numbers) {
  const auto count = static_cast<double>(numbers.size());
  Moments m;
  for (const auto number : numbers) m.mean += number / count;
  for (const auto number : numbers) m.variance += (number - m.mean) * (number - m.mean) / count;
  return m;
}

/// Runs of elements along one axis: element k of run (i, j) is at (i * extent + k) * inner + j.
struct Along {
  std::int64_t outer = 1;
  std::int64_t extent = 1;
  std::int64_t inner = 1;
};

Along along(const Shape& shape, std::size_t axis) {
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  return {elements(Shape(shape.begin(), at)), *at, elements(Shape(at + 1, shape.end()))};
}

/// Replaces every run by what `change` makes of it.
template <class Change>
void change_runs(std::vector<double>& numbers, const Along& a, Change&& change) {
  std::vector<double> run(a.extent);
  for (std::int64_t i = 0; i < a.outer; ++i) {
    for (std::int64_t j = 0; j < a.inner; ++j) {
      double* first = numbers.data() + i * a.extent * a.inner + j;
      for (std::int64_t k = 0; k < a.extent; ++k) run[k] = first[k * a.inner];
      change(run);
      for (std::int64_t k = 0; k < a.extent; ++k) first[k * a.inner] = run[k];
    }
  }
}

void softmax(std::vector<double>& run) {
  const double highest = *std::max_element(run.begin(), run.end());
  double sum = 0;
  for (auto& x : run) sum += x = std::exp(x - highest);
  for (auto& x : run) x /= sum;
}

void log_softmax(std::vector<double>& run) {
  const double highest = *std::max_element(run.begin(), run.end());
  double sum = 0;
  for (const auto x : run) sum += std::exp(x - highest);
  for (auto& x : run) x -= highest + std::log(sum);
}

void divide_by_norm(std::vector<double>& run, std::int64_t p) {
  double norm = 0;
  for (const auto x : run) norm += p == 1 ? std::abs(x) : x * x;
  if (p != 1) norm = std::sqrt(norm);
  if (norm == 0) return;
  for (auto& x : run) x /= norm;
}

void normalize_response(std::vector<double>& run, const Lrn& op) {
  const auto before = run;
  const auto count = static_cast<std::int64_t>(run.size());
  // An even window reaches one further to the back.
  const auto below = (op.size - 1) / 2;
  const auto above = op.size - 1 - below;
  for (std::int64_t c = 0; c < count; ++c) {
    double squares = 0;
    const auto last = above < count - c ? c + above : count - 1;
    for (auto i = std::max<std::int64_t>(0, c - below); i <= last; ++i) {
      squares += before[i] * before[i];
    }
    const double scaled = op.bias + op.alpha / static_cast<double>(op.size) * squares;
    run[c] = before[c] / std::pow(scaled, op.beta);
  }
}

}  // namespace

Values run(const BatchNorm& op, const Call& call) {
  auto x = read<double>(call.input(0));
  const auto scale = read<double>(call.input(1));
  const auto shift = read<double>(call.input(2));
  const auto mean = read<double>(call.input(3));
  const auto variance = read<double>(call.input(4));
  const auto& shape = call.input(0).shape;
  const auto a = along(shape, op.layout == Layout::nchw ? 1 : shape.size() - 1);
  for (std::int64_t run = 0; run < a.outer * a.extent; ++run) {
    const auto c = run % a.extent;
    const double factor = scale[c] / std::sqrt(variance[c] + op.epsilon);
    double* first = x.data() + run * a.inner;
    for (std::int64_t i = 0; i < a.inner; ++i) first[i] = (first[i] - mean[c]) * factor + shift[c];
  }
  return one(write(call.result(), x));
}

Values run(const InstanceNorm& op, const Call& call) {
  auto x = read<double>(call.input(0));
  const auto scale = read<double>(call.input(1));
  const auto shift = read<double>(call.input(2));
  const auto& shape = call.input(0).shape;
  if (shape.size() < 2) return misfit("{} has no channels", to_string(shape));
  const auto a = along(shape, 1);
  if (std::ssize(scale) != a.extent || std::ssize(shift) != a.extent) {
    return misfit("{} scales for {} channels", scale.size(), a.extent);
  }
  for (std::int64_t run = 0; run < a.outer * a.extent; ++run) {
    const std::span image(x.data() + run * a.inner, a.inner);
    const auto m = moments(image);
    const double factor = scale[run % a.extent] / std::sqrt(m.variance + op.epsilon);
    for (auto& number : image) number = (number - m.mean) * factor + shift[run % a.extent];
  }
  return one(write(call.result(), x));
}

Values run(const LayerNorm& op, const Call& call) {
  const auto& shape = call.input(0).shape;
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, shape.size()));
  const Shape normalized(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end());
  FLEETFIT_ASSIGN(const auto scale_value, broadcast(call.input(1), normalized));
  const auto scale = read<double>(scale_value);
  std::vector<double> shift(scale.size(), 0);
  if (call.optional(2) != nullptr) {
    FLEETFIT_ASSIGN(const auto shift_value, broadcast(call.input(2), normalized));
    shift = read<double>(shift_value);
  }

  auto x = read<double>(call.input(0));
  std::vector<double> means;
  std::vector<double> inverse_deviations;
  const auto runs =
      elements(Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis)));
  for (std::int64_t n = 0; n < runs; ++n) {
    const std::span run(x.data() + n * scale.size(), scale.size());
    const auto m = moments(run);
    means.push_back(m.mean);
    inverse_deviations.push_back(1 / std::sqrt(m.variance + op.epsilon));
    for (std::size_t i = 0; i < run.size(); ++i) {
      run[i] = (run[i] - m.mean) * inverse_deviations.back() * scale[i] + shift[i];
    }
  }
  std::vector<Value> results{write(call.result(), x)};
  if (call.results.size() > 1) results.push_back(write(call.results[1], means));
  if (call.results.size() > 2) results.push_back(write(call.results[2], inverse_deviations));
  return results;
}

Values run(const Softmax& op, const Call& call) {
  auto x = read<double>(call.input(0));
  auto shape = call.input(0).shape;
  if (shape.empty()) shape = {1};
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, shape.size()));
  auto a = along(shape, axis);
  if (op.to_end) a = {a.outer, a.extent * a.inner, 1};
  if (!x.empty()) change_runs(x, a, op.log ? log_softmax : softmax);
  return one(write(call.result(), x));
}

Values run(const LpNormalization& op, const Call& call) {
  auto x = read<double>(call.input(0));
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, call.input(0).shape.size()));
  change_runs(x, along(call.input(0).shape, axis),
              [&](std::vector<double>& run) { divide_by_norm(run, op.p); });
  return one(write(call.result(), x));
}

Values run(const Lrn& op, const Call& call) {
  if (op.size < 1) return misfit("a window of {} channels", op.size);
  auto x = read<double>(call.input(0));
  const auto& shape = call.input(0).shape;
  if (shape.size() < 2) return misfit("{} has no channels", to_string(shape));
  const auto axis = op.layout == Layout::nchw ? std::size_t{1} : shape.size() - 1;
  change_runs(x, along(shape, axis),
              [&](std::vector<double>& run) { normalize_response(run, op); });
  return one(write(call.result(), x));
}

}  // namespace fleetfit::graph::interpreter
