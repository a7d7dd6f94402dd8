#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleet/text_checks.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/fleet/messages.h"

namespace fleetfit::fleet {
namespace {

using core::field;
using core::OtherKeys;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostText = 4096;
constexpr double kLongestMs = 1e7;
constexpr double kMostThreads = 1024;
constexpr std::array<std::string_view, 6> kKinds = {"probe", "measure", "profile",
                                                    "adapt", "run",     "deploy"};
constexpr std::array<std::string_view, 2> kPrecisions = {"fp32", "int8"};
constexpr std::array<std::string_view, 5> kStrategies = {"guided", "evolution", "annealing",
                                                         "nearby-evolution", "nearby-annealing"};

template <class Job>
Result<JobRequest> read_job(const core::JsonView& view) {
  return core::read<Job>(view).map([](Job job) { return JobRequest(std::move(job)); });
}

template <class... Jobs>
constexpr auto readers_of(const std::variant<Jobs...>*) {
  return std::array{read_job<Jobs>...};
}

template <class... Jobs>
std::vector<JobRequest> empty_ones(const std::variant<Jobs...>*) {
  return {JobRequest(Jobs{})...};
}

Result<std::size_t> index_of(std::string_view kind) {
  const auto found = std::ranges::find(kKinds, kind);
  if (found != kKinds.end()) return static_cast<std::size_t>(found - kKinds.begin());
  return refuse(fmt::format("kind: there is no job \"{}\", only {} and {}", kind.substr(0, 40),
                            fmt::join(kKinds.begin(), kKinds.end() - 1, ", "), kKinds.back()));
}

struct FileLister {
  using Files = std::vector<std::string>;
  Files operator()(const ProbeJob&) const { return {}; }
  Files operator()(const MeasureJob& job) const { return {job.model}; }
  Files operator()(const ProfileJob& job) const { return {job.bundle}; }
  Files operator()(const AdaptJob& job) const { return {job.bundle}; }
  Files operator()(const RunJob& job) const { return with_pool(job.bundle, job.pool); }
  Files operator()(const DeployJob& job) const { return with_pool(job.bundle, job.pool); }

  static Files with_pool(const std::string& bundle, const std::string& pool) {
    return pool.empty() ? Files{bundle} : Files{bundle, pool};
  }
};

}  // namespace

core::Fields fields_of(const Settings*) {
  static constexpr core::Field kAll[] = {
      field<&Settings::runtime>("runtime").at_most(kMostText).may_be_missing(),
      field<&Settings::threads>("threads").between(1, kMostThreads).may_be_missing(),
      field<&Settings::cores>("cores").at_most(kMostText).may_be_missing().omit_default(),
      field<&Settings::precision>("precision").one_of(kPrecisions).may_be_missing(),
      field<&Settings::cpu_quota_percent>("cpu_quota_percent")
          .between(1, 100 * kMostThreads)
          .omit_default(),
      field<&Settings::memory_limit>("memory_limit").at_most(40).may_be_missing().omit_default()};
  return {.what = "settings", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const ProbeJob*) {
  static constexpr core::Field kAll[] = {
      field<&ProbeJob::seconds>("seconds").above(0).up_to(600).may_be_missing()};
  return {.what = "request", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const MeasureJob*) {
  using Job = MeasureJob;
  static constexpr core::Field kAll[] = {
      field<&Job::model>("model").checked(check_hash),
      field<&Job::name>("name").checked(check_file_name),
      field<&Job::settings>("settings").may_be_missing(),
      field<&Job::as>("as").checked(check_name).may_be_missing().omit_default(),
      field<&Job::space>("space").at_most(kMostText).may_be_missing().omit_default(),
      field<&Job::design>("design").at_most(kMostText).may_be_missing().omit_default(),
      field<&Job::operators>("ops").may_be_missing(),
      field<&Job::max_time_s>("max_time_s").above(0).up_to(3600).may_be_missing(),
      field<&Job::target_ci_percent>("target_ci").above(0).up_to(100).may_be_missing()};
  return {.what = "request", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const ProfileJob*) {
  static constexpr core::Field kAll[] = {
      field<&ProfileJob::bundle>("bundle").checked(check_hash),
      field<&ProfileJob::threads>("threads").between(1, kMostThreads).may_be_missing()};
  return {.what = "request", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const AdaptJob*) {
  static constexpr core::Field kAll[] = {
      field<&AdaptJob::bundle>("bundle").checked(check_hash),
      field<&AdaptJob::data>("data").at_most(kMostText),
      field<&AdaptJob::budget_ms>("budget_ms").above(0).up_to(kLongestMs),
      field<&AdaptJob::strategy>("strategy").one_of(kStrategies).may_be_missing()};
  return {.what = "request", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const RunJob*) {
  static constexpr core::Field kAll[] = {
      field<&RunJob::bundle>("bundle").checked(check_hash),
      field<&RunJob::budget_ms>("budget_ms").above(0).up_to(kLongestMs),
      field<&RunJob::data>("data").at_most(kMostText),
      field<&RunJob::seconds>("seconds").above(0).up_to(kLongestS).may_be_missing(),
      field<&RunJob::pool>("pool").checked(check_hash).may_be_missing().omit_default()};
  return {.what = "request", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const DeployJob*) {
  static constexpr core::Field kAll[] = {
      field<&DeployJob::bundle>("bundle").checked(check_hash),
      field<&DeployJob::pool>("pool").checked(check_hash).may_be_missing().omit_default()};
  return {.what = "request", .all = kAll, .others = OtherKeys::refused};
}

std::string_view kind_of(const JobRequest& request) { return kKinds[request.index()]; }

Result<JobRequest> empty_request(std::string_view kind) {
  static_assert(kKinds.size() == std::variant_size_v<JobRequest>);
  FLEETFIT_ASSIGN(const auto index, index_of(kind));
  return empty_ones(static_cast<const JobRequest*>(nullptr))[index];
}

Result<JobRequest> parse_request(std::string_view kind, const core::JsonView& request) {
  constexpr auto kReaders = readers_of(static_cast<const JobRequest*>(nullptr));
  FLEETFIT_ASSIGN(const auto index, index_of(kind));
  if (!request.value().is_object()) return request.error("expected an object");
  return kReaders[index](request);
}

Json to_json(const JobRequest& request) {
  return std::visit([](const auto& job) { return core::to_json(job); }, request);
}

std::vector<std::string> files_of(const JobRequest& request) {
  return std::visit(FileLister{}, request);
}

}  // namespace fleetfit::fleet
