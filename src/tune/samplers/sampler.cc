#include "fleetfit/tune/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <optional>
#include <vector>

#include "tune/samplers/samplers.h"

namespace fleetfit::tune {
namespace {

class RandomSampler final : public Sampler {
 public:
  explicit RandomSampler(const Parameters& parameters) : parameters_(&parameters) {}

  void tell(const Observation& /*observation*/) override {}

  Point suggest(std::size_t /*trial*/, std::span<const Point> /*pending*/,
                core::Random& random) override {
    return parameters_->sample(random);
  }

 private:
  const Parameters* parameters_;
};

// --- Grid ---

constexpr std::size_t kCuts = 10;

/// Products of more points than this are not counted; nobody goes through them.
constexpr std::uint64_t kMostPoints = std::uint64_t{1} << 32;

/// Nothing where the product is too large.
std::optional<std::uint64_t> countable_product(std::optional<std::uint64_t> a,
                                               std::optional<std::uint64_t> b) {
  if (!a || !b || *a * *b > kMostPoints) return std::nullopt;
  return *a * *b;
}

std::vector<double> values_of(const Parameters& parameters, std::size_t index) {
  const Parameter& parameter = parameters.all()[index];
  std::vector<double> values;
  if (parameter.is_choice()) {
    values.resize(parameter.values.size());
    std::iota(values.begin(), values.end(), 0.0);
    return values;
  }
  if (parameter.integer && parameter.high - parameter.low < static_cast<double>(kCuts)) {
    for (double value = parameter.low; value <= parameter.high; ++value) values.push_back(value);
    return values;
  }
  for (std::size_t cut = 0; cut < kCuts; ++cut) {
    const double unit = static_cast<double>(cut) / static_cast<double>(kCuts - 1);
    // Both ends belong to a range, and rounding must not lose them.
    const double value = cut == 0           ? parameter.low
                         : cut + 1 == kCuts ? parameter.high
                                            : parameters.from_unit(index, unit);
    if (values.empty() || value > values.back()) values.push_back(value);
  }
  return values;
}

/// Numbers the points of the grid, each once: a parameter that is not active has no value, and so
/// makes no further points.
class Grid {
 public:
  explicit Grid(const Parameters& parameters) : parameters_(&parameters) {
    for (std::size_t i = 0; i < parameters.size(); ++i) values_.push_back(values_of(parameters, i));
    counts_.resize(parameters.size());
    // Conditions refer to earlier parameters, so what depends on one is counted before it.
    for (std::size_t i = parameters.size(); i-- > 0;) counts_[i] = count_with_dependents(i);
    count_ = 1;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters.all()[i].when) count_ = countable_product(count_, total(i));
    }
  }

  std::optional<std::uint64_t> count() const { return count_; }

  Point point(std::uint64_t number) const {
    Point point(values_.size(), kInactive);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (parameters_->all()[i].when) continue;
      const std::uint64_t own = *total(i);
      set(i, number % own, point);
      number /= own;
    }
    return point;
  }

  Point draw(core::Random& random) const {
    Point point(values_.size(), kInactive);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (!parameters_->is_active(point, i)) continue;
      point[i] = values_[i][random.below(values_[i].size())];
    }
    return point;
  }

 private:
  using Counts = std::vector<std::optional<std::uint64_t>>;

  bool depends(std::size_t dependent, std::size_t parameter, std::size_t value) const {
    const auto& when = parameters_->all()[dependent].when;
    return when && when->parameter == parameter &&
           std::find(when->choices.begin(), when->choices.end(), value) != when->choices.end();
  }

  /// For each value: the points of all parameters that depend on it.
  Counts count_with_dependents(std::size_t parameter) const {
    Counts counts(values_[parameter].size(), 1);
    for (std::size_t value = 0; value < counts.size(); ++value) {
      for (std::size_t i = parameter + 1; i < values_.size(); ++i) {
        if (depends(i, parameter, value))
          counts[value] = countable_product(counts[value], total(i));
      }
    }
    return counts;
  }

  std::optional<std::uint64_t> total(std::size_t parameter) const {
    std::uint64_t sum = 0;
    for (const auto& count : counts_[parameter]) {
      if (!count) return std::nullopt;
      sum += *count;
    }
    return sum;
  }

  void set(std::size_t parameter, std::uint64_t number, Point& point) const {
    std::size_t value = 0;
    while (number >= *counts_[parameter][value]) number -= *counts_[parameter][value++];
    point[parameter] = values_[parameter][value];
    for (std::size_t i = parameter + 1; i < values_.size(); ++i) {
      if (!depends(i, parameter, value)) continue;
      const std::uint64_t own = *total(i);
      set(i, number % own, point);
      number /= own;
    }
  }

  const Parameters* parameters_;
  std::vector<std::vector<double>> values_;
  std::vector<Counts> counts_;
  std::optional<std::uint64_t> count_ = 1;
};

/// A stride near the golden section that meets every number below `count`: any beginning of the
/// walk lies evenly over the whole.
std::uint64_t even_stride(std::uint64_t count) {
  auto stride = static_cast<std::uint64_t>(static_cast<double>(count) / std::numbers::phi);
  stride = std::max<std::uint64_t>(stride, 1);
  while (std::gcd(stride, count) != 1) ++stride;
  return stride;
}

class GridSampler final : public Sampler {
 public:
  explicit GridSampler(const Parameters& parameters)
      : parameters_(&parameters),
        grid_(parameters),
        stride_(grid_.count() ? even_stride(*grid_.count()) : 0) {}

  void tell(const Observation& /*observation*/) override {}

  Point suggest(std::size_t trial, std::span<const Point> /*pending*/,
                core::Random& random) override {
    if (!grid_.count()) return grid_.draw(random);
    if (trial >= *grid_.count()) return parameters_->sample(random);
    return grid_.point(trial * stride_ % *grid_.count());
  }

 private:
  const Parameters* parameters_;
  Grid grid_;
  std::uint64_t stride_;
};

}  // namespace

std::unique_ptr<Sampler> make_sampler(const Parameters& parameters, const SamplerOptions& options) {
  switch (options.kind) {
    case SamplerKind::random:
      return std::make_unique<RandomSampler>(parameters);
    case SamplerKind::grid:
      return std::make_unique<GridSampler>(parameters);
    case SamplerKind::bohb:
      return make_bohb(parameters, options);
    case SamplerKind::nsga2:
      return make_nsga2(parameters, options);
    case SamplerKind::tpe:
      break;
  }
  return make_tpe(parameters, options);
}

}  // namespace fleetfit::tune
