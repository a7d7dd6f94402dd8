#pragma once

#include <vector>

#include "fleetfit/app/measuring.h"
#include "fleetfit/store/records.h"

namespace fleetfit::app {

/// The measurement as it is kept.
store::MeasurementRecord to_record(const MeasuredModel& measured);

/// Whether the record answers such a request, so that the model need not be measured again: it has
/// numbers, and those of operators if they are asked for.
bool answers(const store::MeasurementRecord& record, const measure::Protocol& protocol);

/// How many sessions share the time of a whole measurement, of which the record is one.
int sessions_shared_by(const store::MeasurementRecord& record);

// A machine that others share is slow for seconds or minutes now and then. Short sessions that lie
// apart find it undisturbed where one that takes as long as all of them does not, and two that
// agree have done so.
inline constexpr int kUsualSessions = 8;  ///< that share the time of a whole measurement
inline constexpr std::size_t kLeastSessions = 3;

/// Sessions of a model on a device.
struct KnownSessions {
  std::vector<double> median_ms = {};
  double share = 0;     ///< of the time of a whole measurement
  bool failed = false;  ///< just now: it is not tried again

  void add(const store::MeasurementRecord& record);
  /// There are enough, and the two fastest agree.
  bool agree(double target) const;
  /// How many of the usual ones are to be made, if the next one does not agree.
  int usual_missing(double target) const;
};

/// Whether the two fastest of several sessions are within twice the target of each other. There are
/// two at least.
bool fastest_agree(std::vector<double> median_ms, double target);

/// What several sessions of one model, newest first, say together: the fastest of them, as what
/// disturbs a session makes it slower; of equals the newest. Each operator has its least time, and
/// the status says whether the two fastest agree. All have a latency, and there is one at least.
store::MeasurementRecord merge_sessions(std::vector<store::MeasurementRecord> sessions,
                                        double target);

}  // namespace fleetfit::app
