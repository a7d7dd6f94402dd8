#include "agent/spool.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"

namespace fleetfit::agent {
namespace {

namespace fs = std::filesystem;

// Numbers are reserved in advance, so that not every event waits for the disk twice.
constexpr std::int64_t kReserve = 1000;

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size() || number < 1)
    return std::nullopt;
  return number;
}

/// "12-3.json": the third attempt at job 12.
std::optional<fleet::Attempt> attempt_in(const std::string& stem) {
  const auto dash = stem.find('-');
  if (dash == std::string::npos) return std::nullopt;
  const auto job = number_in(std::string_view(stem).substr(0, dash));
  const auto attempt = number_in(std::string_view(stem).substr(dash + 1));
  if (!job || !attempt) return std::nullopt;
  return fleet::Attempt{*job, *attempt};
}

std::vector<fs::path> json_files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

Status make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return {};
  return fail(ErrorCode::io, fmt::format("{}: {}", folder.string(), error.message()));
}

void put_aside(const fs::path& file) {
  std::error_code ignored;
  fs::rename(file, fs::path(file).replace_extension(".broken"), ignored);
}

/// What the files of the first keys hold, one thing each; a file that cannot be read is put aside,
/// and its key is forgotten.
template <class Key, class FileOf, class Thing>
std::vector<Thing> read_first(std::size_t most, std::deque<Key>& keys, const FileOf& file_of,
                              Result<std::vector<Thing>> (*parse)(const core::JsonView&)) {
  std::vector<Thing> found;
  for (auto at = keys.begin(); at != keys.end() && found.size() < most;) {
    const auto file = file_of(*at);
    const auto json = core::read_json(file);
    auto read = json ? parse(core::JsonView(*json, file.string())) : tl::unexpected(json.error());
    if (read && read->size() == 1) {
      found.push_back(std::move(read->front()));
      ++at;
    } else {
      put_aside(file);
      at = keys.erase(at);
    }
  }
  return found;
}

}  // namespace

Result<Spool> Spool::open(const fs::path& folder, std::int64_t first_number,
                          const SpoolLimits& limits) {
  for (const auto* part : {"results", "events"}) FLEETFIT_TRY(make_folder(folder / part));
  Spool spool(folder, limits);
  FLEETFIT_TRY(spool.read_folder(first_number));
  return spool;
}

Status Spool::read_folder(std::int64_t first_number) {
  for (const auto& file : json_files_in(folder_ / "results")) {
    if (const auto attempt = attempt_in(file.stem().string()))
      outcomes_.push_back(*attempt);
    else
      put_aside(file);
  }
  for (const auto& file : json_files_in(folder_ / "events")) {
    if (const auto sequence = number_in(file.stem().string()))
      events_.push_back(*sequence);
    else
      put_aside(file);
  }
  std::ranges::sort(events_);
  const auto text = core::read_file(folder_ / "sequence", {.max_bytes = 100});
  std::int64_t reserved = first_number - 1;
  if (text) reserved = number_in(*text).value_or(reserved);
  if (!events_.empty()) reserved = std::max(reserved, events_.back());
  next_ = reserved + 1;
  return reserve_numbers(reserved + kReserve);
}

Status Spool::reserve_numbers(std::int64_t up_to) {
  FLEETFIT_TRY(core::write_file(folder_ / "sequence", fmt::to_string(up_to)));
  reserved_ = up_to;
  return {};
}

fs::path Spool::outcome_file(const fleet::Attempt& attempt) const {
  return folder_ / "results" / fmt::format("{}-{}.json", attempt.job, attempt.attempt);
}

fs::path Spool::event_file(std::int64_t sequence) const {
  return folder_ / "events" / fmt::format("{:016}.json", sequence);
}

Status Spool::add_outcome(const fleet::Outcome& outcome) {
  const auto json = fleet::to_json(std::vector{outcome});
  FLEETFIT_TRY(core::write_file(outcome_file(outcome.attempt), core::format_json(json)));
  outcomes_.push_back(outcome.attempt);
  return {};
}

std::vector<fleet::Outcome> Spool::outcomes(std::size_t most) {
  return read_first(
      most, outcomes_, [this](const auto& attempt) { return outcome_file(attempt); },
      fleet::parse_outcomes);
}

void Spool::remove_outcome(const fleet::Attempt& attempt) {
  std::error_code ignored;
  fs::remove(outcome_file(attempt), ignored);
  std::erase_if(outcomes_, [&](const fleet::Attempt& one) {
    return one.job == attempt.job && one.attempt == attempt.attempt;
  });
}

Status Spool::add_event(const NewEvent& event) {
  if (next_ > reserved_) {
    FLEETFIT_TRY(reserve_numbers(next_ + kReserve));
  }
  const fleet::Event numbered{.sequence = next_,
                              .time = event.time,
                              .kind = event.kind,
                              .job = event.job,
                              .body = event.body};
  const auto text = core::format_json(fleet::to_json(std::vector{numbered}));
  FLEETFIT_TRY(core::write_file(event_file(next_), text, core::Durability::scratch));
  events_.push_back(next_++);
  while (events_.size() > limits_.most_events) remove_events(events_.front());
  return {};
}

std::vector<fleet::Event> Spool::events(std::size_t most) {
  return read_first(
      most, events_, [this](std::int64_t sequence) { return event_file(sequence); },
      fleet::parse_events);
}

void Spool::remove_events(std::int64_t sequence) {
  std::error_code ignored;
  while (!events_.empty() && events_.front() <= sequence) {
    fs::remove(event_file(events_.front()), ignored);
    events_.pop_front();
  }
}

}  // namespace fleetfit::agent
