#include "store/check.h"

#include <fmt/format.h>

#include "store/field_check.h"

namespace fleetfit::store {
namespace {

void check_latency(FieldCheck& fields, const MeasurementRecord& measurement) {
  if (!measurement.latency) {
    if (measurement.status == MeasurementStatus::ok)
      fields.refuse("latency", "is missing though the status is ok");
    return;
  }
  fields.number("median_ms", measurement.latency->median_ms);
  fields.number("mean_ms", measurement.latency->mean_ms);
  fields.number("p90_ms", measurement.latency->p90_ms);
  fields.number("p99_ms", measurement.latency->p99_ms);
  fields.number("ci95_low_ms", measurement.latency->ci95_low_ms);
  fields.number("ci95_high_ms", measurement.latency->ci95_high_ms);
}

Status check(const OperatorRecord& op, std::size_t position) {
  FieldCheck fields(fmt::format("measurement: operators[{}]", position));
  fields.text("name", op.name);
  fields.text("type", op.type);
  fields.text("kernel", op.kernel);
  fields.number("ms", op.ms);
  return fields.result();
}

void check_end(FieldCheck& fields, TrialState state, std::string_view reason) {
  fields.text("reason", reason);
  if (state == TrialState::failed && reason.empty())
    fields.refuse("reason", "is empty though the trial has failed");
}

Status check(const LevelRecord& level, std::int64_t trial) {
  FieldCheck fields(fmt::format("trial {}: level {}", trial, level.level));
  fields.count("level", level.level);
  fields.count("epochs", level.epochs);
  fields.number("data_fraction", level.data_fraction);
  if (level.data_fraction < 0 || level.data_fraction > 1)
    fields.refuse("data_fraction", fmt::format("is {}, not from 0 to 1", level.data_fraction));
  fields.number("accuracy", level.accuracy);
  if (level.loss) fields.number("loss", *level.loss);
  fields.amount("training_s", level.training_s);
  fields.amount("training_j", level.training_j);
  fields.json("metrics", level.metrics);
  fields.json_array("epoch_values", level.epoch_values);
  fields.text("worker", level.worker);
  return fields.result();
}

// Each level once, lowest first, and none above the one that the trial is in.
Status check_levels(const TrialRecord& trial) {
  std::int64_t above = 0;
  for (const auto& level : trial.levels) {
    if (auto checked = check(level, trial.number); !checked) return checked;
    FieldCheck fields(fmt::format("trial {}", trial.number));
    if (level.level < above) fields.refuse("levels", "are not in increasing order");
    if (level.level > trial.level) fields.refuse("level", "is below one that it has ended");
    if (!fields.passed()) return fields.result();
    above = level.level + 1;
  }
  return {};
}

Status check(const QueueLevel& decision) {
  FieldCheck fields(fmt::format("trial {}", decision.trial));
  fields.count("level", decision.level);
  return fields.result();
}

Status check(const EndTrial& decision) {
  FieldCheck fields(fmt::format("trial {}", decision.trial));
  if (!has_ended(decision.state))
    fields.refuse("state", fmt::format("is {}, which is no end", to_string(decision.state)));
  check_end(fields, decision.state, decision.reason);
  return fields.result();
}

Status check(const SaveScore& decision) {
  FieldCheck fields(fmt::format("trial {}", decision.trial));
  if (decision.score) fields.number("score", *decision.score);
  return fields.result();
}

}  // namespace

Status check(const DeviceRecord& device) {
  FieldCheck fields("device");
  fields.key("name", device.name);
  fields.text("fingerprint", device.fingerprint);
  fields.json("settings", device.settings);
  return fields.result();
}

Status check(const ModelRecord& model) {
  FieldCheck fields("model");
  fields.key("hash", model.hash);
  fields.text("name", model.name);
  fields.text("source", model.source);
  fields.count("bytes", model.bytes);
  return fields.result();
}

Status check(const MeasurementRecord& measurement) {
  FieldCheck fields("measurement");
  fields.key("device", measurement.device);
  fields.text("device_fingerprint", measurement.device_fingerprint);
  fields.text("model_hash", measurement.model_hash);
  fields.text("model_name", measurement.model_name);
  if (measurement.space) fields.text("space", *measurement.space);
  if (measurement.design) fields.text("design", *measurement.design);
  fields.text("reason", measurement.reason);
  if (measurement.status != MeasurementStatus::ok && measurement.reason.empty())
    fields.refuse("reason", "is empty though the status is not ok");
  check_latency(fields, measurement);
  fields.count("runs", measurement.runs);
  if (measurement.overhead_ms) fields.number("overhead_ms", *measurement.overhead_ms);
  if (measurement.peak_memory_bytes)
    fields.count("peak_memory_bytes", *measurement.peak_memory_bytes);
  if (measurement.energy) fields.number("energy_mj", measurement.energy->mj);
  fields.json("protocol", measurement.protocol);
  fields.json("conditions", measurement.conditions);
  if (!fields.passed()) return fields.result();

  for (std::size_t i = 0; i < measurement.operators.size(); ++i)
    if (auto checked = check(measurement.operators[i], i); !checked) return checked;
  return {};
}

Status check(const KernelChoiceRecord& choice) {
  FieldCheck fields("kernel choice");
  fields.key("cpu", choice.cpu);
  fields.key("key", choice.key);
  fields.text("choice", choice.choice);
  if (choice.ms) fields.number("ms", *choice.ms);
  return fields.result();
}

Status check(const StudyRecord& study) {
  FieldCheck fields("study");
  fields.key("name", study.name);
  fields.text("definition", study.definition);
  fields.amount("tuning_s", study.tuning_s);
  fields.amount("tuning_j", study.tuning_j);
  return fields.result();
}

Status check(const TrialRecord& trial) {
  FieldCheck fields(fmt::format("trial {}", trial.number));
  fields.count("number", trial.number);
  fields.json("params", trial.params);
  fields.count("bracket", trial.bracket);
  fields.count("level", trial.level);
  check_end(fields, trial.state, trial.reason);
  fields.text("structure", trial.structure);
  fields.text("model_file", trial.model_file);
  fields.count("attempts", trial.attempts);
  fields.text("worker", trial.worker);
  if (trial.state == TrialState::running && trial.worker.empty())
    fields.refuse("worker", "is empty though the trial is running");
  if (trial.lease_until && trial.state != TrialState::running)
    fields.refuse("lease_until", "is there though the trial is not running");
  fields.text("progress", trial.progress);
  if (trial.score) fields.number("score", *trial.score);
  if (!fields.passed()) return fields.result();
  return check_levels(trial);
}

Status check(const InferenceRecord& inference) {
  FieldCheck fields("inference");
  fields.key("structure", inference.structure);
  fields.key("device_fingerprint", inference.device_fingerprint);
  fields.key("question", inference.question);
  fields.text("device", inference.device);
  fields.json("result", inference.result);
  fields.amount("elapsed_s", inference.elapsed_s);
  fields.text("study", inference.study);
  return fields.result();
}

Status check(const LevelEnd& end) {
  if (auto checked = check(end.level, end.claim.trial); !checked) return checked;
  FieldCheck fields(fmt::format("trial {}", end.claim.trial));
  fields.text("model_file", end.model_file);
  return fields.result();
}

Status check(const TrialDecision& decision) {
  return std::visit([](const auto& one) { return check(one); }, decision);
}

Status check_worker(std::string_view worker) {
  FieldCheck fields("claim");
  fields.key("worker", worker);
  return fields.result();
}

Status check_tuner(std::string_view tuner) {
  FieldCheck fields("lead");
  fields.key("tuner", tuner);
  return fields.result();
}

Status check_structure(std::string_view structure, std::string_view model_file) {
  FieldCheck fields("trial");
  fields.key("structure", structure);
  fields.text("model_file", model_file);
  return fields.result();
}

Status check_progress(std::string_view progress) {
  FieldCheck fields("trial");
  fields.text("progress", progress);
  return fields.result();
}

Status check_stop(std::string_view reason) {
  FieldCheck fields("trial");
  fields.text("reason", reason);
  return fields.result();
}

Status check_end_by_worker(TrialState state, std::string_view reason) {
  FieldCheck fields("trial");
  if (state != TrialState::failed && state != TrialState::stopped)
    fields.refuse("state", fmt::format("is {}, which a worker cannot say", to_string(state)));
  check_end(fields, state, reason);
  return fields.result();
}

Status check_spent(double more_s, std::optional<double> more_j) {
  FieldCheck fields("study");
  fields.amount("tuning_s", more_s);
  fields.amount("tuning_j", more_j);
  return fields.result();
}

}  // namespace fleetfit::store
