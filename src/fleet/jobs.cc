#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleet/field_reader.h"
#include "fleetfit/fleet/messages.h"

namespace fleetfit::fleet {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostText = 4096;
constexpr double kLongestS = 7 * 24 * 3600.0;
constexpr double kLongestMs = 1e7;
constexpr int kMostThreads = 1024;
constexpr std::array<std::string_view, 6> kKinds = {"probe", "measure", "profile",
                                                    "adapt", "run",     "deploy"};
constexpr std::array<std::string_view, 2> kPrecisions = {"fp32", "int8"};
constexpr std::array<std::string_view, 5> kStrategies = {"guided", "evolution", "annealing",
                                                         "nearby-evolution", "nearby-annealing"};

/// What names a file and nothing else, whatever folder it is put into.
Status check_file_name(std::string_view name) {
  constexpr std::size_t kMost = 200;
  const bool good =
      !name.empty() && name.size() <= kMost && !name.starts_with('.') &&
      std::ranges::none_of(name, [](unsigned char c) { return c == '/' || c == '\\' || c < ' '; });
  if (good) return {};
  return fail(ErrorCode::invalid_input, "expected the name of a file, without folders");
}

Result<JobRequest> parse_probe(const core::JsonView& view) {
  ProbeJob job;
  FieldReader reader(view);
  reader.number("seconds?", job.seconds, {.max = 600});
  if (auto ok = view.allow_only({"seconds"}); !ok) reader.refuse(ok.error());
  return reader.give(JobRequest(job));
}

Result<Settings> parse_settings(const core::JsonView& view) {
  constexpr int kMostPercent = 100 * kMostThreads;
  Settings settings;
  FieldReader reader(view);
  int quota = 0;
  reader.text("runtime?", settings.runtime, kMostText)
      .small_integer("threads?", settings.threads, 1, kMostThreads)
      .text("cores?", settings.cores, kMostText)
      .word("precision?", settings.precision, kPrecisions)
      .small_integer("cpu_quota_percent?", quota, 1, kMostPercent)
      .text("memory_limit?", settings.memory_limit, 40);
  if (quota > 0) settings.cpu_quota_percent = quota;
  if (auto ok = view.allow_only(
          {"runtime", "threads", "cores", "precision", "cpu_quota_percent", "memory_limit"});
      !ok) {
    reader.refuse(ok.error());
  }
  return reader.give(settings);
}

Result<JobRequest> parse_measure(const core::JsonView& view) {
  MeasureJob job;
  FieldReader reader(view);
  reader.checked("model", job.model, check_hash)
      .checked("name", job.name, check_file_name)
      .checked("as?", job.as, check_name)
      .text("space?", job.space, kMostText)
      .text("design?", job.design, kMostText)
      .boolean("ops?", job.operators)
      .number("max_time_s?", job.max_time_s, {.max = 3600})
      .number("target_ci?", job.target_ci_percent, {.max = 100});
  if (const auto settings = reader.find("settings?")) {
    auto read = parse_settings(*settings);
    if (read)
      job.settings = *std::move(read);
    else
      reader.refuse(read.error());
  }
  if (auto ok = view.allow_only(
          {"model", "name", "settings", "as", "space", "design", "ops", "max_time_s", "target_ci"});
      !ok) {
    reader.refuse(ok.error());
  }
  return reader.give(JobRequest(job));
}

Result<JobRequest> parse_profile(const core::JsonView& view) {
  ProfileJob job;
  FieldReader reader(view);
  reader.checked("bundle", job.bundle, check_hash)
      .small_integer("threads?", job.threads, 1, kMostThreads);
  if (auto ok = view.allow_only({"bundle", "threads"}); !ok) reader.refuse(ok.error());
  return reader.give(JobRequest(job));
}

Result<JobRequest> parse_adapt(const core::JsonView& view) {
  AdaptJob job;
  FieldReader reader(view);
  reader.checked("bundle", job.bundle, check_hash)
      .text("data", job.data, kMostText)
      .number("budget_ms", job.budget_ms, {.max = kLongestMs})
      .word("strategy?", job.strategy, kStrategies);
  if (auto ok = view.allow_only({"bundle", "data", "budget_ms", "strategy"}); !ok)
    reader.refuse(ok.error());
  return reader.give(JobRequest(job));
}

Result<JobRequest> parse_run(const core::JsonView& view) {
  RunJob job;
  FieldReader reader(view);
  reader.checked("bundle", job.bundle, check_hash)
      .checked("pool?", job.pool, check_hash)
      .text("data", job.data, kMostText)
      .number("budget_ms", job.budget_ms, {.max = kLongestMs})
      .number("seconds?", job.seconds, {.max = kLongestS});
  if (auto ok = view.allow_only({"bundle", "pool", "data", "budget_ms", "seconds"}); !ok)
    reader.refuse(ok.error());
  return reader.give(JobRequest(job));
}

Result<JobRequest> parse_deploy(const core::JsonView& view) {
  DeployJob job;
  FieldReader reader(view);
  reader.checked("bundle", job.bundle, check_hash).checked("pool?", job.pool, check_hash);
  if (auto ok = view.allow_only({"bundle", "pool"}); !ok) reader.refuse(ok.error());
  return reader.give(JobRequest(job));
}

constexpr std::array kParsers = {parse_probe, parse_measure, parse_profile,
                                 parse_adapt, parse_run,     parse_deploy};
static_assert(kParsers.size() == kKinds.size() && kKinds.size() == std::variant_size_v<JobRequest>);

void put(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

Json to_json(const Settings& settings) {
  Json json = {{"runtime", settings.runtime}, {"threads", settings.threads}};
  put(json, "cores", settings.cores);
  json["precision"] = settings.precision;
  if (settings.cpu_quota_percent) json["cpu_quota_percent"] = *settings.cpu_quota_percent;
  put(json, "memory_limit", settings.memory_limit);
  return json;
}

struct Writer {
  Json operator()(const ProbeJob& job) const { return {{"seconds", job.seconds}}; }
  Json operator()(const MeasureJob& job) const {
    Json json = {{"model", job.model}, {"name", job.name}, {"settings", to_json(job.settings)}};
    put(json, "as", job.as);
    put(json, "space", job.space);
    put(json, "design", job.design);
    json["ops"] = job.operators;
    json["max_time_s"] = job.max_time_s;
    json["target_ci"] = job.target_ci_percent;
    return json;
  }
  Json operator()(const ProfileJob& job) const {
    return {{"bundle", job.bundle}, {"threads", job.threads}};
  }
  Json operator()(const AdaptJob& job) const {
    return {{"bundle", job.bundle},
            {"data", job.data},
            {"budget_ms", job.budget_ms},
            {"strategy", job.strategy}};
  }
  Json operator()(const RunJob& job) const {
    Json json = {{"bundle", job.bundle}, {"budget_ms", job.budget_ms}, {"data", job.data}};
    json["seconds"] = job.seconds;
    put(json, "pool", job.pool);
    return json;
  }
  Json operator()(const DeployJob& job) const {
    Json json = {{"bundle", job.bundle}};
    put(json, "pool", job.pool);
    return json;
  }
};

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

std::string_view kind_of(const JobRequest& request) { return kKinds[request.index()]; }

Result<JobRequest> parse_request(std::string_view kind, const core::JsonView& request) {
  const auto found = std::ranges::find(kKinds, kind);
  if (found == kKinds.end()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("kind: there is no job \"{}\", only {}, {}, {}, {}, {} and {}",
                            kind.substr(0, 40), kKinds[0], kKinds[1], kKinds[2], kKinds[3],
                            kKinds[4], kKinds[5]));
  }
  if (!request.value().is_object()) return request.error("expected an object");
  return kParsers[static_cast<std::size_t>(found - kKinds.begin())](request);
}

Json to_json(const JobRequest& request) { return std::visit(Writer{}, request); }

std::vector<std::string> files_of(const JobRequest& request) {
  return std::visit(FileLister{}, request);
}

}  // namespace fleetfit::fleet
