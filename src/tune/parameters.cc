#include "fleetfit/tune/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace fleetfit::tune {
namespace {

// Whole numbers beyond it have no double of their own.
constexpr double kLargestWhole = 0x1p53;

std::optional<double> as_number(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

// 1 and 1.0 are the same to the program that is given them.
bool same_value(const Value& a, const Value& b) {
  const auto number_a = as_number(a);
  const auto number_b = as_number(b);
  return number_a && number_b ? *number_a == *number_b : a == b;
}

std::string text_of(const Value& value) {
  return std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
}

bool increasing_numbers(const std::vector<Value>& values) {
  const bool numbers =
      std::ranges::all_of(values, [](const Value& v) { return as_number(v).has_value(); });
  return numbers && std::ranges::is_sorted(values, std::less_equal<>(),
                                           [](const Value& v) { return *as_number(v); });
}

Status check_values(const Parameter& parameter) {
  std::set<Value> seen;
  for (const Value& value : parameter.values) {
    const auto number = as_number(value);
    if (number && !std::isfinite(*number)) return refuse(parameter, "a value is not finite");
    if (!seen.insert(number ? Value(*number) : value).second) {
      return refuse(parameter, fmt::format("the value {} occurs twice", text_of(value)));
    }
  }
  if (parameter.ordered && !increasing_numbers(parameter.values)) {
    return refuse(parameter, "ordered values have to be increasing numbers");
  }
  return {};
}

bool is_whole(double number) {
  return std::abs(number) <= kLargestWhole && std::trunc(number) == number;
}

Status check_range(const Parameter& parameter) {
  const double low = parameter.low;
  const double high = parameter.high;
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(high - low)) {
    return refuse(parameter, "the range is not finite");
  }
  if (low > high)
    return refuse(parameter, fmt::format("the range from {} to {} is empty", low, high));
  if (parameter.integer && !(is_whole(low) && is_whole(high))) {
    return refuse(parameter,
                  fmt::format("the ends {} and {} have to be whole numbers up to 2^53", low, high));
  }
  if (parameter.log && !(low > 0)) {
    return refuse(parameter, fmt::format("a logarithm needs a range above 0, not from {}", low));
  }
  return {};
}

Status check_condition(std::span<const Parameter> all, std::size_t index) {
  const Parameter& parameter = all[index];
  if (!parameter.when) return {};
  const auto& [parent, choices] = *parameter.when;
  if (parent >= index) return refuse(parameter, "what it depends on has to stand before it");
  if (!all[parent].is_choice()) {
    return refuse(parameter, fmt::format("it depends on {}, which is a range", all[parent].name));
  }
  const std::set<std::size_t> different(choices.begin(), choices.end());
  if (choices.empty() || different.size() != choices.size() ||
      *different.rbegin() >= all[parent].values.size()) {
    return refuse(parameter, fmt::format("it depends on what is no value of {}", all[parent].name));
  }
  return {};
}

Status check_one(std::span<const Parameter> all, std::size_t index) {
  const Parameter& parameter = all[index];
  if (parameter.name.empty()) return core::refuse("a parameter has no name");
  Status kind = parameter.is_choice() ? check_values(parameter) : check_range(parameter);
  return kind ? check_condition(all, index) : kind;
}

// Where a range begins and ends on the axis on which all places are alike. A whole number takes the
// room of half a step on both sides, so that the ends are not rarer than the others.
struct Ends {
  double begin = 0;
  double end = 0;
};

Ends ends_of(const Parameter& parameter) {
  const double half = parameter.integer ? 0.5 : 0;
  const double begin = parameter.low - half;
  const double end = parameter.high + half;
  return parameter.log ? Ends{std::log(begin), std::log(end)} : Ends{begin, end};
}

double clamp_choice(const Parameter& parameter, double value) {
  return std::clamp(std::round(value), 0.0, static_cast<double>(parameter.values.size() - 1));
}

double clamp_range(const Parameter& parameter, double value) {
  return std::clamp(parameter.integer ? std::round(value) : value, parameter.low, parameter.high);
}

nlohmann::ordered_json value_json(const Parameter& parameter, double value) {
  if (parameter.is_choice()) {
    return std::visit([](const auto& v) { return nlohmann::ordered_json(v); },
                      parameter.values[static_cast<std::size_t>(value)]);
  }
  if (parameter.integer) return static_cast<std::int64_t>(value);
  return value;
}

std::optional<Value> value_of(const nlohmann::json& json) {
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_string()) return Value(json.get<std::string>());
  if (json.is_number_integer() && json.get<double>() < 0x1p63) {
    return Value(json.get<std::int64_t>());
  }
  if (json.is_number()) return Value(json.get<double>());
  return std::nullopt;
}

Result<double> read_choice(const Parameter& parameter, const core::JsonView& json) {
  const auto value = value_of(json.value());
  const auto found = value ? find_value(parameter, *value) : std::nullopt;
  if (found) return static_cast<double>(*found);
  return json.error("is none of the parameter's values");
}

Result<double> read_range(const Parameter& parameter, const core::JsonView& json) {
  FLEETFIT_ASSIGN(const auto number, json.as_number());
  if (parameter.integer && std::trunc(number) != number) {
    return json.error(fmt::format("{} is no whole number", number));
  }
  if (!(number >= parameter.low && number <= parameter.high)) {
    return json.error(
        fmt::format("{} is not in the range from {} to {}", number, parameter.low, parameter.high));
  }
  return number;
}

// Nothing if it does not fit.
using Count = std::optional<std::uint64_t>;
constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();

Count product(Count a, Count b) {
  if (!a || !b || (*b != 0 && *a > kMost / *b)) return std::nullopt;
  return *a * *b;
}

Count sum(Count a, Count b) {
  if (!a || !b || *a > kMost - *b) return std::nullopt;
  return *a + *b;
}

Count count_range(const Parameter& parameter) {
  if (parameter.low == parameter.high) return 1;
  if (!parameter.integer) return std::nullopt;
  return static_cast<std::uint64_t>(parameter.high - parameter.low) + 1;
}

bool holds(const Parameter::Condition& condition, std::size_t choice) {
  return std::ranges::find(condition.choices, choice) != condition.choices.end();
}

// Ways to choose among the parameters that depend on one that has this value, given the ways of
// each of them.
Count count_dependents(std::span<const Parameter> all, std::size_t parent, std::size_t choice,
                       std::span<const Count> ways) {
  Count count = 1;
  for (std::size_t child = parent + 1; child < all.size(); ++child) {
    const auto& when = all[child].when;
    if (when && when->parameter == parent && holds(*when, choice))
      count = product(count, ways[child]);
  }
  return count;
}

Count count_ways(std::span<const Parameter> all, std::size_t parameter,
                 std::span<const Count> ways) {
  if (!all[parameter].is_choice()) return count_range(all[parameter]);
  Count count = 0;
  for (std::size_t choice = 0; choice < all[parameter].values.size(); ++choice)
    count = sum(count, count_dependents(all, parameter, choice, ways));
  return count;
}

}  // namespace

tl::unexpected<Error> refuse(const Parameter& parameter, std::string_view problem) {
  return core::refuse(fmt::format("{}: {}", parameter.name, problem));
}

core::Names names_of(Group) {
  static constexpr core::Name kAll[] = {{Group::model, "model"},
                                        {Group::training, "training"},
                                        {Group::system, "system"},
                                        {Group::inference, "inference"}};
  return {.what = "group of parameters", .all = kAll};
}

std::optional<std::size_t> find_value(const Parameter& parameter, const Value& value) {
  const auto found = std::ranges::find_if(
      parameter.values, [&](const Value& candidate) { return same_value(candidate, value); });
  if (found == parameter.values.end()) return std::nullopt;
  return static_cast<std::size_t>(found - parameter.values.begin());
}

bool same_point(std::span<const double> a, std::span<const double> b) {
  return std::ranges::equal(
      a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

Result<Parameters> Parameters::create(std::vector<Parameter> parameters) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!names.insert(parameters[i].name).second) {
      return refuse(parameters[i], "there are two parameters of this name");
    }
    FLEETFIT_TRY(check_one(parameters, i));
  }
  Parameters result;
  result.parameters_ = std::move(parameters);
  return result;
}

std::optional<std::size_t> Parameters::find(std::string_view name) const {
  const auto found = std::ranges::find(parameters_, name, &Parameter::name);
  if (found == parameters_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - parameters_.begin());
}

bool Parameters::is_active(std::span<const double> point, std::size_t parameter) const {
  while (const auto& when = parameters_[parameter].when) {
    const double value = point[when->parameter];
    if (!(value >= 0) || !holds(*when, static_cast<std::size_t>(value))) return false;
    parameter = when->parameter;
  }
  return true;
}

Point Parameters::sample(core::Random& random) const {
  Point point(size(), kInactive);
  repair(random, point);
  return point;
}

void Parameters::repair(core::Random& random, Point& point) const {
  point.resize(size(), kInactive);
  for (std::size_t i = 0; i < size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (!is_active(point, i)) {
      point[i] = kInactive;
    } else if (!std::isnan(point[i])) {
      point[i] = parameter.is_choice() ? clamp_choice(parameter, point[i])
                                       : clamp_range(parameter, point[i]);
    } else if (parameter.is_choice()) {
      point[i] = static_cast<double>(random.below(parameter.values.size()));
    } else {
      point[i] = from_unit(i, random.uniform());
    }
  }
}

double Parameters::to_unit(std::size_t parameter, double value) const {
  const Parameter& of = parameters_[parameter];
  if (of.is_choice()) return value;
  const Ends ends = ends_of(of);
  if (!(ends.end > ends.begin)) return 0;
  const double at = of.log ? std::log(value) : value;
  return std::clamp((at - ends.begin) / (ends.end - ends.begin), 0.0, 1.0);
}

double Parameters::from_unit(std::size_t parameter, double unit) const {
  const Parameter& of = parameters_[parameter];
  if (of.is_choice()) return clamp_choice(of, unit);
  const Ends ends = ends_of(of);
  const double at = ends.begin + (ends.end - ends.begin) * unit;
  return clamp_range(of, of.log ? std::exp(at) : at);
}

std::optional<std::uint64_t> Parameters::count() const {
  // Backwards: what depends on a parameter stands after it.
  std::vector<Count> ways(size(), 1);
  for (std::size_t i = size(); i-- > 0;) ways[i] = count_ways(parameters_, i, ways);
  Count all = 1;
  for (std::size_t i = 0; i < size(); ++i)
    if (!parameters_[i].when) all = product(all, ways[i]);
  return all;
}

nlohmann::ordered_json Parameters::to_json(std::span<const double> point) const {
  auto json = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_active(point, i)) json[parameters_[i].name] = value_json(parameters_[i], point[i]);
  }
  return json;
}

Result<Point> Parameters::from_json(const core::JsonView& json) const {
  FLEETFIT_ASSIGN(const auto members, json.members());
  for (const auto& member : members) {
    if (!find(member.key)) return json.error(fmt::format("there is no parameter {}", member.key));
  }
  Point point(size(), kInactive);
  for (std::size_t i = 0; i < size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const auto found = std::ranges::find(members, parameter.name, &core::JsonView::Member::key);
    const bool active = is_active(point, i);
    if (active && found == members.end()) {
      return json.error(fmt::format("the parameter {} is missing", parameter.name));
    }
    if (!active && found != members.end()) {
      return found->value.error("means nothing with the values of the others");
    }
    if (!active) continue;
    FLEETFIT_ASSIGN(point[i], parameter.is_choice() ? read_choice(parameter, found->value)
                                                    : read_range(parameter, found->value));
  }
  return point;
}

std::string Parameters::key(std::span<const double> point, Group group) const {
  auto json = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (parameter.group == group && is_active(point, i)) {
      json[parameter.name] = value_json(parameter, point[i]);
    }
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace fleetfit::tune
