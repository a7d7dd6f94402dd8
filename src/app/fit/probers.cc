#include "app/fit/probers.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleetfit/core/json.h"
#include "fleetfit/core/sha256.h"

namespace fleetfit::app {

using space::Quantity;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kBytesPerMb = 1e6;

class TableProber final : public fit::Prober {
 public:
  TableProber(const ProbePlace& place, LookedUp from) : place_(place), from_(std::move(from)) {}

  bool waits_for_others() const override { return true; }

  Result<std::vector<fit::Probe>> measure(space::DesignBatch designs) override {
    FLEETFIT_TRY(read_store());
    FLEETFIT_TRY(look_up(designs));
    std::vector<fit::Probe> probes;
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const auto known = known_.find(from_.space.space.format(designs[i]));
      probes.push_back(known == known_.end() ? fit::Probe{.problem = "its cell is empty"}
                                             : probe_of(known->second, from_.budgets));
    }
    return probes;
  }

 private:
  Status read_store() {
    if (is_read_) return {};
    FLEETFIT_ASSIGN(auto records, place_.workplace.store->list_measurements(
                                      {.device = from_.device,
                                       .device_fingerprint = from_.fingerprint,
                                       .space = from_.space.name,
                                       .operators = false}));
    for (auto& record : records)
      if (record.design) known_.try_emplace(*record.design, record);
    is_read_ = true;
    return {};
  }

  Status look_up(space::DesignBatch designs) {
    std::vector<store::MeasurementRecord> fresh;
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const auto text = from_.space.space.format(designs[i]);
      if (known_.contains(text)) continue;
      if (auto record = record_of(designs[i], text)) fresh.push_back(*std::move(record));
    }
    if (fresh.empty()) return {};
    FLEETFIT_TRY(place_.workplace.store->add_measurements(fresh));
    for (auto& record : fresh) known_.emplace(*record.design, record);
    return {};
  }

  std::optional<store::MeasurementRecord> record_of(space::Design design,
                                                    const std::string& text) const {
    store::MeasurementRecord record{
        .device = from_.device,
        .device_fingerprint = from_.fingerprint,
        .model_hash = core::sha256_hex(
            fmt::format("{} {} {}", from_.space.name, from_.space.space.version(), text)),
        .model_name = text,
        .space = from_.space.name,
        .design = text,
        .runs = 1,
        .protocol = core::format_json_line(nlohmann::json{{"looked_up_in", from_.table}}),
        .started = std::chrono::floor<std::chrono::milliseconds>(place_.workplace.clock.date())};
    for (std::size_t i = 0; i < from_.budgets.size(); ++i) {
      const double value = cell(*from_.cells[i], design);
      if (std::isnan(value)) return std::nullopt;
      put(from_.budgets[i].quantity, value, record);
    }
    return record;
  }

  static double cell(const space::Source& cells, space::Design design) {
    double value = kNan;
    return cells.evaluate({design, design.size()}, std::span(&value, 1)) ? value : kNan;
  }

  static void put(Quantity quantity, double value, store::MeasurementRecord& record) {
    if (quantity == Quantity::energy_mj) {
      record.energy = store::Energy{.mj = value};
    } else if (quantity == Quantity::memory_mb) {
      record.peak_memory_bytes = std::llround(value * kBytesPerMb);
    } else {
      record.latency = store::Latency{value, value, value, value, {value, value}};
    }
  }

  ProbePlace place_;
  LookedUp from_;
  bool is_read_ = false;
  std::map<std::string, store::MeasurementRecord> known_;  // by design
};

class DeviceProber final : public fit::Prober {
 public:
  DeviceProber(const ProbePlace& place, MeasuredHere from, ProbeCount& count)
      : place_(place), from_(std::move(from)), count_(count) {}

  Result<std::vector<fit::Probe>> measure(space::DesignBatch designs) override {
    DesignsRequest request{
        .devices = {from_.device}, .protocol = from_.protocol, .threads = from_.threads};
    request.designs.emplace(designs.genes());
    for (std::size_t i = 0; i < designs.size(); ++i) request.designs->add(designs[i]);
    const auto start = place_.workplace.clock.now();
    FLEETFIT_ASSIGN(const auto measured, measure_designs_of(place_.workplace, from_.space, request,
                                                            *silent_, place_.stop));
    if (place_.stop.stop_requested()) return fail(ErrorCode::cancelled, "stopped");
    const std::chrono::duration<double> took = place_.workplace.clock.now() - start;
    std::vector<fit::Probe> probes(designs.size(), fit::Probe{.problem = "it was not measured"});
    const auto made_before = count_.made;
    for (const auto& one : measured) {
      probes[one.number] = probe_of(one.record, from_.budgets);
      ++count_.asked;
      if (!one.known) ++count_.made;
    }
    if (count_.made > made_before) count_.seconds += took.count();
    return probes;
  }

 private:
  ProbePlace place_;
  MeasuredHere from_;
  ProbeCount& count_;
  // The fit says what it does; how long single measurements take would be noise.
  std::unique_ptr<core::Progress> silent_ = core::make_silent_progress();
};

}  // namespace

fit::Probe probe_of(const store::MeasurementRecord& record,
                    const std::vector<fit::FitBudget>& budgets) {
  fit::Probe probe;
  for (const auto& budget : budgets)
    probe.costs.push_back(cost_of(record, budget.quantity, budget.statistic));
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    if (!std::isnan(probe.costs[i])) continue;
    probe.costs.clear();
    probe.problem = record.reason.empty()
                        ? fmt::format("its {} was not measured", to_string(budgets[i].quantity))
                        : record.reason;
    break;
  }
  return probe;
}

std::unique_ptr<fit::Prober> make_table_prober(const ProbePlace& place, LookedUp from) {
  return std::make_unique<TableProber>(place, std::move(from));
}

std::unique_ptr<fit::Prober> make_device_prober(const ProbePlace& place, MeasuredHere from,
                                                ProbeCount& count) {
  return std::make_unique<DeviceProber>(place, std::move(from), count);
}

}  // namespace fleetfit::app
