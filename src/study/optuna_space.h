#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/store/optuna.h"

namespace fleetfit::study {

/// What an Optuna study varies, over all of its trials, in the words of study files.
class OptunaSpace {
 public:
  /// Fails with `invalid_input` if there is no parameter, or one is a choice in some trials and a
  /// number in others.
  static Result<OptunaSpace> of(const store::OptunaStudy& study);

  /// The lines of a study file with the parameters, each beginning with `indent`.
  std::string definition(const std::string& indent) const;

  /// {"name": value, …} of a trial.
  nlohmann::ordered_json values(const store::OptunaTrial& trial) const;

 private:
  struct Condition {
    std::size_t parameter = 0;
    std::vector<nlohmann::json> values = {};
  };
  struct Parameter {
    std::string name = {};
    bool is_choice = false;                   ///< in Optuna
    std::vector<nlohmann::json> values = {};  ///< to choose from; empty: a range
    bool integer = true;
    bool log = true;
    double low = 0;
    double high = 0;
    std::optional<double> step = std::nullopt;
    std::optional<Condition> when = std::nullopt;
  };

  Status add(const store::OptunaStudy& study, const store::OptunaParameter& parameter);
  static void add_choices(Parameter& known, const store::OptunaDistribution& distribution);
  static void add_range(Parameter& known, const store::OptunaDistribution& distribution,
                        bool is_new);
  void list_steps();
  void find_conditions(const store::OptunaStudy& study);
  std::optional<Condition> condition_of(const store::OptunaStudy& study,
                                        std::size_t parameter) const;
  std::optional<std::size_t> find(const std::string& name) const;
  nlohmann::json value_of(const store::OptunaParameter& parameter) const;
  std::string line(const Parameter& parameter) const;

  const store::OptunaStudy* study_ = nullptr;  // while it is made and asked
  std::vector<Parameter> parameters_;
};

}  // namespace fleetfit::study
