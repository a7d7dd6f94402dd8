#include "app/measuring_designs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "app/dates.h"
#include "app/measurement_records.h"
#include "app/model_session.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/space/space.h"
#include "fleetfit/tune/patience.h"

namespace fleetfit::app {
namespace {

using store::MeasurementRecord;

// What comes to the measuring itself for each design on each device: building and loading the
// network, choosing kernels for it.
constexpr double kPreparingSeconds = 0.7;
constexpr std::size_t kDesignsBeforeSecondEstimate = 5;

struct DesignToMeasure {
  std::size_t number;
  std::string text;
  std::string hash;
};

/// Stands for the network: the same text may mean another one in another version.
std::string hash_of(const NamedSpace& space, const std::string& text) {
  return core::sha256_hex(fmt::format("{} {} {}", space.name, space.space.version(), text));
}

/// Whether the design needs no measuring.
bool is_done(const MeasurementRecord& record, const DesignsRequest& request) {
  const bool again = request.retry_unstable && record.status == store::MeasurementStatus::unstable;
  return !again && answers(record, request.protocol);
}

class Campaign {
 public:
  Campaign(Workplace& workplace, const DesignsRequest& request, const NamedSpace& space,
           space::Population population)
      : workplace_(workplace),
        request_(request),
        space_(space.space),
        named_(space),
        population_(std::move(population)),
        choices_(workplace) {}

  /// What others have measured on devices of these names, wherever that was.
  Result<std::vector<MeasuredDesign>> look_up() {
    list_designs();
    fingerprints_.clear();
    return read_results();
  }

  Result<std::vector<MeasuredDesign>> run(core::Progress& progress, const std::stop_token& stop) {
    list_designs();
    if (auto ok = read_fingerprints(); !ok) return tl::unexpected(std::move(ok.error()));
    if (auto ok = find_known(); !ok) return tl::unexpected(std::move(ok.error()));
    if (auto ok = measure_missing(progress, stop); !ok)
      return tl::unexpected(std::move(ok.error()));
    return read_results();
  }

 private:
  void list_designs() {
    for (std::size_t i = 0; i < population_.size(); ++i) {
      auto text = space_.format(population_[i]);
      auto hash = hash_of(named_, text);
      const std::size_t first = request_.designs ? 0 : request_.first;
      designs_.push_back({first + i, std::move(text), std::move(hash)});
    }
  }

  Status read_fingerprints() {
    const auto devices = open_devices(workplace_, request_.devices);
    if (!devices) return tl::unexpected(devices.error());
    for (const auto& device : *devices) fingerprints_.push_back(device.fingerprint);
    return {};
  }

  /// Newest first.
  Result<std::vector<MeasurementRecord>> records_of(std::size_t device, bool operators) {
    if (fingerprints_.empty())
      return workplace_.store->list_measurements(
          {.device = request_.devices[device], .space = named_.name, .operators = operators});
    return workplace_.store->list_measurements({.device_fingerprint = fingerprints_[device],
                                                .space = named_.name,
                                                .operators = operators});
  }

  Status find_known() {
    known_.resize(request_.devices.size());
    for (std::size_t d = 0; d < request_.devices.size(); ++d) {
      const auto records = records_of(d, false);
      if (!records) return tl::unexpected(records.error());
      for (const auto& record : *records) {
        if (is_done(record, request_)) ++known_[d][record.model_hash];
      }
    }
    return {};
  }

  int sessions_of(const DesignToMeasure& design, std::size_t device) const {
    const auto known = known_[device].find(design.hash);
    return known == known_[device].end() ? 0 : known->second;
  }

  /// Those that have fewer sessions of the design.
  std::vector<std::string> devices_without(const DesignToMeasure& design, int sessions) const {
    std::vector<std::string> names;
    for (std::size_t d = 0; d < request_.devices.size(); ++d) {
      if (sessions_of(design, d) < sessions) names.push_back(request_.devices[d]);
    }
    return names;
  }

  std::size_t count_missing() const {
    int missing = 0;
    for (const auto& design : designs_) {
      for (std::size_t d = 0; d < request_.devices.size(); ++d)
        missing += std::max(0, request_.sessions - sessions_of(design, d));
    }
    return static_cast<std::size_t>(missing);
  }

  std::string first_estimate(std::size_t missing) const {
    const auto& protocol = request_.protocol;
    const auto count = static_cast<double>(missing);
    const double least = count * (protocol.min_time_s + kPreparingSeconds);
    const double most = count * (protocol.max_time_s + kPreparingSeconds);
    const std::size_t all =
        designs_.size() * request_.devices.size() * static_cast<std::size_t>(request_.sessions);
    return fmt::format("{} of {} measurements are to be made; this takes {} to {}", missing, all,
                       rough_duration(least), rough_duration(most));
  }

  Status measure_missing(core::Progress& progress, const std::stop_token& stop) {
    const std::size_t missing = count_missing();
    if (missing == 0) return {};
    core::ProgressTask task(progress,
                            {.name = "measure", .total = missing, .unit = "measurements"});
    task.message(first_estimate(missing));
    // What was measured is kept also if the store comes back hours later.
    tune::Patience patience([&](std::string_view text) { task.message(text); }, stop);
    const auto start = workplace_.clock.now();
    std::size_t designs = 0;
    std::size_t done = 0;
    const std::size_t rounds = designs_.size() * static_cast<std::size_t>(request_.sessions);
    for (std::size_t round = 0; round < rounds && !stop.stop_requested(); ++round) {
      const std::size_t i = round % designs_.size();
      const int session = static_cast<int>(round / designs_.size()) + 1;
      const auto devices = devices_without(designs_[i], session);
      if (devices.empty()) continue;
      const auto measured =
          patience.keep_trying([&] { return measure_design(i, devices, patience, stop); });
      if (!measured) return measured;
      task.advance(devices.size());
      done += devices.size();
      if (++designs == kDesignsBeforeSecondEstimate && done < missing) {
        const std::chrono::duration<double> passed = workplace_.clock.now() - start;
        const double each = passed.count() / static_cast<double>(done);
        task.message(fmt::format("about {} are left",
                                 rough_duration(each * static_cast<double>(missing - done))));
      }
    }
    return {};
  }

  Status measure_design(std::size_t i, const std::vector<std::string>& names,
                        tune::Patience& patience, const std::stop_token& stop) {
    const auto& design = designs_[i];
    auto graph = space_.lower(population_[i]);
    if (!graph) return tl::unexpected(std::move(graph.error()));
    auto files =
        ModelFiles::of_graph({.graph = *std::move(graph),
                              .name = fmt::format("{}-{}", named_.name, design.hash.substr(0, 12)),
                              .origin = fmt::format("{}:{}", named_.name, design.text),
                              .hash = design.hash},
                             request_.threads);
    if (!files) return tl::unexpected(std::move(files.error()));
    auto devices = open_devices(workplace_, names);
    if (!devices) return tl::unexpected(std::move(devices.error()));
    auto results = measure_on_devices(workplace_, {request_.protocol, request_.power, choices_},
                                      *files, *std::move(devices), stop);
    if (!results) return tl::unexpected(std::move(results.error()));
    for (auto& result : *results) {
      result.space = named_.name;
      result.design = design.text;
      fresh_.emplace(result.device, design.hash);
    }
    return patience.keep_trying([&] { return keep_measurements(workplace_, *files, *results); });
  }

  /// The fastest of the records of each design that answer the request, or else the newest.
  Result<std::map<std::string, MeasurementRecord>> chosen_by_hash(std::size_t device) {
    auto records = records_of(device, request_.protocol.operators);
    if (!records) return tl::unexpected(std::move(records.error()));
    std::map<std::string, std::vector<MeasurementRecord>> done;
    std::map<std::string, MeasurementRecord> chosen;
    for (auto& record : *records) {
      const auto hash = record.model_hash;
      if (is_done(record, request_)) {
        done[hash].push_back(std::move(record));
      } else {
        chosen.try_emplace(hash, std::move(record));
      }
    }
    for (auto& [hash, sessions] : done)
      chosen.insert_or_assign(hash, least_disturbed_of(std::move(sessions)));
    return chosen;
  }

  Result<std::vector<MeasuredDesign>> read_results() {
    std::vector<std::map<std::string, MeasurementRecord>> by_device;
    for (std::size_t d = 0; d < request_.devices.size(); ++d) {
      auto records = chosen_by_hash(d);
      if (!records) return tl::unexpected(std::move(records.error()));
      by_device.push_back(*std::move(records));
    }
    std::vector<MeasuredDesign> results;
    for (const auto& design : designs_) {
      for (std::size_t d = 0; d < by_device.size(); ++d) {
        const auto found = by_device[d].find(design.hash);
        if (found == by_device[d].end()) continue;
        results.push_back({.number = design.number,
                           .known = !fresh_.contains({request_.devices[d], design.hash}),
                           .record = std::move(found->second)});
      }
    }
    return results;
  }

  Workplace& workplace_;
  const DesignsRequest& request_;
  const space::Space& space_;
  const NamedSpace& named_;
  space::Population population_;
  KernelChoices choices_;
  std::vector<DesignToMeasure> designs_;
  std::vector<std::string> fingerprints_;
  std::vector<std::map<std::string, int>> known_;        // sessions by hash, for each device
  std::set<std::pair<std::string, std::string>> fresh_;  // device and hash
};

Result<space::Population> designs_of(const space::Space& space, const DesignsRequest& request) {
  if (!request.designs) {
    return space::sample_designs(
        space, {.seed = request.seed, .first = request.first, .count = request.samples});
  }
  for (std::size_t i = 0; i < request.designs->size(); ++i)
    if (auto ok = space.check((*request.designs)[i]); !ok) return tl::unexpected(ok.error());
  return *request.designs;
}

Status check_request(const DesignsRequest& request) {
  if (request.designs ? request.designs->size() == 0 : request.samples == 0)
    return fail(ErrorCode::invalid_input, "there is no design to measure");
  if (request.sessions < 1)
    return fail(ErrorCode::invalid_input, "each design is measured in one session at least");
  if (auto ok = check_devices(request.devices); !ok) return ok;
  return check(request.protocol);
}

}  // namespace

Result<std::vector<MeasuredDesign>> measure_designs_of(Workplace& workplace,
                                                       const NamedSpace& space,
                                                       const DesignsRequest& request,
                                                       core::Progress& progress,
                                                       const std::stop_token& stop) {
  if (auto ok = check_request(request); !ok) return tl::unexpected(std::move(ok.error()));
  auto population = designs_of(space.space, request);
  if (!population) return tl::unexpected(std::move(population.error()));
  return Campaign(workplace, request, space, *std::move(population)).run(progress, stop);
}

Result<std::vector<MeasuredDesign>> measure_designs(Workplace& workplace,
                                                    const DesignsRequest& request,
                                                    core::Progress& progress,
                                                    const std::stop_token& stop) {
  const auto space = space::find_space(request.space);
  if (!space) return tl::unexpected(space.error());
  return measure_designs_of(workplace, {**space, (*space)->name()}, request, progress, stop);
}

Result<std::vector<MeasuredDesign>> find_measured_designs(Workplace& workplace,
                                                          const DesignsRequest& request) {
  const auto space = space::find_space(request.space);
  if (!space) return tl::unexpected(space.error());
  if (auto ok = check_request(request); !ok) return tl::unexpected(std::move(ok.error()));
  auto population = designs_of(**space, request);
  if (!population) return tl::unexpected(std::move(population.error()));
  return Campaign(workplace, request, {**space, (*space)->name()}, *std::move(population))
      .look_up();
}

}  // namespace fleetfit::app
