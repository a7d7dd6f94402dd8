#pragma once

#include "fleetfit/core/result.h"

namespace fleetfit::core {
struct Fields;
}

namespace fleetfit::measure {

/// How a model is measured; docs/measuring.md explains it. In short: the model runs in requests of
/// about `request_ms`, first to warm up until the requests agree, then until the 95 % interval of
/// the median is within `target` of it and the second half of the runs agrees with the first. Runs
/// are never thrown away: outliers are counted, and stay in the median.
struct Protocol {
  double target = 0.02;     ///< relative half width of the median's interval to be reached
  double max_warmup_s = 2;  ///< at most a quarter of `max_time_s` is used
  double min_time_s = 1;    ///< of measuring, so that slow and fast phases of the machine are seen
  double mean_time_s = 3;   ///< the same if runs are bimodal: 30 periods of a CPU quota of 100 ms
  double max_time_s = 30;   ///< of warm-up and measuring together, for each model
  int min_runs = 10;        ///< that are independent of each other; at least 6
  int max_runs = 100'000;   ///< of measuring
  double request_ms = 50;   ///< how long one request should take
  double pause_ms = 0;      ///< of rest before each request, as a deployed network has it
  int sessions = 1;         ///< that share the time given for a model; this is one of them
  bool operators = false;   ///< also the time of each operator, by profiled requests in between

  bool operator==(const Protocol&) const = default;
};
core::Fields fields_of(const Protocol*);

/// For who gives each model this much time: little of it makes the least time shorter, too.
Protocol protocol_within(double max_time_s);

/// One of several sessions that a measurement by this protocol is divided into.
Protocol one_of_sessions(Protocol protocol, int sessions);

/// Fails with `invalid_input`, naming the field.
Status check(const Protocol& protocol);

}  // namespace fleetfit::measure
