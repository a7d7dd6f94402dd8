#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "fleetfit/core/move_file.h"
#include "fleetfit/fleet/messages.h"
#include "server/api_json.h"
#include "server/api_state.h"
#include "server/upload_look.h"

namespace fleetfit::server {
namespace {

namespace fs = std::filesystem;

/// A file's own name, without folders: it is shown, and its ending says what the file is.
Status check_file_name(std::string_view name) {
  constexpr std::size_t kMost = 200;
  const bool good = !name.empty() && name.size() <= kMost && !name.starts_with('.') &&
                    name.find_first_of("/\\") == std::string_view::npos;
  if (good) return {};
  return fail(ErrorCode::invalid_input, "?name: expected the name of a file, without folders");
}

std::string ending_of(const std::string& name) {
  auto ending = fs::path(name).extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return ending;
}

/// Messages about a file name the one that was sent, not where it lies here.
Error about_sent(Error error, const fs::path& file, const std::string& name) {
  const auto here = file.string();
  for (auto at = error.message.find(here); at != std::string::npos;
       at = error.message.find(here, at + name.size()))
    error.message.replace(at, here.size(), name);
  return error;
}

fs::path place_of(const ApiState& state, const std::string& hash) {
  return state.options().folder / hash.substr(0, 2) / hash;
}

/// Whether a job that the device has, or is to have, needs the file.
Result<bool> is_needed(ApiState& state, const std::string& device, const std::string& hash) {
  for (const auto job_state : {store::JobState::running, store::JobState::waiting}) {
    constexpr std::size_t kMost = 1000;
    FLEETFIT_ASSIGN(const auto jobs,
                    state.fleet().list_jobs({.agent = device, .state = job_state, .limit = kMost}));
    for (const auto& job : jobs) {
      FLEETFIT_ASSIGN(const auto json, core::parse_json(job.request, "request"));
      const auto request = fleet::parse_request(job.kind, core::JsonView(json, "request"));
      if (!request) continue;
      const auto files = fleet::files_of(*request);
      if (std::ranges::find(files, hash) != files.end()) return true;
    }
  }
  return false;
}

/// Keeps the file that was sent, and what is known of it.
Result<store::FileRecord> keep_file(ApiState& state, const Upload& upload, const std::string& name,
                                    store::Time now) {
  const auto temporary = fs::path(upload.file).replace_extension(ending_of(name));
  std::error_code error;
  fs::rename(upload.file, temporary, error);
  if (error) return fail(ErrorCode::io, fmt::format("{}: {}", temporary.string(), error.message()));
  auto kind = look_into_upload(temporary, name, state.options().look);
  if (!kind) {
    fs::remove(temporary, error);
    auto problem = about_sent(std::move(kind.error()), temporary, name);
    if (problem.code == ErrorCode::unsupported) problem.code = ErrorCode::invalid_input;
    const bool named = problem.message.starts_with(name);
    if (named) return tl::unexpected(std::move(problem));
    return core::within(name, std::move(problem));
  }
  FLEETFIT_TRY(core::move_file(temporary, place_of(state, upload.sha256)));
  store::FileRecord record{.hash = upload.sha256,
                           .name = name,
                           .kind = *std::move(kind),
                           .bytes = static_cast<std::int64_t>(upload.bytes),
                           .created = now};
  FLEETFIT_TRY(state.fleet().save_file(record));
  if (record.kind == "onnx") {
    FLEETFIT_TRY(state.store().save_model({.hash = record.hash,
                                           .name = fs::path(name).stem().string(),
                                           .source = "uploaded as " + name,
                                           .bytes = record.bytes}));
  }
  return record;
}

}  // namespace

Result<ApiReply> post_file(ApiState& state, const Call& call) {
  const auto name = call.query.text("name");
  FLEETFIT_TRY(check_file_name(name));
  if (!call.request.upload) return refusal(400, "invalid_input", "a body is needed");
  FLEETFIT_ASSIGN(const auto record, keep_file(state, *call.request.upload, name, call.now));
  FLEETFIT_TRY(state.note(call, "file.add", fmt::format("{} {}", record.hash, name)));
  return json_reply(to_json(record), 201);
}

Result<ApiReply> get_files(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto limit, call.query.limit());
  const auto kind = call.query.text("kind");
  constexpr std::size_t kMost = 10'000;
  FLEETFIT_ASSIGN(const auto files, state.fleet().list_files(kind.empty() ? limit : kMost));
  auto items = Json::array();
  for (const auto& file : files)
    if (items.size() < limit && (kind.empty() || file.kind == kind)) items.push_back(to_json(file));
  return page_reply(std::move(items), nullptr);
}

Result<ApiReply> get_file(ApiState& state, const Call& call) {
  const auto& hash = call.names.front();
  const auto missing = fail(ErrorCode::not_found, "there is no such file");
  if (!fleet::check_hash(hash)) return missing;
  if (call.caller.token.role == store::Role::agent) {
    auto device = device_of(call);
    if (!device) return std::move(device.error());
    FLEETFIT_ASSIGN(const auto needed, is_needed(state, *device, hash));
    if (!needed) return missing;
  }
  FLEETFIT_ASSIGN(const auto record, state.fleet().find_file(hash));
  if (!record) return missing;
  return ApiReply{.type = "application/octet-stream",
                  .headers = {{"Content-Disposition", "attachment"}},
                  .file = place_of(state, hash)};
}

}  // namespace fleetfit::server
