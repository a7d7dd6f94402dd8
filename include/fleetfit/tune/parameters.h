#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/names.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"

/// What a study varies. docs/formats/study.md has the files.
namespace fleetfit::tune {

/// What a parameter changes.
enum class Group : std::uint8_t {
  model,      ///< the network: inference is tuned again
  training,   ///< how it is trained
  system,     ///< where the training process runs
  inference,  ///< how the trained network is run
};
core::Names names_of(Group);
using core::to_string;

/// A value as it is written in study files and given to trials.
using Value = std::variant<std::int64_t, double, bool, std::string>;

/// One number, or one of several values.
struct Parameter {
  std::string name = {};
  Group group = Group::training;
  /// The values to choose from, all different; empty for a range.
  std::vector<Value> values = {};
  /// Values are numbers in increasing order, so that neighbours are alike.
  bool ordered = false;
  /// A range, both ends included.
  double low = 0;
  double high = 0;
  bool integer = false;
  bool log = false;
  /// It means something only where another parameter, which stands before it, has one of some
  /// values; nothing else is drawn or given to the trial.
  struct Condition {
    std::size_t parameter = 0;           ///< its index
    std::vector<std::size_t> choices{};  ///< indices of its values
    bool operator==(const Condition&) const = default;
  };
  std::optional<Condition> when = std::nullopt;

  bool is_choice() const { return !values.empty(); }
  bool operator==(const Parameter&) const = default;
};

/// An error of what was given for a parameter, by its name.
tl::unexpected<Error> refuse(const Parameter& parameter, std::string_view problem);

/// The index of a value among those of a choice; 1 and 1.0 are the same.
std::optional<std::size_t> find_value(const Parameter& parameter, const Value& value);

/// A value for each parameter: the index of its value, or the number of its range; NaN where the
/// parameter means nothing. Compared by `same_point`.
using Point = std::vector<double>;

inline constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();

bool same_point(std::span<const double> a, std::span<const double> b);

/// All parameters of one tuner, in the order of the file. Immutable.
class Parameters {
 public:
  Parameters() = default;
  /// Fails with `invalid_input`, naming the parameter, on what the fields of `Parameter` forbid,
  /// on names that occur twice, and on an empty range or one that is not finite or, with `log`, not
  /// positive.
  static Result<Parameters> create(std::vector<Parameter> parameters);

  std::span<const Parameter> all() const { return parameters_; }
  std::size_t size() const { return parameters_.size(); }
  std::optional<std::size_t> find(std::string_view name) const;

  bool is_active(std::span<const double> point, std::size_t parameter) const;

  /// Uniform: in the logarithm for `log`, each whole number alike for `integer`.
  Point sample(core::Random& random) const;

  /// Brings numbers into their range and to whole numbers, and makes inactive ones NaN; active ones
  /// that are NaN are drawn.
  void repair(core::Random& random, Point& point) const;

  /// Where a value lies in its range, 0 to 1 (in the logarithm for `log`); the inverse of
  /// `from_unit`. For choices: the index as it is.
  double to_unit(std::size_t parameter, double value) const;
  double from_unit(std::size_t parameter, double unit) const;

  /// How many points there are; nothing if a range is continuous or the number does not fit.
  std::optional<std::uint64_t> count() const;

  /// {"name": value, …} of the active ones: what a trial gets.
  nlohmann::ordered_json to_json(std::span<const double> point) const;
  /// Reads what `to_json` wrote; errors name the parameter.
  Result<Point> from_json(const core::JsonView& json) const;

  /// Text of the values of one group: the same for the same values. Of Group::model, it says
  /// whether two trials have the same network.
  std::string key(std::span<const double> point, Group group) const;

  bool operator==(const Parameters&) const = default;

 private:
  std::vector<Parameter> parameters_;
};

}  // namespace fleetfit::tune
