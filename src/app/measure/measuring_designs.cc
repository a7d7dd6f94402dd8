#include "app/measure/measuring_designs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "app/measure/model_session.h"
#include "app/measure/sessions.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/report/words.h"
#include "fleetfit/space/space.h"
#include "fleetfit/tune/patience.h"

namespace fleetfit::app {
namespace {

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

/// In which order designs are measured the first time (0), the second (1), … First as they are
/// counted, so that what is stopped has the first of them; then mixed: a machine that is fast for
/// some minutes should not be luck of the same neighbours each time.
std::vector<std::size_t> order_of(std::size_t designs, int session, std::uint64_t seed) {
  std::vector<std::size_t> order(designs);
  std::iota(order.begin(), order.end(), std::size_t{0});
  auto random = core::Random(seed).split("sessions").split(static_cast<std::uint64_t>(session));
  if (session > 0) random.shuffle(order);
  return order;
}

class Campaign {
 public:
  Campaign(Workplace& workplace, const DesignsRequest& request, const NamedSpace& space,
           space::Population population)
      : workplace_(workplace),
        request_(request),
        space_(space.space),
        named_(space),
        ledger_(request),
        protocol_(one_of_sessions(request.protocol, ledger_.sessions())),
        population_(std::move(population)),
        choices_(workplace) {}

  /// What was measured on devices of these names, wherever that was, or of these fingerprints.
  Result<std::vector<MeasuredDesign>> look_up(std::vector<std::string> fingerprints) {
    list_designs();
    fingerprints_ = std::move(fingerprints);
    return read_results();
  }

  Result<std::vector<MeasuredDesign>> run(core::Progress& progress, const std::stop_token& stop) {
    list_designs();
    FLEETFIT_TRY(read_fingerprints());
    FLEETFIT_TRY(find_known());
    FLEETFIT_TRY(measure_missing(progress, stop));
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
    FLEETFIT_ASSIGN(const auto devices, open_devices(workplace_, request_.devices, protocol_));
    for (const auto& device : devices) fingerprints_.push_back(device.fingerprint);
    return {};
  }

  /// Newest first.
  Result<std::vector<Measurement>> records_of(std::size_t device, bool operators) {
    if (fingerprints_.empty())
      return workplace_.store->list_measurements(
          {.device = request_.devices[device], .space = named_.name, .operators = operators});
    return workplace_.store->list_measurements({.device_fingerprint = fingerprints_[device],
                                                .space = named_.name,
                                                .operators = operators});
  }

  Status find_known() {
    for (std::size_t d = 0; d < request_.devices.size(); ++d) {
      FLEETFIT_ASSIGN(const auto records, records_of(d, false));
      ledger_.take_known(d, records);
    }
    return {};
  }

  std::size_t count_missing() const {
    std::size_t missing = 0;
    for (const auto& design : designs_) missing += ledger_.count_missing(design.hash);
    return missing;
  }

  std::string first_estimate(std::size_t missing) const {
    const auto count = static_cast<double>(missing);
    const double fewest = request_.sessions ? 1 : double{kLeastSessions} / kUsualSessions;
    const double least = fewest * count * (protocol_.min_time_s + kPreparingSeconds);
    const double most = count * (protocol_.max_time_s + kPreparingSeconds);
    const std::size_t all =
        designs_.size() * request_.devices.size() * static_cast<std::size_t>(ledger_.sessions());
    return fmt::format("{} of {} measurements are to be made{}; this takes {} to {}", missing, all,
                       request_.sessions ? "" : ", or as many as it takes for two to agree",
                       report::rough_duration(least), report::rough_duration(most));
  }

  /// Why there is nothing to do, and what would change that.
  std::string nothing_missing() const {
    const std::size_t all = designs_.size() * request_.devices.size();
    if (request_.sessions) {
      return fmt::format(
          "nothing is to be measured: the store has {} session{} or more of each design on each "
          "device",
          ledger_.sessions(), ledger_.sessions() == 1 ? "" : "s");
    }
    std::size_t disagreeing = 0;
    for (const auto& design : designs_) disagreeing += ledger_.count_disagreeing(design.hash);
    auto text =
        fmt::format("nothing is to be measured: {} of {} designs are done", all - disagreeing, all);
    if (disagreeing > 0) {
      text += fmt::format(
          ", and {} had all of their time, though no two of their sessions agree; --retry-unstable "
          "gives them as much again",
          disagreeing);
    }
    return text;
  }

  Status measure_missing(core::Progress& progress, const std::stop_token& stop) {
    const std::size_t missing = count_missing();
    core::ProgressTask task(progress,
                            {.name = "measure", .total = missing, .unit = "measurements"});
    task.message(missing > 0 ? first_estimate(missing) : nothing_missing());
    if (missing == 0) return {};
    // What was measured is kept also if the store comes back hours later.
    tune::Patience patience([&](std::string_view text) { task.message(text); }, stop);
    const auto start = workplace_.clock.now();
    std::size_t designs = 0;
    std::size_t done = 0;
    std::vector<std::size_t> order;
    const std::size_t rounds = designs_.size() * static_cast<std::size_t>(ledger_.sessions());
    for (std::size_t round = 0; round < rounds && !stop.stop_requested(); ++round) {
      const int session = static_cast<int>(round / designs_.size());
      if (round % designs_.size() == 0) order = order_of(designs_.size(), session, request_.seed);
      const std::size_t i = order[round % designs_.size()];
      const auto& hash = designs_[i].hash;
      const auto devices = ledger_.devices_without(hash, ledger_.sessions() - session);
      if (devices.empty()) continue;
      const std::size_t before = ledger_.count_missing(hash);
      const auto measured =
          patience.keep_trying([&] { return measure_design(i, devices, patience, stop); });
      if (!measured && measured.error().code == ErrorCode::cancelled && stop.stop_requested())
        break;
      if (!measured) return measured;
      task.advance(before - ledger_.count_missing(hash));
      done += devices.size();
      if (++designs == kDesignsBeforeSecondEstimate && done < missing) {
        const std::chrono::duration<double> passed = workplace_.clock.now() - start;
        const double each = passed.count() / static_cast<double>(done);
        task.message(fmt::format("about {} are left{}",
                                 report::rough_duration(each * static_cast<double>(missing - done)),
                                 request_.sessions ? "" : " at most"));
      }
    }
    return {};
  }

  Status measure_design(std::size_t i, const std::vector<std::string>& names,
                        tune::Patience& patience, const std::stop_token& stop) {
    const auto& design = designs_[i];
    FLEETFIT_ASSIGN(auto graph, space_.lower(population_[i]));
    FLEETFIT_ASSIGN(
        auto files,
        ModelFiles::of_graph({.graph = std::move(graph),
                              .name = fmt::format("{}-{}", named_.name, design.hash.substr(0, 12)),
                              .origin = fmt::format("{}:{}", named_.name, design.text),
                              .hash = design.hash},
                             request_.threads));
    FLEETFIT_ASSIGN(auto devices, open_devices(workplace_, names, protocol_));
    FLEETFIT_ASSIGN(auto results,
                    measure_on_devices(workplace_, {protocol_, request_.power, choices_}, files,
                                       std::move(devices), stop));
    for (auto& result : results) {
      result.measurement.space = named_.name;
      result.measurement.design = design.text;
      fresh_.emplace(result.measurement.device, design.hash);
    }
    auto kept = patience.keep_trying([&] { return keep_measurements(workplace_, files, results); });
    for (const auto& result : results) ledger_.take_fresh(result.measurement);
    return kept;
  }

  /// What the sessions of each design say that answer the request, or else the newest record.
  Result<std::map<std::string, Measurement>> chosen_by_hash(std::size_t device) {
    FLEETFIT_ASSIGN(auto records, records_of(device, request_.protocol.operators));
    std::map<std::string, std::vector<Measurement>> done;
    std::map<std::string, Measurement> chosen;
    for (auto& record : records) {
      const auto hash = record.model_hash;
      if (counts(record, request_)) {
        done[hash].push_back(std::move(record));
      } else {
        chosen.try_emplace(hash, std::move(record));
      }
    }
    for (auto& [hash, sessions] : done)
      chosen.insert_or_assign(hash, merge_sessions(std::move(sessions), request_.protocol.target));
    return chosen;
  }

  Result<std::vector<MeasuredDesign>> read_results() {
    std::vector<std::map<std::string, Measurement>> by_device;
    for (std::size_t d = 0; d < request_.devices.size(); ++d) {
      FLEETFIT_ASSIGN(auto records, chosen_by_hash(d));
      by_device.push_back(std::move(records));
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
  SessionLedger ledger_;
  measure::Protocol protocol_;  // of each session
  space::Population population_;
  KernelChoices choices_;
  std::vector<DesignToMeasure> designs_;
  std::vector<std::string> fingerprints_;
  std::set<std::pair<std::string, std::string>> fresh_;  // device and hash
};

Result<space::Population> designs_of(const space::Space& space, const DesignsRequest& request) {
  if (!request.designs) {
    return space::sample_designs(
        space, {.seed = request.seed, .first = request.first, .count = request.samples});
  }
  for (std::size_t i = 0; i < request.designs->size(); ++i)
    FLEETFIT_TRY(space.check((*request.designs)[i]));
  return *request.designs;
}

Status check_request(const DesignsRequest& request) {
  if (request.designs ? request.designs->size() == 0 : request.samples == 0)
    return fail(ErrorCode::invalid_input, "there is no design to measure");
  if (request.sessions && *request.sessions < 1)
    return fail(ErrorCode::invalid_input, "each design is measured in one session at least");
  FLEETFIT_TRY(check_devices(request.devices));
  return check(request.protocol);
}

double latency_of(const store::Latency& latency, std::string_view statistic) {
  if (statistic == "mean") return latency.mean_ms;
  if (statistic == "p90") return latency.p90_ms;
  if (statistic == "p99") return latency.p99_ms;
  return latency.median_ms;
}

}  // namespace

double cost_of(const store::MeasurementRecord& record, space::Quantity quantity,
               std::string_view statistic) {
  using space::Quantity;
  constexpr double kBytesPerMb = 1e6;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (record.status == store::MeasurementStatus::failed) return kNan;
  switch (quantity) {
    case Quantity::latency_ms:
      return record.latency ? latency_of(*record.latency, statistic) : kNan;
    case Quantity::energy_mj:
      return record.energy ? record.energy->mj : kNan;
    case Quantity::memory_mb:
      return record.peak_memory_bytes ? static_cast<double>(*record.peak_memory_bytes) / kBytesPerMb
                                      : kNan;
    case Quantity::accuracy:
      break;
  }
  return kNan;
}

Result<std::vector<MeasuredDesign>> measure_designs_of(Workplace& workplace,
                                                       const NamedSpace& space,
                                                       const DesignsRequest& request,
                                                       core::Progress& progress,
                                                       const std::stop_token& stop) {
  FLEETFIT_TRY(check_request(request));
  FLEETFIT_ASSIGN(auto population, designs_of(space.space, request));
  return Campaign(workplace, request, space, std::move(population)).run(progress, stop);
}

Result<std::vector<MeasuredDesign>> measure_designs(Workplace& workplace,
                                                    const DesignsRequest& request,
                                                    core::Progress& progress,
                                                    const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto space, space::find_space(request.space));
  return measure_designs_of(workplace, {*space, space->name()}, request, progress, stop);
}

Result<std::vector<MeasuredDesign>> find_measured_designs(Workplace& workplace,
                                                          const DesignsRequest& request,
                                                          std::vector<std::string> fingerprints) {
  FLEETFIT_ASSIGN(const auto space, space::find_space(request.space));
  FLEETFIT_TRY(check_request(request));
  FLEETFIT_ASSIGN(auto population, designs_of(*space, request));
  return Campaign(workplace, request, {*space, space->name()}, std::move(population))
      .look_up(std::move(fingerprints));
}

}  // namespace fleetfit::app
