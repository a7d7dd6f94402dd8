#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/fleet/messages.h"

namespace fleetfit::agent {

/// An event that has no number yet.
struct NewEvent {
  std::string time = {};
  std::string kind = {};
  std::optional<std::int64_t> job = std::nullopt;
  std::string body = "{}";
};

struct SpoolLimits {
  std::size_t most_events = 10'000;  ///< the oldest are forgotten when there are more
};

/// Results and events that the server has not got yet, each a file of a folder that is written
/// whole. Numbers of events grow for ever, also over restarts; some are left out.
class Spool {
 public:
  /// Makes the folder if need be. `first_number` is that of the first event if the folder is new: a
  /// device whose folder was lost must not begin again with numbers that the server knows. What a
  /// disk has damaged is put aside.
  static Result<Spool> open(const std::filesystem::path& folder, std::int64_t first_number,
                            const SpoolLimits& limits = {});

  /// Lasting when it returns.
  Status add_outcome(const fleet::Outcome& outcome);
  std::vector<fleet::Outcome> outcomes(std::size_t most);
  bool has_outcomes() const { return !outcomes_.empty(); }
  void remove_outcome(const fleet::Attempt& attempt);

  Status add_event(const NewEvent& event);
  /// The oldest.
  std::vector<fleet::Event> events(std::size_t most);
  bool has_events() const { return !events_.empty(); }
  /// Later events have numbers above this one, which the server knows.
  void skip_numbers(std::int64_t known) { next_ = std::max(next_, known + 1); }
  /// All up to this number.
  void remove_events(std::int64_t sequence);

 private:
  Spool(std::filesystem::path folder, const SpoolLimits& limits)
      : folder_(std::move(folder)), limits_(limits) {}

  Status read_folder(std::int64_t first_number);
  Status reserve_numbers(std::int64_t up_to);
  std::filesystem::path outcome_file(const fleet::Attempt& attempt) const;
  std::filesystem::path event_file(std::int64_t sequence) const;

  std::filesystem::path folder_;
  SpoolLimits limits_;
  std::deque<fleet::Attempt> outcomes_ = {};
  std::deque<std::int64_t> events_ = {};
  std::int64_t next_ = 1;
  std::int64_t reserved_ = 0;  // numbers up to this one may be in use
};

}  // namespace fleetfit::agent
