#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "fleetfit/adapt/requests.h"
#include "fleetfit/adapt/serving.h"
#include "fleetfit/app/devices.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"

/// Use case: serving requests with the subnets of a bundle.
namespace fleetfit::app {

struct ServeRequest {
  std::filesystem::path bundle = {};
  std::optional<std::filesystem::path> public_key = std::nullopt;  ///< that must have signed it
  std::filesystem::path pool = {};
  double budget_ms = 0;
  std::string tail = "p95";  ///< which latency is to keep the budget: median, p95, p99
  std::string device = std::string(kLocalDevice);
  std::string memory = "256M";        ///< most for subnets that are held ready
  std::filesystem::path events = {};  ///< file for a line of JSON for each event; may be empty
  std::string data = {};              ///< a data set, for requests and for a new search
  bool search_again = false;          ///< search in the background when nothing fits
  std::filesystem::path table = {};   ///< latency table for that search; may be empty
  std::uint64_t seed = 1;
};

struct ServeSummary {
  adapt::ServingReport report = {};
  double budget_ms = 0;
  std::string tail = {};
  double elapsed_s = 0;
  std::int64_t peak_memory_bytes = 0;  ///< of the whole process
  std::int64_t bundle_bytes = 0;
  std::int64_t model_bytes = 0;         ///< of the file that was made elastic
  std::int64_t memory_limit_bytes = 0;  ///< for subnets that are held ready
};
core::Fields fields_of(const ServeSummary*);

/// Requests made of a data set.
struct DataRequests {
  double seconds = 10;
  double rate = 0;  ///< requests a second; 0: as many as possible
};

/// A bundle that is being served. Requests may come from many threads; they are served one after
/// the other.
class Serving {
 public:
  virtual ~Serving() = default;

  /// Answers one request; whatever it is, the reply is one line of JSON.
  virtual adapt::Reply answer(std::string_view request) = 0;
  virtual std::size_t most_request_bytes() const = 0;

  /// How things stand.
  virtual nlohmann::ordered_json status() const = 0;

  /// Serves images of the data set's test part, in a random order, again and again until the time
  /// is over or it is stopped. Their labels count for the accuracy.
  virtual Status serve_data(const DataRequests& requests, core::Progress& progress,
                            const std::stop_token& stop) = 0;

  /// Tells in the events where requests can be sent to.
  virtual void announce(std::string_view address) = 0;

  virtual ServeSummary summary() const = 0;
};

/// Reads bundle and pool and prepares the first subnet. The workplace is borrowed; a search in the
/// background uses it. Fails with `invalid_input`, naming the file or field, on a bundle or pool
/// that is damaged, a pool of another bundle, a subnet that the bundle does not have, data that
/// does not fit the model and options that make no sense; with `unsupported` on a device whose
/// runtime is not the engine in this process.
Result<std::unique_ptr<Serving>> open_serving(Workplace& workplace, const ServeRequest& request);

/// Answers lines of a file descriptor until it ends, the time is over or it is stopped. `write`
/// gets each reply without a line end.
Status serve_lines(Serving& serving, int input,
                   const std::function<Status(std::string_view)>& write,
                   const std::stop_token& stop);

}  // namespace fleetfit::app
