#include "fleetfit/study/importing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/json.h"
#include "fleetfit/store/optuna.h"
#include "fleetfit/tune/study.h"
#include "study/optuna_space.h"

namespace fleetfit::study {
namespace {

using store::LevelRecord;
using store::OptunaState;
using store::OptunaStudy;
using store::OptunaTrial;
using store::TrialRecord;
using store::TrialState;

// That a study may have on top of those it brings along.
constexpr std::size_t kMoreTrials = 64;

Result<std::string> chosen_study(const ImportOptions& options) {
  if (!options.study.empty()) return options.study;
  FLEETFIT_ASSIGN(const auto names, store::list_optuna_studies(options.file));
  if (names.size() == 1) return names.front();
  const auto place = options.file.string();
  if (names.empty()) return refuse(fmt::format("{}: it has no study", place));
  return refuse(fmt::format("{}: it has {} studies, name one of them: {}", place, names.size(),
                            fmt::join(names, ", ")));
}

// What a trial reported on the way counts as epochs.
std::int64_t epochs_of(const OptunaStudy& study) {
  std::size_t most = 1;
  for (const auto& trial : study.trials) most = std::max(most, trial.intermediate.size());
  return static_cast<std::int64_t>(most);
}

std::string objective_text(const OptunaStudy& study) {
  if (study.maximize.size() == 1)
    return study.maximize[0] ? "{maximize: accuracy}" : "{minimize: loss}";
  std::string goals;
  for (std::size_t i = 0; i < study.maximize.size(); ++i)
    goals += fmt::format("{}{{{}: value_{}}}", i == 0 ? "" : ", ",
                         study.maximize[i] ? "maximize" : "minimize", i);
  return "[" + goals + "]";
}

std::string definition_of(const OptunaStudy& study, const OptunaSpace& space,
                          const std::string& name, const ImportOptions& options) {
  const auto text = [](const nlohmann::json& value) { return core::format_json_line(value); };
  std::string definition = fmt::format(
      "# Brought in from Optuna's study {}.\nname: {}\nworkload:\n", text(study.name), text(name));
  if (options.command.empty())
    definition +=
        "  # The program that trains. None is needed to ask for trials and tell their results.\n"
        "  command: [ask-and-tell]\n";
  else
    definition += fmt::format("  command: {}\n", text(options.command));
  definition += "parameters:\n  training:\n" + space.definition("    ");
  definition += fmt::format("objective: {}\n", objective_text(study));
  const auto epochs = epochs_of(study);
  definition +=
      fmt::format("budget: {{kind: epochs, min_epochs: {}, max_epochs: {}, max_trials: {}}}\n",
                  epochs, epochs, study.trials.size() + kMoreTrials);
  definition +=
      fmt::format("algorithm: {{model: {}}}\n", study.maximize.size() == 1 ? "tpe" : "nsga2");
  return definition;
}

double seconds_of(const OptunaTrial& trial) {
  if (!trial.started || !trial.completed) return 0;
  const std::chrono::duration<double> seconds = *trial.completed - *trial.started;
  return std::max(0.0, seconds.count());
}

std::string epoch_values(const OptunaTrial& trial) {
  auto list = nlohmann::json::array();
  for (const auto& [step, value] : trial.intermediate)
    if (std::isfinite(value)) list.push_back(value);
  return core::format_json_line(list);
}

LevelRecord level_of(const OptunaStudy& study, const OptunaTrial& trial) {
  LevelRecord level{.epochs = epochs_of(study),
                    .training_s = seconds_of(trial),
                    .worker = "optuna",
                    .started = trial.started.value_or(store::Time{}),
                    .ended = trial.completed.value_or(store::Time{})};
  if (study.maximize.size() > 1) {
    auto metrics = nlohmann::json::object();
    for (std::size_t i = 0; i < trial.values.size(); ++i)
      metrics[fmt::format("value_{}", i)] = trial.values[i];
    level.metrics = core::format_json_line(metrics);
  } else if (study.maximize[0]) {
    level.accuracy = trial.values[0];
    level.epoch_values = epoch_values(trial);
  } else {
    level.loss = trial.values[0];
  }
  return level;
}

void end_as_failed(TrialRecord& record, std::string reason) {
  record.state = TrialState::failed;
  record.reason = std::move(reason);
}

void end_as_complete(TrialRecord& record, const OptunaStudy& study, const OptunaTrial& trial) {
  if (trial.values.size() != study.maximize.size())
    return end_as_failed(record, "Optuna has no value of it");
  if (!std::ranges::all_of(trial.values, [](double value) { return std::isfinite(value); }))
    return end_as_failed(record, "its value is not finite");
  record.state = TrialState::finished;
  record.levels = {level_of(study, trial)};
  record.score = study.maximize[0] ? -trial.values[0] : trial.values[0];
}

void end_as_in_optuna(TrialRecord& record, const OptunaStudy& study, const OptunaTrial& trial) {
  record.attempts = 1;
  record.worker = "optuna";
  if (trial.state == OptunaState::complete) return end_as_complete(record, study, trial);
  if (trial.state == OptunaState::failed) return end_as_failed(record, "it failed in Optuna");
  record.state = TrialState::stopped;
  record.reason = fmt::format("pruned by Optuna after {} steps", trial.intermediate.size());
}

bool has_ended(const OptunaTrial& trial) {
  return trial.state != OptunaState::running && trial.state != OptunaState::waiting;
}

struct Trials {
  std::vector<TrialRecord> records = {};
  std::int64_t left_out = 0;
};

Trials trials_of(const OptunaStudy& study, const OptunaSpace& space,
                 const tune::Parameters& parameters) {
  Trials trials;
  for (const auto& trial : study.trials) {
    const nlohmann::json values = space.values(trial);
    if (!has_ended(trial) || !parameters.from_json(core::JsonView(values, "trial"))) {
      ++trials.left_out;
      continue;
    }
    TrialRecord record{.number = static_cast<std::int64_t>(trials.records.size()),
                       .params = core::format_json_line(values)};
    end_as_in_optuna(record, study, trial);
    trials.records.push_back(std::move(record));
  }
  return trials;
}

// From the first trial's start to the last one's end.
double span_s(const OptunaStudy& study) {
  std::optional<store::Time> first;
  std::optional<store::Time> last;
  for (const auto& trial : study.trials) {
    if (trial.started) first = std::min(first.value_or(*trial.started), *trial.started);
    if (trial.completed) last = std::max(last.value_or(*trial.completed), *trial.completed);
  }
  if (!first || !last) return 0;
  return std::max(0.0, std::chrono::duration<double>(*last - *first).count());
}

Status save(store::StudyStore& studies, const store::StudyRecord& study, const Trials& trials) {
  FLEETFIT_TRY(studies.create_study(study));
  const auto added = studies.add_trials(study.name, trials.records);
  if (added && *added) return {};
  // Without its trials the study is worth nothing, and would be in the way of another attempt.
  static_cast<void>(studies.remove_study(study.name));
  FLEETFIT_TRY(added);
  return fail(ErrorCode::io, fmt::format("study '{}' is being worked on already", study.name));
}

}  // namespace

Result<ImportedStudy> import_optuna_study(const StudyPlace& place, const ImportOptions& options) {
  FLEETFIT_ASSIGN(const auto chosen, chosen_study(options));
  FLEETFIT_ASSIGN(const auto study, store::read_optuna_study(options.file, chosen));
  FLEETFIT_ASSIGN(const auto space, core::within(options.file.string(), OptunaSpace::of(study)));

  ImportedStudy imported{.name = options.name.empty() ? study.name : options.name};
  imported.definition = definition_of(study, space, imported.name, options);
  FLEETFIT_ASSIGN(
      const auto parsed,
      core::within(options.file.string(), tune::parse_study(imported.definition, "study file")));

  const auto trials = trials_of(study, space, parsed.parameters);
  imported.left_out = trials.left_out;
  auto& studies = place.studies;
  const store::StudyRecord record{
      .name = imported.name,
      .definition = imported.definition,
      .seed = parsed.seed,
      .created = std::chrono::floor<std::chrono::milliseconds>(place.clock.date()),
      .tuning_s = span_s(study)};
  FLEETFIT_TRY(save(studies, record, trials));
  FLEETFIT_ASSIGN(imported.trials, studies.count_trials(imported.name));
  return imported;
}

nlohmann::ordered_json to_json(const ImportedStudy& study) {
  return {{"name", study.name},
          {"finished", study.trials.finished},
          {"stopped", study.trials.stopped},
          {"failed", study.trials.failed},
          {"left_out", study.left_out},
          {"definition", study.definition}};
}

}  // namespace fleetfit::study
