#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/app/sources.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/search/bisection.h"
#include "fleetfit/search/search.h"

/// Use cases of searching: the best designs of a space for a device.
namespace fleetfit::app {

/// A cost with its source, as the user says it.
struct CostRequest {
  std::string source = {};  ///< "": this cost is not looked at
  std::optional<double> budget = std::nullopt;
  double weight = 0;  ///< t of this cost
};

struct SearchRequest {
  std::string space = {};
  std::string accuracy = {};  ///< a source
  CostRequest latency = {};
  CostRequest energy = {};
  CostRequest memory = {};
  /// A Pareto set is asked for; else the most accurate design within the budgets.
  bool pareto = false;
  /// evolution, nsga2, annealing, random or exhaustive; "": what suits best.
  std::string strategy = {};
  search::EvolutionOptions evolution = {};
  SourceOptions sources = {};       ///< also threads and seed of the search
  std::filesystem::path plot = {};  ///< a page of HTML to write; may be empty
};

/// Where numbers of a quantity come from.
struct SourceReport {
  std::string quantity = {};  ///< "latency_ms", "accuracy", …
  std::string text = {};
  std::string about = {};
  bool is_measured = false;
  std::optional<double> rank_correlation = std::nullopt;
};

struct Hypervolume {
  double value = 0;
  std::vector<double> costs = {};  ///< of the reference point
  double accuracy = 0;
};

struct SearchReport {
  const space::Space* space = nullptr;
  std::string strategy = {};
  std::vector<std::string> costs = {};  ///< their names, in the order of candidates' costs
  std::vector<std::optional<double>> budgets = {};
  search::Found found = {};
  std::vector<SourceReport> sources = {};
  std::optional<Hypervolume> hypervolume = std::nullopt;  ///< of two or three objectives
  double elapsed_s = 0;  ///< of the search itself, without reading files
  Spent spent = {};
};

/// Whether a source of the request measures.
bool measures(const SearchRequest& request);

/// Fails with `not_found` or `invalid_input`, naming what is wrong, on a space, source or option
/// that does not exist or fit. A budget that cannot be kept is no failure: then `found.best` is
/// empty and `found.nearest` says what would be possible.
Result<SearchReport> search_designs(Workplace& workplace, const SearchRequest& request,
                                    core::Progress& progress, const std::stop_token& stop);

struct BisectRequest {
  std::string space = {};
  std::string accuracy = {};
  CostRequest proxy = {};         ///< latency on the proxy; its budget is not looked at
  CostRequest target = {};        ///< latency on the device, with its budget
  CostRequest proxy_energy = {};  ///< both or none
  CostRequest target_energy = {};
  std::size_t max_measurements = 10;
  search::EvolutionOptions evolution = {};
  SourceOptions sources = {};
  /// Also try what people do without a search: scale the depth of one design of the proxy's.
  bool compare_scaling = false;
  /// A predictor of the device's own, to compare with what a search with it finds; "": none.
  std::string compare_predictor = {};
  std::size_t devices = 1;                    ///< of the fleet, for the account of costs
  std::size_t predictor_measurements = 5000;  ///< what a predictor would take
  std::filesystem::path plot = {};
};

/// Another way to the same goal.
struct Baseline {
  std::string name = {};
  std::optional<search::Candidate> best = std::nullopt;  ///< with its costs on the device
  std::size_t measurements = 0;                          ///< on the device
  std::string remark = {};                               ///< why there is none; may be ""
};

struct BisectReport {
  const space::Space* space = nullptr;
  std::vector<std::string> costs = {};
  std::vector<double> budgets = {};
  search::Bisected result = {};
  std::vector<SourceReport> sources = {};
  double elapsed_s = 0;                ///< without measuring, where the device is a real one
  double machine_s = 0;                ///< of measuring on the device
  bool machine_s_is_measured = false;  ///< else 20 s for each, as the paper has it
  search::FleetCost fleet = {};
  std::vector<Baseline> baselines = {};
  std::size_t devices = 1;
  std::size_t predictor_measurements = 0;
};

bool measures(const BisectRequest& request);

/// Fails as `search_designs` does.
Result<BisectReport> bisect_on_device(Workplace& workplace, const BisectRequest& request,
                                      core::Progress& progress, const std::stop_token& stop);

nlohmann::ordered_json to_json(const SearchReport& report);
nlohmann::ordered_json to_json(const BisectReport& report);

/// A page of HTML: accuracy against the first cost, with what each point is under the pointer, and
/// all points as a table.
std::string pareto_page(const SearchReport& report);

/// The same for what was measured on a device, step by step.
std::string bisection_page(const BisectReport& report);

}  // namespace fleetfit::app
