#include "fleetfit/app/probing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <variant>

#include "app/devices/opened_device.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/cost/cost.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::app {
namespace {

using store::MeasurementRecord;

Result<Roofline> roof_of(const measure::ProbeReport& report) {
  const auto peak = report.value("peak_fp32_gflop_per_s");
  const auto peak_int8 = report.value("peak_int8_gop_per_s");
  if (!peak || !peak_int8) return fail(ErrorCode::internal, "the probe has found no peak");
  Roofline roofline{.peak_gflop_per_s = *peak, .peak_int8_gop_per_s = *peak_int8};
  for (const std::string_view level : {"l1", "l2", "l3", "l4", "memory"}) {
    const auto bandwidth = report.value(fmt::format("{}_read_gb_per_s", level));
    if (!bandwidth) continue;
    const auto name = level == "memory" ? std::string(level) : fmt::format("L{}", level[1]);
    roofline.slopes.push_back({name, *bandwidth});
  }
  if (roofline.slopes.empty()) return fail(ErrorCode::internal, "the probe has found no bandwidth");
  return roofline;
}

// Every runtime executes them together with the layer before. To fold batch norms in earnest would
// take all weights of the zoo.
bool is_merged(const graph::Node& node) {
  return std::holds_alternative<graph::BatchNorm>(node.op) ||
         std::holds_alternative<graph::Activate>(node.op);
}

double bytes_moved(const graph::Graph& graph, const cost::GraphCost& cost) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto& node = cost.nodes[i];
    if (!node || is_merged(graph.nodes[i])) continue;
    bytes += node->input_bytes + node->output_bytes + node->weight_bytes;
  }
  return static_cast<double>(bytes);
}

Result<RooflineNetwork> price(const std::string& name) {
  FLEETFIT_ASSIGN(auto graph, graph::build_zoo_network(name));
  FLEETFIT_TRY(
      core::within(name, graph::simplify(graph, {.without = {"fold_batch_norm", "fold_affine"}})));
  FLEETFIT_ASSIGN(const auto cost, core::within(name, cost::count_cost(graph)));
  return RooflineNetwork{.name = name,
                         .gflop = static_cast<double>(cost.total.flops) / 1e9,
                         .gbytes = bytes_moved(graph, cost) / 1e9};
}

Result<std::vector<RooflineNetwork>> price_zoo(int threads) {
  const auto& zoo = graph::zoo();
  std::vector<Result<RooflineNetwork>> results(zoo.size(), RooflineNetwork{});
  core::ThreadPool pool(threads);
  pool.parallel_for(zoo.size(), [&](std::size_t i) { results[i] = price(zoo[i].name); });
  std::vector<RooflineNetwork> networks;
  for (auto& result : results) {
    FLEETFIT_TRY(result);
    networks.push_back(*std::move(result));
  }
  return networks;
}

/// Devices of this machine that compute in float at full speed.
Result<std::vector<DeviceSummary>> comparable_devices(Workplace& workplace,
                                                      const measure::Hardware& hardware) {
  auto devices = list_devices(workplace);
  if (!devices) return devices;
  const auto identity = measure::identity_of(hardware);
  std::erase_if(*devices, [&](const DeviceSummary& summary) {
    const auto& device = summary.device;
    return device.precision != measure::Precision::fp32 || device.limits.any() ||
           device.hardware != identity;
  });
  return devices;
}

/// A good measurement with the device that it was taken on.
struct Candidate {
  MeasurementRecord record;
  int threads = 1;
};

Result<std::vector<Candidate>> good_measurements(Workplace& workplace,
                                                 const measure::Hardware& hardware) {
  FLEETFIT_ASSIGN(const auto devices, comparable_devices(workplace, hardware));
  std::vector<Candidate> candidates;
  for (const auto& summary : devices) {
    FLEETFIT_ASSIGN(auto records,
                    workplace.store->list_measurements({.device = summary.device.name,
                                                        .device_fingerprint = summary.fingerprint,
                                                        .status = store::MeasurementStatus::ok,
                                                        .operators = false}));
    for (auto& record : records) candidates.push_back({std::move(record), summary.device.threads});
  }
  std::ranges::stable_sort(candidates, std::ranges::greater(),
                           [](const Candidate& c) { return c.record.started; });
  return candidates;
}

/// What the file of a network of the zoo is known by in the store.
Result<std::string> hash_of_zoo_file(const std::string& name) {
  FLEETFIT_ASSIGN(const auto graph, graph::build_zoo_network(name));
  FLEETFIT_ASSIGN(const auto file, graph::export_onnx(graph));
  return core::sha256_hex(file);
}

/// Puts what was reached on each network. A model is a network of the zoo if it has its name and is
/// byte for byte its file.
Status add_reached(Roofline& roofline, const std::vector<Candidate>& candidates, int threads) {
  std::map<std::string, std::vector<const Candidate*>> by_name;
  for (const auto& candidate : candidates)
    by_name[candidate.record.model_name].push_back(&candidate);
  for (auto& network : roofline.networks) {
    const auto named = by_name.find(network.name);
    if (named == by_name.end()) continue;
    FLEETFIT_ASSIGN(const auto hash, core::within(network.name, hash_of_zoo_file(network.name)));
    const Candidate* chosen = nullptr;
    for (const auto* candidate : named->second) {
      if (candidate->record.model_hash != hash) continue;
      const bool fits = candidate->threads == threads;
      if (chosen == nullptr || (fits && chosen->threads != threads)) chosen = candidate;
    }
    if (chosen == nullptr) continue;
    const double ms = chosen->record.latency->median_ms;
    network.reached = ReachedSpeed{.device = chosen->record.device,
                                   .threads = chosen->threads,
                                   .latency_ms = ms,
                                   .gflop_per_s = network.gflop / ms * 1e3};
  }
  return {};
}

/// Told before the probe takes its time, not after.
Status check_folder_exists(const std::filesystem::path& file) {
  std::error_code ignored;
  const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  if (std::filesystem::is_directory(folder, ignored)) return {};
  return fail(ErrorCode::not_found, fmt::format("{}: its folder does not exist", file.string()));
}

}  // namespace

Result<Roofline> make_roofline(Workplace& workplace, const measure::ProbeReport& report) {
  auto roofline = roof_of(report);
  if (!roofline) return roofline;
  FLEETFIT_ASSIGN(roofline->networks, price_zoo(report.threads));
  const double memory = roofline->slopes.back().gb_per_s;
  for (auto& network : roofline->networks) {
    network.bound_gflop_per_s = std::min(roofline->peak_gflop_per_s, network.intensity() * memory);
  }
  FLEETFIT_ASSIGN(const auto candidates, good_measurements(workplace, report.hardware));
  FLEETFIT_TRY(add_reached(*roofline, candidates, report.threads));
  return roofline;
}

Result<ProbedDevice> probe_this_device(Workplace& workplace, const ProbeRequest& request,
                                       core::Progress& progress, const std::stop_token& stop) {
  if (request.roofline) {
    FLEETFIT_TRY(check_folder_exists(*request.roofline));
  }
  FLEETFIT_ASSIGN(
      auto report,
      measure::probe_device({.threads = request.threads, .seconds = request.seconds, .stop = stop},
                            progress, workplace.clock));
  ProbedDevice probed{.report = std::move(report)};
  if (!request.roofline) return probed;
  FLEETFIT_ASSIGN(probed.roofline, make_roofline(workplace, probed.report));
  const auto page = roofline_page(probed.report, *probed.roofline);
  FLEETFIT_TRY(core::write_file(*request.roofline, page));
  return probed;
}

nlohmann::ordered_json to_json(const ProbedDevice& probed) {
  using Json = nlohmann::ordered_json;
  auto json = measure::to_json(probed.report);
  if (!probed.roofline) return json;
  auto slopes = Json::array();
  for (const auto& slope : probed.roofline->slopes)
    slopes.push_back(Json{{"name", slope.name}, {"gb_per_s", slope.gb_per_s}});
  auto networks = Json::array();
  for (const auto& network : probed.roofline->networks) {
    Json entry{{"name", network.name},
               {"gflop", network.gflop},
               {"gbytes", network.gbytes},
               {"intensity", network.intensity()},
               {"bound_gflop_per_s", network.bound_gflop_per_s},
               {"reached", nullptr}};
    if (const auto& reached = network.reached) {
      entry["reached"] = Json{{"device", reached->device},
                              {"threads", reached->threads},
                              {"latency_ms", reached->latency_ms},
                              {"gflop_per_s", reached->gflop_per_s}};
    }
    networks.push_back(std::move(entry));
  }
  json["roofline"] = Json{{"peak_gflop_per_s", probed.roofline->peak_gflop_per_s},
                          {"peak_int8_gop_per_s", probed.roofline->peak_int8_gop_per_s},
                          {"slopes", std::move(slopes)},
                          {"networks", std::move(networks)}};
  return json;
}

}  // namespace fleetfit::app
