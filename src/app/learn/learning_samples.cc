#include "app/learn/learning_samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "fleetfit/core/companion.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/learned/device_features.h"

namespace fleetfit::app {
namespace {

using learned::DeviceFeatures;
using space::DesignTable;

constexpr std::size_t kCandidates = 5000;  // by chance, if there is no table

tl::unexpected<Error> wrong(std::string what) {
  return fail(ErrorCode::invalid_input, std::move(what));
}

/// The devices to learn from, in the order of the request, the table or the features.
Result<std::vector<std::string>> chosen_devices(const LearnData& data,
                                                const DeviceFeatures& features,
                                                const std::vector<std::string>& columns) {
  const auto is_column = [&](const std::string& name) {
    return std::ranges::count(columns, name) > 0 || data.measured.contains(name);
  };
  std::vector<std::string> devices;
  for (const auto& name : data.devices) {
    if (!is_column(name)) {
      return fail(ErrorCode::not_found,
                  fmt::format("device {} is neither a column of the table nor measured", name));
    }
    if (std::ranges::count(devices, name) > 0)
      return wrong(fmt::format("device {} is given twice", name));
    FLEETFIT_TRY(features.find_device(name));
    devices.push_back(name);
  }
  if (!data.devices.empty()) return devices;
  for (const auto& [name, source] : data.measured) FLEETFIT_TRY(features.find_device(name));
  for (const auto& name : features.devices)
    if (is_column(name)) devices.push_back(name);
  constexpr std::size_t kFewest = 3;
  if (devices.size() < kFewest) {
    return wrong(fmt::format("{}: {} of its devices have latencies, at least {} are needed",
                             features.name, devices.size(), kFewest));
  }
  return devices;
}

learned::KnownFeatures known_features(const DeviceFeatures& features,
                                      const std::vector<std::string>& devices) {
  learned::KnownFeatures known;
  for (const auto& column : features.columns) {
    known.names.push_back(column.text());
    known.is_reference.push_back(learned::is_latency(column.kind));
  }
  for (const auto& name : devices) {
    const auto row = features.row(features.find_device(name).value());
    known.values.insert(known.values.end(), row.begin(), row.end());
  }
  return known;
}

Result<OpenedSource> open_device(const LearnData& data, const SourcePlace& place,
                                 const DesignTable* table, const std::string& device) {
  if (const auto found = data.measured.find(device); found != data.measured.end())
    return open_source(place, found->second, Quantity::latency_ms, data.sources);
  assert(table != nullptr);  // `chosen_devices` took its columns and what is measured
  FLEETFIT_ASSIGN(const auto column, table->find_column(device));
  return OpenedSource{.source = space::table_source(*table, column), .is_measured = true};
}

Status open_energy(const LearnData& data, const space::Space& space, LearnSources& sources) {
  if (data.energy_table.empty()) return {};
  FLEETFIT_ASSIGN(const auto table, space::read_design_table(data.energy_table, space,
                                                             {.columns = sources.devices,
                                                              .cells = space::CellRule::energy}));
  for (std::size_t i = 0; i < sources.devices.size(); ++i)
    sources.energy.push_back({.source = space::table_source(table, i), .is_measured = true});
  return {};
}

void add_values(const std::vector<OpenedSource>& sources, space::DesignBatch designs,
                std::size_t before, std::vector<double>& values, Status& status) {
  // Rows become longer: each device's old numbers, then its new ones.
  std::vector<double> longer;
  for (std::size_t device = 0; device < sources.size() && status; ++device) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(device * before);
    longer.insert(longer.end(), first, first + static_cast<std::ptrdiff_t>(before));
    std::vector<double> fresh(designs.size());
    status = sources[device].source->evaluate(designs, fresh);
    longer.insert(longer.end(), fresh.begin(), fresh.end());
  }
  values = std::move(longer);
}

}  // namespace

Result<LearnSources> open_learn_sources(const LearnData& data, const SourcePlace& place) {
  FLEETFIT_ASSIGN(const auto features, learned::read_device_features(data.device_features));
  std::optional<DesignTable> table;
  if (!data.table.empty()) {
    FLEETFIT_ASSIGN(table, space::read_design_table(data.table, place.space));
  }
  FLEETFIT_ASSIGN(
      auto devices,
      chosen_devices(data, features, table ? table->columns : std::vector<std::string>()));
  LearnSources sources{.space = &place.space, .devices = std::move(devices)};
  sources.features = known_features(features, sources.devices);
  for (const auto& device : sources.devices) {
    FLEETFIT_ASSIGN(auto opened, open_device(data, place, table ? &*table : nullptr, device));
    sources.latency.push_back(std::move(opened));
  }
  FLEETFIT_TRY(open_energy(data, place.space, sources));
  FLEETFIT_ASSIGN(sources.accuracy,
                  open_source(place, data.accuracy, Quantity::accuracy, data.sources));
  if (table) {
    sources.candidates = std::move(table->designs);
    return sources;
  }
  const auto size = place.space.size().exact();
  FLEETFIT_ASSIGN(
      sources.candidates,
      space::sample_designs(place.space, {.seed = data.sources.seed,
                                          .count = static_cast<std::size_t>(std::min<std::uint64_t>(
                                              size.value_or(kCandidates), kCandidates))}));
  return sources;
}

learned::Samples no_samples(const LearnSources& sources) {
  learned::Samples samples{.space = sources.space,
                           .designs = space::Population(sources.space->genes().size()),
                           .devices = sources.devices,
                           .features = sources.features,
                           .costs = {{.name = "latency_ms"}}};
  if (!sources.energy.empty()) samples.costs.push_back({.name = "energy_mj"});
  return samples;
}

Status add_measured(const LearnSources& sources, space::DesignBatch designs,
                    learned::Samples& samples) {
  const std::size_t before = samples.designs.size();
  Status status;
  add_values(sources.latency, designs, before, samples.costs[0].values, status);
  if (samples.costs.size() > 1)
    add_values(sources.energy, designs, before, samples.costs[1].values, status);
  if (!status) return status;
  samples.accuracy.resize(before + designs.size());
  status = sources.accuracy.source->evaluate(designs, std::span(samples.accuracy).subspan(before));
  for (std::size_t i = 0; i < designs.size(); ++i) samples.designs.add(designs[i]);
  return status;
}

Result<learned::Model> run_learning(const learned::Samples& samples, const LearnTraining& training,
                                    const std::filesystem::path& output,
                                    const std::stop_token& stop) {
  constexpr std::string_view kTrainer = "fleetfit-train";
  FLEETFIT_TRY(core::find_companion(kTrainer));
  FLEETFIT_ASSIGN(const auto folder, core::ScratchFolder::create());
  const auto file = folder.path() / "samples.json";
  FLEETFIT_TRY(learned::check(samples));
  FLEETFIT_TRY(learned::write_samples(samples, file));
  const std::vector<std::string> arguments{"learned",      file.string(),
                                           "--output",     output.string(),
                                           "--method",     training.method,
                                           "--compute",    training.compute,
                                           "--members",    std::to_string(training.members),
                                           "--optimizers", std::to_string(training.optimizers),
                                           "--effort",     fmt::format("{}", training.effort),
                                           "--seed",       std::to_string(training.seed),
                                           "--threads",    std::to_string(training.threads),
                                           "--json"};
  FLEETFIT_ASSIGN(const auto done, core::run_companion(kTrainer, arguments, {.stop = stop}));
  if (stop.stop_requested())
    return fail(ErrorCode::cancelled, "interrupted; the same command goes on");
  if (!done.status.succeeded()) {
    return fail(ErrorCode::internal,
                fmt::format("{} failed: {}", kTrainer, to_string(done.status)));
  }
  return learned::read_model(output);
}

}  // namespace fleetfit::app
