#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/measure/probe.h"

/// Use cases of probing this machine: what it can do, and what networks can make of it.
namespace fleetfit::app {

/// What a network reached on a device of this machine.
struct ReachedSpeed {
  std::string device = {};
  int threads = 1;
  double latency_ms = 0;  ///< the median
  double gflop_per_s = 0;
};

struct RooflineNetwork {
  std::string name = {};
  double gflop = 0;
  double gbytes = 0;  ///< that its operators move, each tensor read and written where it is used
  /// The most that this machine could reach: of the peak of arithmetic, and of what memory can
  /// bring. Worked out, not measured.
  double bound_gflop_per_s = 0;
  /// Of the newest good measurement, if there is one.
  std::optional<ReachedSpeed> reached = std::nullopt;

  double intensity() const { return gflop / gbytes; }  ///< FLOPs for each byte
};

/// A level of memory.
struct RooflineSlope {
  std::string name = {};  ///< "L1", …, "memory"
  double gb_per_s = 0;
};

struct Roofline {
  double peak_gflop_per_s = 0;  ///< in float
  double peak_int8_gop_per_s = 0;
  std::vector<RooflineSlope> slopes{};      ///< the fastest first, memory last
  std::vector<RooflineNetwork> networks{};  ///< all of the zoo, in its order
};

struct ProbeRequest {
  int threads = 1;
  double seconds = 10;
  std::optional<std::filesystem::path> roofline = std::nullopt;  ///< the page to be written
};

struct ProbedDevice {
  measure::ProbeReport report = {};
  std::optional<Roofline> roofline = std::nullopt;  ///< if a page was asked for
};

/// Probes this machine and writes the page. Fails as `measure::probe_device` does, with
/// `not_found` if the page's folder does not exist, and with `io` if the store cannot be read or
/// the page cannot be written.
Result<ProbedDevice> probe_this_device(Workplace& workplace, const ProbeRequest& request,
                                       core::Progress& progress, const std::stop_token& stop);

/// The roofline of a machine that was probed, with every network of the zoo in float. Reached
/// speeds are those that the store has of devices of this machine in float and without limits; of
/// several that of a device with as many threads as were probed, else the newest.
Result<Roofline> make_roofline(Workplace& workplace, const measure::ProbeReport& report);

/// One HTML document that needs nothing else.
std::string roofline_page(const measure::ProbeReport& report, const Roofline& roofline);

/// What `measure::to_json` gives, and "roofline" if there is one.
nlohmann::ordered_json to_json(const ProbedDevice& probed);

}  // namespace fleetfit::app
