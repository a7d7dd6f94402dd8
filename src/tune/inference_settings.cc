#include "tune/inference_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace fleetfit::tune {
namespace {

constexpr std::size_t kMostBatches = 4096;
constexpr std::size_t kMostOthers = 10;
constexpr std::size_t kShortList = 6;
constexpr std::int64_t kLargest = 1 << 20;

std::optional<std::int64_t> whole(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<double>(&value); number && std::trunc(*number) == *number)
    return static_cast<std::int64_t>(*number);
  return std::nullopt;
}

Status check_numbers(const Parameter& parameter) {
  const auto good = [](std::int64_t number) { return number >= 1 && number <= kLargest; };
  if (parameter.is_choice()) {
    const bool all = std::ranges::all_of(parameter.values, [&](const Value& value) {
      const auto number = whole(value);
      return number && good(*number);
    });
    if (!all) return refuse(parameter, "has to be whole numbers from 1");
    return {};
  }
  if (!parameter.integer || parameter.low < 1 || parameter.high > static_cast<double>(kLargest))
    return refuse(parameter, "has to be a range of whole numbers from 1, with integer: true");
  return {};
}

Status check_precision(const Parameter& parameter) {
  const auto known = [](const Value& value) {
    const auto* name = std::get_if<std::string>(&value);
    return name != nullptr && (*name == "fp32" || *name == "int8");
  };
  if (parameter.is_choice() && std::ranges::all_of(parameter.values, known)) return {};
  return refuse(parameter, "has to be values out of fp32 and int8");
}

/// Whole numbers of a range: all if there are few, else evenly spread ones.
std::vector<std::int64_t> numbers_of(const Parameter& parameter, std::size_t most) {
  std::set<std::int64_t> numbers;
  if (parameter.is_choice()) {
    for (const auto& value : parameter.values) numbers.insert(whole(value).value_or(1));
  } else {
    const double count = std::min(parameter.high - parameter.low + 1, static_cast<double>(most));
    for (double i = 0; i < count; ++i) {
      const double share = count > 1 ? i / (count - 1) : 0;
      numbers.insert(std::llround(std::lerp(parameter.low, parameter.high, share)));
    }
  }
  return {numbers.begin(), numbers.end()};
}

std::vector<std::optional<std::int64_t>> optional_numbers(const Parameters& parameters,
                                                          std::string_view name) {
  const auto index = parameters.find(name);
  if (!index) return {std::nullopt};
  const auto numbers = numbers_of(parameters.all()[*index], kMostOthers);
  return {numbers.begin(), numbers.end()};
}

std::vector<std::optional<std::string>> precisions_of(const Parameters& parameters) {
  const auto index = parameters.find("precision");
  if (!index) return {std::nullopt};
  std::vector<std::optional<std::string>> names;
  for (const auto& value : parameters.all()[*index].values)
    names.emplace_back(std::get<std::string>(value));
  return names;
}

std::vector<std::int64_t> batches_of(const InferenceStudy& study) {
  if (study.scenario.kind == ScenarioKind::single) return {1};
  const auto index = study.parameters.find("batch_size");
  if (!index) return {1};
  auto batches = numbers_of(study.parameters.all()[*index], kMostBatches);
  if (study.scenario.kind != ScenarioKind::server) return batches;
  // A batch that holds a whole query does not become better by being larger.
  const auto enough = std::ranges::lower_bound(batches, study.scenario.samples);
  if (enough != batches.end()) batches.erase(enough + 1, batches.end());
  return batches;
}

std::optional<double> between(const std::optional<double>& a, const std::optional<double>& b,
                              double share) {
  if (!a || !b) return std::nullopt;
  return std::lerp(*a, *b, share);
}

std::optional<RunSpread> between(const std::optional<RunSpread>& a,
                                 const std::optional<RunSpread>& b, double share) {
  if (!a || !b) return std::nullopt;
  return RunSpread{.mean_ms = std::lerp(a->mean_ms, b->mean_ms, share),
                   .p90_ms = std::lerp(a->p90_ms, b->p90_ms, share),
                   .p99_ms = std::lerp(a->p99_ms, b->p99_ms, share)};
}

BatchCost scaled(BatchCost cost, double factor) {
  cost.latency_ms *= factor;
  if (cost.energy_mj) *cost.energy_mj *= factor;
  if (cost.spread)
    cost.spread = RunSpread{.mean_ms = factor * cost.spread->mean_ms,
                            .p90_ms = factor * cost.spread->p90_ms,
                            .p99_ms = factor * cost.spread->p99_ms};
  return cost;
}

Status stopped() { return fail(ErrorCode::cancelled, "inference tuning was stopped"); }

}  // namespace

Status check_inference_parameters(const Parameters& parameters) {
  for (const auto& parameter : parameters.all()) {
    if (parameter.when) return refuse(parameter, "inference takes no conditions");
    const bool number =
        parameter.name == "batch_size" || parameter.name == "cores" || parameter.name == "threads";
    if (!number && parameter.name != "precision")
      return refuse(parameter, "inference has batch_size, cores, threads and precision");
    if (auto ok = number ? check_numbers(parameter) : check_precision(parameter); !ok) return ok;
  }
  return {};
}

InferenceChoices choices_of(const InferenceStudy& study) {
  return {.batches = batches_of(study),
          .cores = optional_numbers(study.parameters, "cores"),
          .threads = optional_numbers(study.parameters, "threads"),
          .precisions = precisions_of(study.parameters)};
}

InferenceSetting setting_of(const Parameters& parameters, std::span<const double> point) {
  InferenceSetting setting;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& parameter = parameters.all()[i];
    if (parameter.name == "precision") {
      setting.precision =
          std::get<std::string>(parameter.values[static_cast<std::size_t>(point[i])]);
      continue;
    }
    const auto number =
        parameter.is_choice()
            ? whole(parameter.values[static_cast<std::size_t>(point[i])]).value_or(1)
            : std::llround(point[i]);
    if (parameter.name == "batch_size") setting.batch = number;
    if (parameter.name == "cores") setting.cores = number;
    if (parameter.name == "threads") setting.threads = number;
  }
  return setting;
}

std::vector<std::int64_t> first_batches(std::span<const std::int64_t> batches) {
  if (batches.size() <= kShortList) return {batches.begin(), batches.end()};
  std::set<std::int64_t> chosen = {batches.front(), batches.back()};
  for (std::int64_t power = 1; power < batches.back(); power *= 2) {
    if (power <= batches.front()) continue;
    const auto above = std::ranges::lower_bound(batches, power);
    const auto below = above - 1;
    chosen.insert(*above - power <= power - *below ? *above : *below);
  }
  return {chosen.begin(), chosen.end()};
}

void BatchCosts::add_in_rhythm(std::int64_t batch, const BatchCost& cost) {
  const double slower = cost.mean_ms() / at(batch).mean_ms();
  in_rhythm_.insert(batch);
  for (auto& [other, known] : known_)
    if (!in_rhythm_.contains(other)) known = scaled(known, slower);
  known_[batch] = cost;
}

BatchCost BatchCosts::at(std::int64_t batch) const {
  const auto above = known_.lower_bound(batch);
  if (above == known_.end()) return known_.empty() ? BatchCost() : known_.rbegin()->second;
  if (above == known_.begin() || above->first == batch) return above->second;
  const auto& [low, below] = *std::prev(above);
  const double share = static_cast<double>(batch - low) / static_cast<double>(above->first - low);
  return {.latency_ms = std::lerp(below.latency_ms, above->second.latency_ms, share),
          .energy_mj = between(below.energy_mj, above->second.energy_mj, share),
          .spread = between(below.spread, above->second.spread, share)};
}

std::optional<std::int64_t> BatchCosts::known_below(std::int64_t batch) const {
  const auto at = known_.lower_bound(batch);
  if (at == known_.begin()) return std::nullopt;
  return std::prev(at)->first;
}

std::optional<std::int64_t> BatchCosts::known_above(std::int64_t batch) const {
  const auto at = known_.upper_bound(batch);
  if (at == known_.end()) return std::nullopt;
  return at->first;
}

InferenceSetting with_batch(InferenceSetting setting, std::int64_t batch) {
  setting.batch = batch;
  return setting;
}

BatchCosts& PricedSettings::costs_of(const InferenceSetting& setting) {
  const auto key = with_batch(setting, 1);
  const auto at = std::ranges::find(costs_, key, &std::pair<InferenceSetting, BatchCosts>::first);
  if (at != costs_.end()) return at->second;
  return costs_.emplace_back(key, BatchCosts()).second;
}

InferenceTrial* PricedSettings::find(const InferenceSetting& setting) {
  const auto at = std::ranges::find(trials_, setting, &InferenceTrial::setting);
  return at == trials_.end() ? nullptr : &*at;
}

bool PricedSettings::has_failed(const InferenceSetting& setting) {
  const auto* known = find(setting);
  return known != nullptr && !known->cost;
}

bool PricedSettings::forms_partial_batches() const {
  return scenario_.kind == ScenarioKind::server || scenario_.kind == ScenarioKind::multistream;
}

Status PricedSettings::price(const InferenceSetting& setting) {
  if (setting.batch > 1 && forms_partial_batches()) {
    FLEETFIT_TRY(price(with_batch(setting, 1), For::others));
  }
  return price(setting, For::itself);
}

Status PricedSettings::price(const InferenceSetting& setting, For what) {
  const bool asked = what == For::itself;
  if (auto* known = find(setting)) {
    if (asked && !known->asked) ++asked_;
    known->asked = known->asked || asked;
    return {};
  }
  if (stop_.stop_requested()) return stopped();
  auto cost = price_(setting, std::nullopt);
  if (!cost && cost.error().code == ErrorCode::cancelled) return tl::unexpected(cost.error());
  InferenceTrial trial{.setting = setting, .asked = asked};
  if (asked) ++asked_;
  if (cost) {
    costs_of(setting).add(setting.batch, cost->cost);
    trial.cost = *std::move(cost);
  } else {
    trial.reason = cost.error().message;
  }
  trials_.push_back(std::move(trial));
  return {};
}

Response PricedSettings::respond(const InferenceSetting& setting, SimulationOptions options) {
  options.seed = tuning_.seed;
  const auto& costs = costs_of(setting);
  return simulate(scenario_, setting.batch, [&](std::int64_t n) { return costs.at(n); }, options);
}

Status PricedSettings::look_at(std::size_t number, int looks) {
  auto& trial = trials_[number];
  const auto rhythm = rhythm_of(scenario_, trial.response);
  auto* one = find(with_batch(trial.setting, 1));
  const bool full = trial.response.run_samples >= static_cast<double>(trial.setting.batch);
  if (rhythm && !full && one != nullptr && one != &trial && one->cost) {
    FLEETFIT_TRY(measure_again(*one, rhythm, looks));
  }
  return measure_again(trial, rhythm, looks);
}

Status PricedSettings::measure_again(InferenceTrial& trial, const std::optional<Rhythm>& rhythm,
                                     int looks) {
  std::vector<InferenceCost> seen;
  for (int i = 0; i < looks; ++i) {
    if (stop_.stop_requested()) return stopped();
    auto cost = price_(trial.setting, rhythm);
    if (!cost && cost.error().code == ErrorCode::cancelled) return tl::unexpected(cost.error());
    if (cost) seen.push_back(*std::move(cost));
  }
  if (seen.empty()) return {};
  const auto middle = seen.begin() + (std::ssize(seen) - 1) / 2;
  std::ranges::nth_element(seen, middle, {}, [](const auto& one) { return one.cost.mean_ms(); });
  auto& costs = costs_of(trial.setting);
  if (rhythm) {
    costs.add_in_rhythm(trial.setting.batch, middle->cost);
  } else {
    costs.add(trial.setting.batch, middle->cost);
  }
  trial.cost = std::move(*middle);
  return {};
}

void PricedSettings::respond_all() {
  for (auto& trial : trials_)
    if (trial.cost) trial.response = respond(trial.setting, {});
}

}  // namespace fleetfit::tune
