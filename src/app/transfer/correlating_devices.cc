#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/transfer/transfer_tables.h"
#include "fleetfit/app/transferring.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/cost/cost.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> positive_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_good = error == std::errc{} && end == text.data() + text.size();
  if (!is_good || !std::isfinite(value) || value <= 0) return std::nullopt;
  return value;
}

/// Peaks that a probe has measured: arithmetic in float, and reads from memory.
Result<transfer::Peaks> probed_peaks(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  const core::JsonView json(document, file.string());
  FLEETFIT_ASSIGN(const auto features, json.at("features"));
  FLEETFIT_ASSIGN(const auto gflops, features.number("peak_fp32_gflop_per_s"));
  FLEETFIT_ASSIGN(const auto gbytes, features.number("memory_read_gb_per_s"));
  return transfer::Peaks{.gflops = gflops, .gbytes_per_second = gbytes};
}

Result<transfer::Work> work_of(const space::Space& space, space::Design design) {
  FLEETFIT_ASSIGN(const auto graph, space.lower(design));
  FLEETFIT_ASSIGN(const auto cost, cost::count_cost(graph));
  const auto& total = cost.total;
  return transfer::Work{
      .flops = static_cast<double>(total.flops),
      .bytes = static_cast<double>(total.input_bytes + total.output_bytes + total.weight_bytes)};
}

/// Of some designs of the table.
Result<std::vector<transfer::Work>> table_work(const space::DesignTable& table,
                                               const CorrelationRequest& request) {
  std::vector<std::size_t> all(table.designs.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  FLEETFIT_ASSIGN(const auto rows, sample_rows(all, std::min(all.size(), request.roofline_designs),
                                               request.seed, "designs"));
  std::vector<transfer::Work> work;
  for (const auto row : rows) {
    FLEETFIT_ASSIGN(const auto one, work_of(*table.space, table.designs[row]));
    work.push_back(one);
  }
  return work;
}

std::optional<double> measured_srcc(const transfer::CorrelationMatrix& matrix, const std::string& a,
                                    const std::string& b) {
  const auto first = std::ranges::find(matrix.devices, a);
  const auto second = std::ranges::find(matrix.devices, b);
  if (first == matrix.devices.end() || second == matrix.devices.end()) return std::nullopt;
  return matrix.srcc[static_cast<std::size_t>(first - matrix.devices.begin())]
                    [static_cast<std::size_t>(second - matrix.devices.begin())];
}

Status compare_peaks(const space::DesignTable& table, const CorrelationRequest& request,
                     CorrelationReport& report) {
  if (request.peaks.empty()) return {};
  if (request.peaks.size() < 2)
    return fail(ErrorCode::invalid_input, "peaks of one device alone explain nothing: give two");
  FLEETFIT_ASSIGN(const auto work, table_work(table, request));
  for (std::size_t i = 0; i < request.peaks.size(); ++i) {
    for (std::size_t j = i + 1; j < request.peaks.size(); ++j) {
      const auto& a = request.peaks[i];
      const auto& b = request.peaks[j];
      FLEETFIT_ASSIGN(const auto comparison, transfer::compare_rooflines(work, a.peaks, b.peaks));
      report.rooflines.push_back({.a = a,
                                  .b = b,
                                  .comparison = comparison,
                                  .srcc = measured_srcc(report.matrix, a.device, b.device)});
    }
  }
  return {};
}

}  // namespace

Result<DevicePeaks> peaks_from(const std::string& text) {
  const auto broken = [&] {
    return fail(ErrorCode::invalid_input,
                fmt::format("'{}' is not NAME=GFLOPS,GBYTES_PER_SECOND or NAME=PROBE.json", text));
  };
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return broken();
  DevicePeaks result{.device = text.substr(0, equals)};
  const auto rest = text.substr(equals + 1);
  if (rest.ends_with(".json")) {
    FLEETFIT_ASSIGN(result.peaks, probed_peaks(rest));
    return result;
  }
  const auto comma = rest.find(',');
  if (comma == std::string::npos) return broken();
  const auto gflops = positive_number(std::string_view(rest).substr(0, comma));
  const auto gbytes = positive_number(std::string_view(rest).substr(comma + 1));
  if (!gflops || !gbytes) return broken();
  result.peaks = {.gflops = *gflops, .gbytes_per_second = *gbytes};
  return result;
}

Result<CorrelationReport> correlate_devices(const CorrelationRequest& request) {
  FLEETFIT_ASSIGN(const auto table, read_device_table(request.table.file, request.table.space,
                                                      request.table.devices));
  FLEETFIT_ASSIGN(auto matrix,
                  core::within(request.table.file.string(),
                               transfer::correlation_matrix({table.columns, table.values})));
  CorrelationReport report{
      .space = request.table.space, .matrix = std::move(matrix), .designs = table.designs.size()};
  for (std::size_t i = 0; i < report.matrix.devices.size(); ++i)
    report.empty_cells += report.designs - report.matrix.designs[i][i];
  FLEETFIT_TRY(compare_peaks(table, request, report));
  if (!request.heat_map) return report;
  FLEETFIT_TRY(core::write_file(*request.heat_map, correlation_page(report)));
  return report;
}

namespace {

Json peaks_json(const DevicePeaks& device) {
  return {{"device", device.device},
          {"gflops", device.peaks.gflops},
          {"gbytes_per_second", device.peaks.gbytes_per_second},
          {"ridge", device.peaks.ridge()}};
}

Json roofline_json(const RooflinePair& pair) {
  const auto& comparison = pair.comparison;
  return {{"devices", Json::array({peaks_json(pair.a), peaks_json(pair.b)})},
          {"compute_bound", {comparison.compute_bound_a, comparison.compute_bound_b}},
          {"memory_bound", {1 - comparison.compute_bound_a, 1 - comparison.compute_bound_b}},
          {"same_bound", comparison.same_bound},
          {"intensity", {comparison.intensity_low, comparison.intensity_high}},
          {"srcc_by_peaks", comparison.srcc},
          {"srcc", core::or_null(pair.srcc)},
          {"explanation", transfer::explain(comparison)}};
}

}  // namespace

Json to_json(const CorrelationReport& report) {
  Json json{{"devices", report.matrix.devices},
            {"srcc", report.matrix.srcc},
            {"designs", report.matrix.designs},
            {"empty_cells", report.empty_cells}};
  if (report.rooflines.empty()) return json;
  auto rooflines = core::json_list(report.rooflines, roofline_json);
  json["rooflines"] = std::move(rooflines);
  return json;
}

}  // namespace fleetfit::app
