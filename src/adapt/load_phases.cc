#include "adapt/load_phases.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleetfit/core/report_fields.h"
#include "fleetfit/core/statistics.h"

namespace fleetfit::adapt {
namespace {

constexpr double kBinsPerSecond = 10;
constexpr std::int64_t kBinsToSettle = 10;  // a second
constexpr std::size_t kLookAhead = 5;
constexpr std::size_t kHistory = 20;
constexpr std::size_t kLeastHistory = 3;
constexpr std::size_t kMostPhases = 100;
// Another load changes times by more; other subnets and noise change them by less.
constexpr double kClearFactor = 1.3;
constexpr double kBinFactor = 1.2;

/// Of at least one value.
double median_of(const auto& values) {
  return core::median(std::vector<double>(values.begin(), values.end())).value_or(1);
}

void add_settled(LoadPhase& phase, const LoadPhase& bin) {
  const auto before = static_cast<double>(phase.settled);
  const auto more = static_cast<double>(bin.requests);
  phase.accuracy = (phase.accuracy * before + bin.accuracy * more) / (before + more);
  phase.settled += bin.requests;
  phase.settled_within_budget += bin.within_budget;
  phase.labelled += bin.labelled;
  phase.right += bin.right;
}

}  // namespace

void LoadPhases::record(const ServedRequest& request) {
  const auto number = static_cast<std::int64_t>(std::floor(request.time_s * kBinsPerSecond));
  if (open_ && open_->number != number) close_bin();
  if (!open_) open_ = Bin{.number = number, .ratios = {}, .counts = {}};
  open_->ratios.push_back(request.ratio);
  auto& counts = open_->counts;
  const auto before = static_cast<double>(counts.requests);
  counts.accuracy = (counts.accuracy * before + request.accuracy) / (before + 1);
  ++counts.requests;
  if (request.within_budget) ++counts.within_budget;
  if (request.right) ++counts.labelled;
  if (request.right.value_or(false)) ++counts.right;
  counts.last_accuracy = request.accuracy;
  counts.subnet = request.subnet;
}

void LoadPhases::close_bin() {
  pending_.push_back(*std::exchange(open_, std::nullopt));
  pending_.back().ratios = {median_of(pending_.back().ratios)};
  if (pending_.size() < kLookAhead) return;
  if (const auto change = find_change()) {
    for (std::size_t i = 0; i < *change; ++i) settle_oldest();
    begin_phase(pending_.front().number);
    return;
  }
  settle_oldest();
}

/// The first of the pending bins that is of another load.
std::optional<std::size_t> LoadPhases::find_change() const {
  if (history_.size() < kLeastHistory) return std::nullopt;
  const double level = median_of(history_);
  std::vector<double> ratios;
  for (const auto& bin : pending_) ratios.push_back(bin.ratios.front() / level);
  const double now = median_of(ratios);
  if (now < kClearFactor && now > 1 / kClearFactor) return std::nullopt;
  const auto differs = [&](double ratio) {
    return now > 1 ? ratio > kBinFactor : ratio < 1 / kBinFactor;
  };
  if (std::ranges::count_if(ratios, differs) + 1 < std::ssize(ratios)) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::find_if(ratios, differs) - ratios.begin());
}

void LoadPhases::settle_oldest() {
  const Bin bin = std::move(pending_.front());
  pending_.pop_front();
  if (report_.phases.empty()) begin_phase(bin.number);
  auto& phase = report_.phases.back();
  phase.requests += bin.counts.requests;
  phase.within_budget += bin.counts.within_budget;
  phase.last_accuracy = bin.counts.last_accuracy;
  phase.subnet = bin.counts.subnet;
  if (bin.number >= phase_begin_ + kBinsToSettle) {
    add_settled(phase, bin.counts);
    report_.settled += bin.counts.requests;
    report_.settled_within_budget += bin.counts.within_budget;
  }
  history_.push_back(bin.ratios.front());
  if (history_.size() > kHistory) history_.pop_front();
  phase.ratio = median_of(history_);
}

void LoadPhases::begin_phase(std::int64_t bin) {
  if (!report_.phases.empty()) ++report_.changes;
  if (report_.phases.size() == kMostPhases) report_.phases.erase(report_.phases.begin());
  report_.phases.push_back({.start_s = static_cast<double>(bin) / kBinsPerSecond});
  phase_begin_ = bin;
  history_.clear();
}

LoadReport LoadPhases::report() const {
  LoadPhases all = *this;
  if (all.open_) all.close_bin();
  while (!all.pending_.empty()) all.settle_oldest();
  return std::move(all.report_);
}

std::optional<double> share_of(std::size_t part, std::size_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

core::Fields fields_of(const LoadPhase*) {
  using Phase = LoadPhase;
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(Phase, start_s, ratio, requests),
      core::computed("within_budget",
                     [](const Phase& p) { return share_of(p.within_budget, p.requests); }),
      core::computed("within_budget_after_1s",
                     [](const Phase& p) { return share_of(p.settled_within_budget, p.settled); }),
      core::computed(
          "expected_accuracy",
          [](const Phase& p) { return p.settled > 0 ? std::optional(p.accuracy) : std::nullopt; }),
      core::computed("accuracy", [](const Phase& p) { return share_of(p.right, p.labelled); }),
      FLEETFIT_MEMBERS(Phase, subnet)};
  return {.all = kAll};
}

core::Fields fields_of(const LoadReport*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(LoadReport, changes),
      core::written_field<LoadReport, accuracy_returned>("accuracy_returned"),
      FLEETFIT_MEMBERS(LoadReport, phases)};
  return {.all = kAll};
}

std::optional<bool> accuracy_returned(const LoadReport& report) {
  const auto& phases = report.phases;
  if (phases.size() < 3) return std::nullopt;
  const auto heaviest = std::ranges::max_element(phases, {}, &LoadPhase::ratio);
  if (heaviest == phases.begin() || heaviest + 1 == phases.end()) return std::nullopt;
  return phases.back().last_accuracy >= phases.front().last_accuracy;
}

}  // namespace fleetfit::adapt
