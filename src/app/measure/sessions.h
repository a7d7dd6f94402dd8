#pragma once

#include <map>
#include <string>
#include <vector>

#include "fleetfit/app/measuring.h"
#include "fleetfit/measure/measurement.h"

namespace fleetfit::app {

using measure::Measurement;

/// Whether the record answers such a request, so that the model need not be measured again: it has
/// numbers, and those of operators if they are asked for.
bool answers(const Measurement& record, const measure::Protocol& protocol);

/// How many sessions share the time of a whole measurement, of which the record is one.
int sessions_shared_by(const Measurement& record);

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

  void add(const Measurement& record);
  /// There are enough, and the two fastest agree.
  bool agree(double target) const;
  /// How many of the usual ones are to be made, if the next one does not agree.
  int usual_missing(double target) const;
};

/// Whether the two fastest of several sessions are within twice the target of each other. There are
/// two at least.
bool fastest_agree(std::vector<double> median_ms, double target);

/// Whether a record is a session that counts for the request. Of sessions that are as many as it
/// takes, none has to settle by itself.
bool counts(const Measurement& record, const DesignsRequest& request);

/// Which sessions of designs are there, on each device of a request, and which are to be made.
/// Designs are known by their hashes. Borrows the request.
class SessionLedger {
 public:
  explicit SessionLedger(const DesignsRequest& request);

  /// Of each design that is not known.
  int sessions() const { return sessions_; }

  /// What the store has of a device. Sessions that do not count are not looked at; designs of which
  /// no two agree get as much time again if the request wants that.
  void take_known(std::size_t device, const std::vector<Measurement>& records);
  /// A session that was made now.
  void take_fresh(const Measurement& measurement);

  /// Those that lack at least so many sessions of the design.
  std::vector<std::string> devices_without(const std::string& design, int sessions) const;
  /// Sessions to be made of the design on all devices; without a wish for a number fewer may do.
  std::size_t count_missing(const std::string& design) const;
  /// Devices on which there are sessions of the design, but no two of them agree.
  std::size_t count_disagreeing(const std::string& design) const;

 private:
  int missing(const std::string& design, std::size_t device) const;

  const DesignsRequest& request_;
  int sessions_;
  std::vector<std::map<std::string, KnownSessions>> known_;  // by hash, for each device
};

/// What several sessions of one model, newest first, say together: the fastest of them, as what
/// disturbs a session makes it slower; of equals the newest. Each operator has its least time, and
/// the status says whether the two fastest agree. All have a latency, and there is one at least.
Measurement merge_sessions(std::vector<Measurement> sessions, double target);

}  // namespace fleetfit::app
