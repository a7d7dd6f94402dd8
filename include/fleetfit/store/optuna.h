#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/store/records.h"

/// Studies that Optuna 3 keeps in an SQLite file, as they stand there. The file is only read.
namespace fleetfit::store {

/// What a parameter may be.
struct OptunaDistribution {
  enum class Kind : std::uint8_t { categorical, integer, real };
  Kind kind = Kind::real;
  std::vector<std::string> choices = {};  ///< of a categorical one: JSON texts
  double low = 0;
  double high = 0;                            ///< not below `low`
  std::optional<double> step = std::nullopt;  ///< above 0
  bool log = false;                           ///< `low` is above 0 then

  bool operator==(const OptunaDistribution&) const = default;
};

struct OptunaParameter {
  std::string name = {};
  std::size_t distribution = 0;  ///< in OptunaStudy::distributions
  double value = 0;              ///< finite; of a categorical one, the index of its choice

  bool operator==(const OptunaParameter&) const = default;
};

enum class OptunaState : std::uint8_t { running, complete, pruned, failed, waiting };

struct OptunaTrial {
  std::int64_t number = 0;
  OptunaState state = OptunaState::complete;
  std::vector<OptunaParameter> parameters = {};  ///< in the order in which they were asked for
  /// One for each objective, or none. May be infinite.
  std::vector<double> values = {};
  /// Reported on the way, with their step, by step. May be NaN or infinite.
  std::vector<std::pair<std::int64_t, double>> intermediate = {};
  /// Optuna keeps the time of day where it ran, without its zone; taken as if it were UTC.
  std::optional<Time> started = std::nullopt;
  std::optional<Time> completed = std::nullopt;
};

struct OptunaStudy {
  std::string name = {};
  std::vector<bool> maximize = {};  ///< one for each objective, at least one
  std::vector<OptunaDistribution> distributions = {};
  std::vector<OptunaTrial> trials = {};  ///< by number
};

/// The names of the studies in a file, in the order of their creation. Fails with `not_found` if
/// there is no such file, with `io` if it cannot be read, with `unsupported` if Optuna before 3.0
/// wrote it, and with `invalid_input` if it is not a file of Optuna or is damaged.
Result<std::vector<std::string>> list_optuna_studies(const std::filesystem::path& file);

/// Fails as above, with `not_found` if there is no study of that name.
Result<OptunaStudy> read_optuna_study(const std::filesystem::path& file, std::string_view name);

}  // namespace fleetfit::store
