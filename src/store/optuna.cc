#include "fleetfit/store/optuna.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "fleetfit/core/json.h"
#include "store/sql/sql_table.h"
#include "store/sql/sqlite_connection.h"

namespace fleetfit::store {
namespace {

using core::field;
using core::JsonView;
using Transaction = SqliteConnection::Transaction;
using SqlitePtr = std::unique_ptr<SqliteConnection>;

constexpr std::chrono::milliseconds kPatience{30'000};
// Of Optuna 2.0 to 4; what its tables hold has changed within.
constexpr std::int64_t kSchemaVersion = 12;
// More choices than this are no list that anybody wrote.
constexpr std::size_t kMostChoices = 100'000;

// Rows as they stand in the tables, whose columns may hold anything: SQLite does not mind. Values
// have columns of other names in each table.

struct TrialRow {
  std::int64_t id = 0;
  std::optional<std::int64_t> number = std::nullopt;
  std::string state = {};
  std::optional<std::string> started = std::nullopt;
  std::optional<std::string> completed = std::nullopt;
};
core::Fields fields_of(const TrialRow*) {
  static constexpr core::Field kAll[] = {
      field<&TrialRow::id>("trial_id"), field<&TrialRow::number>("number"),
      field<&TrialRow::state>("state"), field<&TrialRow::started>("datetime_start"),
      field<&TrialRow::completed>("datetime_complete")};
  return {.what = "trial", .all = kAll};
}

struct ParameterRow {
  std::int64_t trial = 0;
  std::string name = {};
  std::optional<double> value = std::nullopt;
  std::string distribution = {};
};
core::Fields fields_of(const ParameterRow*) {
  static constexpr core::Field kAll[] = {field<&ParameterRow::trial>("trial_id"),
                                         field<&ParameterRow::name>("param_name"),
                                         field<&ParameterRow::value>("param_value"),
                                         field<&ParameterRow::distribution>("distribution_json")};
  return {.what = "parameter", .all = kAll};
}

struct ValueRow {
  std::int64_t trial = 0;
  std::int64_t index = 0;  // objective or step
  std::optional<double> value = std::nullopt;
  std::string type = {};
};
core::Fields fields_of(const ValueRow*) {
  static constexpr core::Field kAll[] = {
      field<&ValueRow::trial>("trial_id"), field<&ValueRow::index>("position"),
      field<&ValueRow::value>("value"), field<&ValueRow::type>("type")};
  return {.what = "value", .all = kAll};
}

Result<double> number_of(const ValueRow& row) {
  if (row.type == "INF_POS") return std::numeric_limits<double>::infinity();
  if (row.type == "INF_NEG") return -std::numeric_limits<double>::infinity();
  if (row.type == "NAN") return std::numeric_limits<double>::quiet_NaN();
  if (row.type == "FINITE" && row.value && std::isfinite(*row.value)) return *row.value;
  return refuse(fmt::format("its value {} is of the type '{}'",
                            row.value ? fmt::format("{}", *row.value) : "NULL", row.type));
}

Result<OptunaState> parse_state(std::string_view name) {
  if (name == "RUNNING") return OptunaState::running;
  if (name == "COMPLETE") return OptunaState::complete;
  if (name == "PRUNED") return OptunaState::pruned;
  if (name == "FAIL") return OptunaState::failed;
  if (name == "WAITING") return OptunaState::waiting;
  return refuse(fmt::format("its state is '{}'", name));
}

std::optional<int> digits(std::string_view text, std::size_t first, std::size_t count) {
  int value = 0;
  if (text.size() < first + count) return std::nullopt;
  const char* end = text.data() + first + count;
  const auto parsed = std::from_chars(text.data() + first, end, value);
  return parsed.ec == std::errc() && parsed.ptr == end && value >= 0 ? std::optional(value)
                                                                     : std::nullopt;
}

// "2026-11-16 02:01:46.267763", with or without the fraction.
Result<Time> parse_time(std::string_view text) {
  using namespace std::chrono;
  const auto bad = [&] { return refuse(fmt::format("'{}' is no time", text)); };
  const auto year_of = digits(text, 0, 4);
  const auto month_of = digits(text, 5, 2);
  const auto day_of = digits(text, 8, 2);
  const auto hour = digits(text, 11, 2);
  const auto minute = digits(text, 14, 2);
  const auto second = digits(text, 17, 2);
  if (!year_of || !month_of || !day_of || !hour || !minute || !second) return bad();
  const year_month_day date(year(*year_of), month(static_cast<unsigned>(*month_of)),
                            day(static_cast<unsigned>(*day_of)));
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return bad();
  const int ms = digits(text, 20, 3).value_or(0);
  return sys_days(date) + hours(*hour) + minutes(*minute) + seconds(*second) + milliseconds(ms);
}

Result<std::optional<Time>> parse_time(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return parse_time(std::string_view(*text)).map([](Time time) { return std::optional(time); });
}

Result<OptunaDistribution> parse_choices(const JsonView& attributes) {
  FLEETFIT_ASSIGN(const auto choices, attributes.at("choices"));
  if (!choices.value().is_array() || choices.value().empty())
    return choices.error("expected a list of choices");
  if (choices.value().size() > kMostChoices) return choices.error("too many choices");
  OptunaDistribution distribution{.kind = OptunaDistribution::Kind::categorical};
  for (const auto& choice : choices.value())
    distribution.choices.push_back(core::format_json_line(choice));
  return distribution;
}

Status check(const OptunaDistribution& distribution, const JsonView& attributes) {
  if (distribution.low > distribution.high) return attributes.error("low is above high");
  if (distribution.log && distribution.low <= 0)
    return attributes.error("a logarithm of what is not above 0");
  if (distribution.step && *distribution.step <= 0) return attributes.error("step is not above 0");
  return {};
}

Result<OptunaDistribution> parse_range(const JsonView& attributes, OptunaDistribution::Kind kind) {
  FLEETFIT_ASSIGN(const auto low, attributes.number("low"));
  FLEETFIT_ASSIGN(const auto high, attributes.number("high"));
  FLEETFIT_ASSIGN(const auto log, attributes.boolean_or("log", false));
  OptunaDistribution distribution{.kind = kind, .low = low, .high = high, .log = log};
  FLEETFIT_ASSIGN(const auto step, attributes.find("step"));
  if (step) {
    FLEETFIT_ASSIGN(distribution.step, step->as_number());
  }
  FLEETFIT_TRY(check(distribution, attributes));
  return distribution;
}

Result<OptunaDistribution> parse_distribution(const std::string& text) {
  FLEETFIT_ASSIGN(const auto document, core::parse_json(text, "distribution"));
  const JsonView view(document, "distribution");
  FLEETFIT_ASSIGN(const auto name, view.text("name"));
  FLEETFIT_ASSIGN(const auto attributes, view.at("attributes"));
  using enum OptunaDistribution::Kind;
  if (name == "CategoricalDistribution") return parse_choices(attributes);
  if (name == "FloatDistribution") return parse_range(attributes, real);
  if (name == "IntDistribution") return parse_range(attributes, integer);
  return fail(ErrorCode::unsupported,
              fmt::format("'{}' is no distribution of Optuna 3; `optuna storage upgrade` brings "
                          "older files to it",
                          name));
}

Status check_value(const OptunaDistribution& distribution, std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return refuse("has no value");
  if (distribution.kind == OptunaDistribution::Kind::real) return {};
  if (*value != std::round(*value) || std::abs(*value) > 9e15)
    return refuse(fmt::format("{} is no whole number", *value));
  if (distribution.kind == OptunaDistribution::Kind::integer) return {};
  if (*value < 0 || *value >= static_cast<double>(distribution.choices.size()))
    return refuse(fmt::format("{} is the number of none of its choices", *value));
  return {};
}

/// Reads one study, table after table, within one transaction.
class StudyReader {
 public:
  explicit StudyReader(SqliteConnection& connection) : connection_(connection) {}

  Result<OptunaStudy> read(std::string_view name) {
    FLEETFIT_ASSIGN(
        const auto found,
        connection_.first<std::int64_t>("SELECT study_id FROM studies WHERE study_name = ?", name));
    if (!found)
      return connection_.failure(ErrorCode::not_found, fmt::format("it has no study '{}'", name));
    study_.name = name;
    for (const auto step :
         {&StudyReader::read_directions, &StudyReader::read_trials, &StudyReader::read_parameters,
          &StudyReader::read_values, &StudyReader::read_intermediate})
      FLEETFIT_TRY((this->*step)(*found));
    return std::move(study_);
  }

 private:
  // An error in a row, with the place in front.
  tl::unexpected<Error> at(std::string_view place, Error error) const {
    return core::within(connection_.name(), core::within(place, std::move(error)).value());
  }

  Status read_directions(std::int64_t id) {
    FLEETFIT_ASSIGN(
        const auto directions,
        connection_.all<std::string>(
            "SELECT direction FROM study_directions WHERE study_id = ? ORDER BY objective", id));
    for (const auto& direction : directions) {
      if (direction != "MAXIMIZE" && direction != "MINIMIZE")
        return at("study",
                  {ErrorCode::invalid_input,
                   fmt::format("its direction '{}' is neither MAXIMIZE nor MINIMIZE", direction)});
      study_.maximize.push_back(direction == "MAXIMIZE");
    }
    if (study_.maximize.empty())
      return at("study", {ErrorCode::invalid_input, "it has no direction"});
    return {};
  }

  Status read_trials(std::int64_t id) {
    FLEETFIT_ASSIGN(
        const auto rows,
        connection_.all<TrialRow>(
            select<TrialRow>("trials WHERE study_id = ? ORDER BY number, trial_id"), id));
    for (const auto& row : rows) {
      const auto number = row.number.value_or(static_cast<std::int64_t>(study_.trials.size()));
      const auto place = fmt::format("trial {}", number);
      const auto state = parse_state(row.state);
      const auto started = parse_time(row.started);
      const auto completed = parse_time(row.completed);
      if (!state) return at(place, state.error());
      if (!started) return at(place, started.error());
      if (!completed) return at(place, completed.error());
      index_.emplace(row.id, study_.trials.size());
      study_.trials.push_back(
          {.number = number, .state = *state, .started = *started, .completed = *completed});
    }
    return {};
  }

  Status read_parameters(std::int64_t id) {
    FLEETFIT_ASSIGN(
        const auto rows,
        connection_.all<ParameterRow>(
            select<ParameterRow>("trial_params WHERE trial_id IN (SELECT trial_id FROM trials "
                                 "WHERE study_id = ?) ORDER BY param_id"),
            id));
    for (const auto& row : rows) {
      auto* trial = trial_of(row.trial);
      if (trial == nullptr) continue;
      const auto place = fmt::format("trial {}: parameter '{}'", trial->number, row.name);
      if (row.name.empty()) return at(place, {ErrorCode::invalid_input, "has no name"});
      const auto distribution = distribution_of(row.distribution);
      if (!distribution) return at(place, distribution.error());
      const auto checked = check_value(study_.distributions[*distribution], row.value);
      if (!checked) return at(place, checked.error());
      trial->parameters.push_back(
          {.name = row.name, .distribution = *distribution, .value = *row.value});
    }
    return {};
  }

  Status read_values(std::int64_t id) {
    FLEETFIT_ASSIGN(const auto rows,
                    connection_.all<ValueRow>(
                        "SELECT trial_id, objective, value, value_type FROM trial_values "
                        "WHERE trial_id IN (SELECT trial_id FROM trials WHERE study_id = ?) "
                        "ORDER BY trial_id, objective",
                        id));
    for (const auto& row : rows) {
      auto* trial = trial_of(row.trial);
      if (trial == nullptr) continue;
      const auto place = fmt::format("trial {}", trial->number);
      const auto value = number_of(row);
      if (!value) return at(place, value.error());
      if (row.index != static_cast<std::int64_t>(trial->values.size()) ||
          trial->values.size() == study_.maximize.size())
        return at(place, {ErrorCode::invalid_input,
                          fmt::format("it has a value of objective {}, of which there are {}",
                                      row.index, study_.maximize.size())});
      trial->values.push_back(*value);
    }
    return {};
  }

  Status read_intermediate(std::int64_t id) {
    FLEETFIT_ASSIGN(const auto rows,
                    connection_.all<ValueRow>(
                        "SELECT trial_id, step, intermediate_value, intermediate_value_type "
                        "FROM trial_intermediate_values "
                        "WHERE trial_id IN (SELECT trial_id FROM trials WHERE study_id = ?) "
                        "ORDER BY trial_id, step",
                        id));
    for (const auto& row : rows) {
      auto* trial = trial_of(row.trial);
      if (trial == nullptr) continue;
      const auto value = number_of(row);
      if (!value)
        return at(fmt::format("trial {}: step {}", trial->number, row.index), value.error());
      trial->intermediate.emplace_back(row.index, *value);
    }
    return {};
  }

  // Null if it is none of this study, which only a file that was tampered with can bring about.
  OptunaTrial* trial_of(std::int64_t id) {
    const auto found = index_.find(id);
    return found == index_.end() ? nullptr : &study_.trials[found->second];
  }

  Result<std::size_t> distribution_of(const std::string& text) {
    const auto known = distributions_.find(text);
    if (known != distributions_.end()) return known->second;
    FLEETFIT_ASSIGN(auto parsed, parse_distribution(text));
    const std::size_t index = study_.distributions.size();
    study_.distributions.push_back(std::move(parsed));
    distributions_.emplace(text, index);
    return index;
  }

  SqliteConnection& connection_;
  OptunaStudy study_;
  std::unordered_map<std::int64_t, std::size_t> index_;  // of a trial's id in study_.trials
  std::map<std::string, std::size_t> distributions_;     // their texts
};

// A file in which Optuna's tables are.
Result<SqlitePtr> open_optuna(const std::filesystem::path& file) {
  auto connection = SqliteConnection::open_for_reading(file, kPatience);
  if (!connection) return connection;
  FLEETFIT_ASSIGN(
      const auto tables,
      (*connection)
          ->integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN "
                    "('studies', 'trials', "
                    "'version_info', 'trial_params', 'trial_values', 'study_directions', "
                    "'trial_intermediate_values')"));
  FLEETFIT_ASSIGN(
      const auto version_table,
      (*connection)
          ->integer(
              "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'version_info'"));
  if (version_table == 0)
    return (*connection)->failure(ErrorCode::invalid_input, "it is no file of Optuna");
  FLEETFIT_ASSIGN(const auto version,
                  (*connection)->integer("SELECT max(schema_version) FROM version_info"));
  if (tables != 7 || version != kSchemaVersion)
    return (*connection)
        ->failure(ErrorCode::unsupported,
                  fmt::format("it is of another version of Optuna than 3 (tables of version {}); "
                              "`optuna storage upgrade` brings older files to it",
                              version));
  return connection;
}

}  // namespace

Result<std::vector<std::string>> list_optuna_studies(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto connection, open_optuna(file));
  return connection->all<std::string>("SELECT study_name FROM studies ORDER BY study_id");
}

Result<OptunaStudy> read_optuna_study(const std::filesystem::path& file, std::string_view name) {
  FLEETFIT_ASSIGN(const auto connection, open_optuna(file));
  return connection->transaction(Transaction::read,
                                 [&] { return StudyReader(*connection).read(name); });
}

}  // namespace fleetfit::store
