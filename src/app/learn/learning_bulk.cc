#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "fleetfit/app/learning.h"
#include "fleetfit/core/clock.h"
#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/process_info.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/learned/lessons.h"

namespace fleetfit::app {
namespace {

constexpr std::size_t kBlock = 4096;  // devices whose answers are in memory at once

struct OneAnswer {
  double budget_ms = 0;
  learned::Answer answer;
};

Result<std::vector<learned::DeviceVector>> read_known(const learned::Model& model,
                                                      const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto features, learned::read_device_features(file));
  std::vector<learned::DeviceVector> known;
  for (std::size_t i = 0; i < features.devices.size(); ++i) {
    FLEETFIT_ASSIGN(auto device, learned::device_of(model, features, i));
    known.push_back(std::move(device));
  }
  if (known.empty())
    return fail(ErrorCode::invalid_input, file.string() + ": there are no devices");
  return known;
}

/// Answers that were given so far, and the table that they go to.
class Account {
 public:
  Account(const learned::Model& model, LearnBulkReport& report) : model_(model), report_(report) {}

  Status open(const std::filesystem::path& path) {
    if (path.empty()) return {};
    FLEETFIT_ASSIGN(writer_, core::FileWriter::open(path));
    return writer_->write("device,budget_ms,design,latency_ms,accuracy,within\n");
  }

  Status add(std::size_t first, std::span<const OneAnswer> answers) {
    std::string lines;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto& [budget_ms, one] = answers[i];
      ++report_.devices;
      if (one.keeps_limits) ++report_.within;
      if (!one.doubts.empty()) ++report_.unsure;
      designs_.insert(one.design);
      if (!writer_) continue;
      lines += fmt::format("{},{:.6g},{},{:.6g},{:.6g},{}\n", first + i, budget_ms,
                           model_.space().format(one.design), one.costs[0].value, one.accuracy,
                           one.keeps_limits ? 1 : 0);
    }
    return writer_ ? writer_->write(lines) : Status();
  }

  Status close() {
    report_.designs = designs_.size();
    return writer_ ? writer_->commit() : Status();
  }

 private:
  const learned::Model& model_;
  LearnBulkReport& report_;
  std::optional<core::FileWriter> writer_;
  std::set<std::vector<space::Choice>> designs_;
};

OneAnswer answer_for(const learned::Model& model, std::span<const learned::DeviceVector> known,
                     double budget_factor, core::Random random) {
  const learned::DeviceJudge judge(model,
                                   learned::synthetic_device(model.parts().device, known, random));
  const double budget_ms = budget_factor * std::exp(judge.typical(0));
  learned::Goal goal{.limits = {budget_ms}};
  goal.limits.resize(model.parts().costs.size(), INFINITY);
  return {.budget_ms = budget_ms, .answer = learned::answer(judge, goal)};
}

}  // namespace

Result<LearnBulkReport> learn_bulk(const LearnBulkRequest& request, core::Progress& progress,
                                   const std::stop_token& stop) {
  if (!(request.budget_factor > 0) || !std::isfinite(request.budget_factor))
    return fail(ErrorCode::invalid_input, "--budget-factor is not positive");
  FLEETFIT_ASSIGN(auto model, learned::read_model(request.model));
  FLEETFIT_ASSIGN(const auto known, read_known(model, request.device_features));
  core::ThreadPool pool(request.threads);
  model.remember_designs(pool);
  const auto random = core::Random(request.seed).split("bulk");
  LearnBulkReport report;
  Account account(model, report);
  FLEETFIT_TRY(account.open(request.output));
  core::ProgressTask task(progress,
                          {.name = "answer", .total = request.devices, .unit = "devices"});
  const core::SystemClock clock;
  const auto start = clock.now();
  std::vector<OneAnswer> answers;
  for (std::size_t first = 0; first < request.devices; first += kBlock) {
    if (stop.stop_requested()) return fail(ErrorCode::cancelled, "interrupted");
    answers.resize(std::min(kBlock, request.devices - first));
    pool.parallel_for(answers.size(), [&](std::size_t i) {
      answers[i] = answer_for(model, known, request.budget_factor, random.split(first + i));
    });
    FLEETFIT_TRY(account.add(first, answers));
    task.advance(answers.size());
  }
  report.elapsed_s = std::chrono::duration<double>(clock.now() - start).count();
  report.answer_us = 1e6 * report.elapsed_s * pool.workers() /
                     static_cast<double>(std::max<std::size_t>(report.devices, 1));
  FLEETFIT_TRY(account.close());
  report.peak_memory_bytes = core::peak_memory_bytes();
  return report;
}

FLEETFIT_REPORT(LearnBulkReport, devices, within, unsure, designs, elapsed_s, answer_us,
                peak_memory_bytes)

}  // namespace fleetfit::app
