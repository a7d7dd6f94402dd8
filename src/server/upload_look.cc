#include "server/upload_look.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/app/bundles.h"
#include "fleetfit/app/models.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/process.h"
#include "fleetfit/core/program.h"
#include "fleetfit/server/upload_kind.h"

namespace fleetfit::server {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FLEETFIT_SHADOWED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FLEETFIT_SHADOWED 1
#endif
#endif

// Sanitizers reserve terabytes, and could not start within a limit.
#ifdef FLEETFIT_SHADOWED
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif

std::string ending_of_upload(const std::string& name) {
  auto ending = fs::path(name).extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return ending;
}

/// Other files are kept as they are.
bool is_looked_into(std::string_view ending) {
  return ending == ".onnx" || ending == ".ffb" || ending == ".json" || ending == ".pem";
}

Status check_key(const fs::path& file) {
  constexpr std::uint64_t kMost = 10'000;
  FLEETFIT_ASSIGN(const auto text, core::read_file(file, {.max_bytes = kMost}));
  if (text.find("PRIVATE KEY") != std::string::npos)
    return fail(ErrorCode::invalid_input,
                "a private key is to stay where it is; send the public "
                "one");
  if (!text.starts_with("-----BEGIN PUBLIC KEY-----"))
    return fail(ErrorCode::invalid_input, "expected a public key in PEM");
  return {};
}

Status check_pool(const fs::path& file) {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  FLEETFIT_ASSIGN(const auto json, core::read_json(file, {.max_bytes = kMost}));
  if (!json.is_object()) return fail(ErrorCode::invalid_input, "expected an object");
  return {};
}

// Of its own memory, not of files that it only looks at. Nor is a crash to fill the disk.
Status limit_look(int pid, std::int64_t memory_bytes) {
  const rlimit none{};
  ::prlimit(pid, RLIMIT_CORE, &none, nullptr);
  if (!kLimitsMemory) return {};
  const rlimit limit{static_cast<rlim_t>(memory_bytes), static_cast<rlim_t>(memory_bytes)};
  if (::prlimit(pid, RLIMIT_DATA, &limit, nullptr) == 0) return {};
  return fail(ErrorCode::io, "the memory of a process cannot be limited");
}

// What the process has answered.
Result<std::string> read_answer(std::string_view line) {
  FLEETFIT_ASSIGN(const auto json, core::parse_json(line, "answer"));
  const core::JsonView view(json, "answer");
  FLEETFIT_ASSIGN(const auto problem, view.text_or("error", ""));
  if (problem.empty()) return view.text("kind");
  FLEETFIT_ASSIGN(const auto code, view.text("code"));
  const bool is_ours = code == core::to_string(ErrorCode::io);
  return fail(is_ours ? ErrorCode::io : ErrorCode::invalid_input, problem);
}

tl::unexpected<Error> refuse_look(std::string_view why) {
  return fail(ErrorCode::invalid_input, fmt::format("it cannot be looked into: {}", why));
}

std::string why_it_ended(const core::ProcessOutput& ended) {
  const auto words = core::last_line(ended.error_output);
  return core::to_string(ended.status) + (words.empty() ? "" : ": " + words);
}

}  // namespace

Result<std::string> kind_of_upload(const fs::path& file, const std::string& name) {
  const auto ending = ending_of_upload(name);
  const auto named = [](const char* kind) { return [kind] { return std::string(kind); }; };
  if (ending == ".onnx")
    return app::inspect_model(file).map([](const auto&) { return std::string("onnx"); });
  if (ending == ".ffb")
    return app::verify_bundle(file, std::nullopt).map([](const auto&) {
      return std::string("bundle");
    });
  if (ending == ".json") return check_pool(file).map(named("pool"));
  if (ending == ".pem") return check_key(file).map(named("key"));
  return std::string("data");
}

std::string describe_upload(const fs::path& file, const std::string& name) {
  const auto kind = kind_of_upload(file, name);
  const auto answer = kind ? nlohmann::json{{"kind", *kind}}
                           : nlohmann::json{{"error", kind.error().message},
                                            {"code", core::to_string(kind.error().code)}};
  return core::format_json_line(answer) + "\n";
}

Result<std::string> look_into_upload(const fs::path& file, const std::string& name,
                                     const UploadLook& look) {
  if (look.program.empty() || !is_looked_into(ending_of_upload(name)))
    return kind_of_upload(file, name);
  constexpr std::size_t kMostAnswer = 100'000;
  const std::chrono::milliseconds timeout(std::llround(look.seconds * 1000));
  const auto ended = core::run(
      {look.program.string(), "upload-kind", "--file=" + file.string(), "--name=" + name},
      {.process = {.grace = std::chrono::milliseconds(0),
                   .leftovers = core::Leftovers::all,
                   .prepare = [&](int pid) { return limit_look(pid, look.memory_bytes); }},
       .timeout = timeout,
       .max_output_bytes = kMostAnswer});
  if (!ended) return fail(ErrorCode::io, ended.error().message);
  if (ended->timed_out)
    return refuse_look(fmt::format("that takes longer than {} s", look.seconds));
  if (!ended->succeeded()) return refuse_look(why_it_ended(*ended));
  return read_answer(ended->output);
}

}  // namespace fleetfit::server
