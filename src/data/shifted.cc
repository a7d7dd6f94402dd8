#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "data/sources.h"
#include "fleetfit/core/random.h"

namespace fleetfit::data {
namespace {

constexpr std::string_view kShifted = "shifted:";
constexpr double kLeastAlpha = 1e-3;
constexpr double kMostAlpha = 1e6;

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// A variate of the gamma distribution, by Marsaglia and Tsang's rejection; below 1, the shape is
/// raised by one and the variate brought down by a power of a uniform one.
double draw_gamma(core::Random& random, double shape) {
  if (shape < 1) {
    const double above = draw_gamma(random, shape + 1);
    return above * std::pow(1 - random.uniform(), 1 / shape);
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(1 - random.uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

/// The items of each class.
Result<std::vector<std::vector<std::size_t>>> by_class(const Dataset& data) {
  std::vector<std::vector<std::size_t>> items(data.classes().size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    FLEETFIT_ASSIGN(const auto item, data.item(i));
    if (!item.mask.empty())
      return fail(ErrorCode::invalid_input,
                  "shifted: images with a class for each pixel have no class");
    items[static_cast<std::size_t>(item.label)].push_back(i);
  }
  return items;
}

/// How many items there can be in all before a class runs out.
double most_items(const std::vector<std::vector<std::size_t>>& items,
                  const std::vector<double>& shares) {
  double most = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!items[i].empty() && shares[i] > 0)
      most = std::min(most, static_cast<double>(items[i].size()) / shares[i]);
  return std::isfinite(most) ? most : 0;
}

}  // namespace

bool is_shifted_spec(std::string_view spec) { return spec.starts_with(kShifted); }

Result<Shift> parse_shift(std::string_view spec) {
  Shift shift;
  const auto rest = spec.substr(kShifted.size());
  const auto colon = rest.find(':');
  const auto numbers = rest.substr(0, colon);
  const auto at = numbers.find('@');
  const bool alpha = read_number(numbers.substr(0, at), shift.alpha) &&
                     shift.alpha >= kLeastAlpha && shift.alpha <= kMostAlpha;
  const bool seed = at == std::string_view::npos || read_number(numbers.substr(at + 1), shift.seed);
  if (colon != std::string_view::npos) shift.spec = rest.substr(colon + 1);
  if (alpha && seed && !shift.spec.empty()) return shift;
  return fail(ErrorCode::invalid_input,
              fmt::format("'{}' is not shifted:ALPHA:SPEC or shifted:ALPHA@SEED:SPEC, with ALPHA "
                          "from {:g} to {:g}",
                          spec, kLeastAlpha, kMostAlpha));
}

std::vector<double> draw_shares(std::size_t classes, const Shift& shift) {
  core::Random random(shift.seed);
  std::vector<double> shares(classes);
  double sum = 0;
  for (auto& share : shares) sum += share = draw_gamma(random, shift.alpha);
  for (auto& share : shares)
    share = sum > 0 ? share / sum : 1 / static_cast<double>(classes);  // all too small to tell
  return shares;
}

Result<std::unique_ptr<Dataset>> shift_classes(std::unique_ptr<Dataset> data, const Shift& shift) {
  FLEETFIT_ASSIGN(auto items, by_class(*data));
  const auto shares = draw_shares(items.size(), shift);
  const double most = most_items(items, shares);
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto& own = items[i];
    core::Random(shift.seed).split(i).shuffle(own);
    own.resize(std::min(own.size(), static_cast<std::size_t>(std::lround(most * shares[i]))));
    kept.insert(kept.end(), own.begin(), own.end());
  }
  std::ranges::sort(kept);
  return subset(std::move(data), std::move(kept));
}

}  // namespace fleetfit::data
