#pragma once

#include <filesystem>
#include <span>
#include <stop_token>
#include <vector>

#include "fleetfit/core/clock.h"
#include "fleetfit/measure/energy.h"
#include "fleetfit/measure/measurement.h"
#include "fleetfit/measure/protocol.h"
#include "fleetfit/measure/runtime.h"

/// Takes measurements. Nothing here fails: what goes wrong in a runtime is a measurement with the
/// status `failed` and its reason.
namespace fleetfit::measure {

/// The reason of a measurement that was stopped.
inline constexpr const char* kCancelled = "cancelled";

/// A model on a runtime. Borrows both the runtime and the meter.
struct Subject {
  Runtime& runtime;
  std::filesystem::path model = {};
  LoadOptions load = {};
  EnergyMeter* energy = nullptr;  ///< may be none
};

/// Where and when it is measured.
struct Session {
  const core::Clock& clock;
  std::stop_token stop = {};  ///< looked at between requests; what was running is then `failed`
  std::filesystem::path root = "/";  ///< where `proc` and `sys` are
};

/// Loads the model, warms it up, measures it and unloads it. A protocol that `check` refuses is a
/// failed measurement, too.
Measurement measure_model(const Subject& subject, const Protocol& protocol, const Session& session);

/// How much slower than another subject, from the ratio of the two in each round.
struct Comparison {
  double ratio = 1;  ///< median of the rounds' ratios: 0.8 = takes 80 % of its time
  core::Interval ci95 = {1, 1};
  std::int64_t rounds = 0;  ///< 0: one of the two has failed, there is no ratio
};

struct Interleaved {
  std::vector<Measurement> measurements = {};  ///< in the order of the subjects
  std::vector<Comparison> against_first = {};  ///< each subject against the first one
};

/// Measures several subjects in rounds of one request each, in alternating order, so that whatever
/// disturbs the machine disturbs all of them alike. All go on until the last has settled. Each
/// needs a runtime of its own, as a runtime holds one model at a time; the time limit holds for
/// each of them on average. One that fails does not keep the others from being measured.
Interleaved measure_interleaved(std::span<const Subject> subjects, const Protocol& protocol,
                                const Session& session);

/// The comparison of two series that have one value in each round. Uses the rounds that both have.
Comparison compare_rounds(std::span<const double> subject, std::span<const double> first);

/// Whether a series of run times meets the protocol. Pure, for those who take runs elsewhere.
struct Assessment {
  bool settled = false;
  std::string problem = {};  ///< what is missing, and by how much; "" if settled
};
Assessment assess(std::span<const double> run_ms, double measured_s, const Protocol& protocol);

}  // namespace fleetfit::measure
