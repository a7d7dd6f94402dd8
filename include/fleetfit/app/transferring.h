#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/app/sources.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/transfer/adaproxy.h"
#include "fleetfit/transfer/monotonicity.h"
#include "fleetfit/transfer/one_proxy.h"
#include "fleetfit/transfer/proxy_choice.h"
#include "fleetfit/transfer/roofline.h"

/// Use cases of transfer: from devices that are known to one that is not. All take a table of
/// designs with a column for each device, and fail as reading it does.
namespace fleetfit::app {

struct TransferTable {
  std::filesystem::path file = {};
  std::string space = {};
  std::vector<std::string> devices = {};  ///< empty: all columns
};

/// Peaks of a device, for the explanation by rooflines.
struct DevicePeaks {
  std::string device = {};
  transfer::Peaks peaks = {};
};

/// Reads "NAME=GFLOPS,GBYTES_PER_SECOND" or "NAME=FILE.json", a file that `fleetfit device probe
/// --json` wrote. Fails with `invalid_input` if it is neither.
Result<DevicePeaks> peaks_from(const std::string& text);

struct CorrelationRequest {
  TransferTable table = {};
  std::vector<DevicePeaks> peaks = {};  ///< two or more devices are compared by pairs
  std::optional<std::filesystem::path> heat_map = std::nullopt;  ///< the page to be written
  std::size_t roofline_designs = 100;  ///< of the table, that are built to count their work
  std::uint64_t seed = 1;
};

struct RooflinePair {
  DevicePeaks a = {};
  DevicePeaks b = {};
  transfer::RooflineComparison comparison = {};
  std::optional<double> srcc = std::nullopt;  ///< measured, if both are in the table
};

struct CorrelationReport {
  std::string space = {};
  transfer::CorrelationMatrix matrix = {};
  std::size_t designs = 0;      ///< of the table
  std::size_t empty_cells = 0;  ///< designs that were not measured on a device
  std::vector<RooflinePair> rooflines = {};
};

Result<CorrelationReport> correlate_devices(const CorrelationRequest& request);

struct EstimateRequest {
  std::filesystem::path table = {};
  std::string space = {};
  std::string a = {};
  std::string b = {};
  transfer::SpreadOptions spread = {};
  double threshold = 0.9;
  int threads = 1;
};

struct EstimateReport {
  transfer::SrccSpread spread = {};
  transfer::SpreadOptions options = {};
  double srcc = 0;          ///< of all designs that both devices have
  std::size_t designs = 0;  ///< that both devices have
  double threshold = 0;
  /// Samples of which 95 % of the trials fall on the right side of the threshold.
  std::optional<std::size_t> enough = std::nullopt;
};
core::Fields fields_of(const EstimateReport*);

Result<EstimateReport> estimate_correlation(const EstimateRequest& request);

struct SelectRequest {
  TransferTable table = {};
  std::optional<std::size_t> samples = std::nullopt;  ///< none: all designs
  double threshold = 0.9;
  std::uint64_t seed = 1;
};

struct SelectReport {
  std::vector<transfer::RankedProxy> ranking = {};
  std::vector<transfer::PoolMember> pool = {};
  double threshold = 0;
  std::size_t designs = 0;  ///< that were looked at
};

Result<SelectReport> select_proxy(const SelectRequest& request);

struct AdaptProxyRequest {
  std::filesystem::path table = {};
  std::string space = {};
  std::string proxy = {};
  std::string target = {};
  std::size_t samples = 0;
  std::size_t validation = 20;  ///< measured beside the samples
  std::size_t trials = 1;
  std::optional<std::filesystem::path> output = std::nullopt;  ///< of the first trial
  std::uint64_t seed = 1;                                      ///< trial i has seed + i
  int threads = 1;
};

struct AdaptTrial {
  std::uint64_t seed = 0;
  double srcc_after = 0;
  transfer::AdaptReport report = {};
  double alpha = 0;
};

struct AdaptProxyReport {
  double srcc_before = 0;
  double srcc_after = 0;  ///< mean of the trials, as alpha and lambda are
  double alpha = 0;
  double lambda = 0;
  std::string encoding = {};  ///< of the proxy's linear model
  double proxy_fit_srcc = 0;  ///< of that model with designs of the proxy that it did not see
  std::vector<AdaptTrial> trials = {};
};
core::Fields fields_of(const AdaptProxyReport*);

Result<AdaptProxyReport> adapt_proxy(const AdaptProxyRequest& request);

struct OneProxyRequest {
  std::filesystem::path table = {};  ///< with the proxy, and with the target if it is a column
  std::string space = {};
  std::string proxy = {};
  std::string target = {};    ///< a column of the table, or a source of latency
  std::string accuracy = {};  ///< a source
  transfer::OneProxyOptions options = {};
  std::size_t most_samples = 100;
  SourceOptions sources = {};  ///< also threads and seed
};

struct OneProxyReport {
  const space::Space* space = nullptr;
  transfer::OneProxyResult result = {};
  double threshold = 0;
  std::string target = {};  ///< the source that was measured, for people
};

/// Whether the target is a device, and so needs a store to keep its measurements in.
bool measures(const OneProxyRequest& request);

/// Searches all designs that target and accuracy know if they know but some of the space or if it
/// is small, else by NSGA-II. Fails as `open_source`, the search and `transfer::fit_one_proxy` do.
Result<OneProxyReport> run_one_proxy(Workplace& workplace, const OneProxyRequest& request,
                                     core::Progress& progress, const std::stop_token& stop);

/// The contract of `fleetfit transfer …`.
nlohmann::ordered_json to_json(const CorrelationReport& report);
nlohmann::ordered_json to_json(const SelectReport& report);
nlohmann::ordered_json to_json(const OneProxyReport& report);

/// The matrix as a heat map, with similar devices beside each other, the ranking of proxies and the
/// explanation by rooflines: one HTML document that needs nothing else.
std::string correlation_page(const CorrelationReport& report);

}  // namespace fleetfit::app
