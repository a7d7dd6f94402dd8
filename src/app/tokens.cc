#include "fleetfit/app/tokens.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/move_file.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/fleet/messages.h"
#include "fleetfit/report/words.h"

namespace fleetfit::app {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

store::Time now_of(const Workplace& workplace) {
  return std::chrono::time_point_cast<milliseconds>(workplace.clock.date());
}

Result<std::string> random_secret() {
  std::array<unsigned char, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return fail(ErrorCode::io, fmt::format("the system gives no random numbers ({})",
                                           core::system_message(errno)));
  std::string secret = "ff_";
  for (const auto byte : bytes) secret += fmt::format("{:02x}", byte);
  return secret;
}

Status check(const TokenRequest& request, store::Time now) {
  if (!request.device.empty() && request.role != store::Role::agent)
    return fail(ErrorCode::invalid_input,
                fmt::format("device: a token of the role {} is bound to none",
                            store::to_string(request.role)));
  if (!request.device.empty())
    if (auto named = fleet::check_name(request.device); !named)
      return core::within("device", std::move(named.error()));
  constexpr std::int64_t kMostDevices = 1'000'000;
  const bool registers_many = request.role == store::Role::agent && request.device.empty();
  if (request.devices && !registers_many)
    return fail(ErrorCode::invalid_input,
                "devices: it is for tokens of the role agent that are bound to no device");
  if (request.devices && (*request.devices < 0 || *request.devices > kMostDevices))
    return fail(ErrorCode::invalid_input,
                fmt::format("devices: expected a whole number from 0 to {}", kMostDevices));
  if (request.expires && *request.expires <= now)
    return fail(ErrorCode::invalid_input, "expires: the token would have expired already");
  return {};
}

/// A new file that its owner alone can read. Gone again if it is not committed.
class SecretFile {
 public:
  static Result<SecretFile> create(const fs::path& path) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    core::FileDescriptor file(::open(path.c_str(), kFlags, S_IRUSR | S_IWUSR));
    if (!file.is_open())
      return fail(errno == EEXIST ? ErrorCode::invalid_input : ErrorCode::io,
                  fmt::format("cannot create {}: {}", path.string(), core::system_message(errno)));
    return SecretFile(path, std::move(file));
  }
  SecretFile(SecretFile&&) noexcept = default;
  SecretFile& operator=(SecretFile&&) = delete;
  ~SecretFile() {
    if (!file_.is_open()) return;
    std::error_code ignored;
    fs::remove(path_, ignored);
  }

  Status commit(const std::string& line) {
    if (!core::write_all(file_, line) || ::fsync(file_.get()) != 0)
      return fail(ErrorCode::io,
                  fmt::format("cannot write {}: {}", path_.string(), core::system_message(errno)));
    file_.close();
    core::sync_folder(path_.parent_path());
    return {};
  }

 private:
  SecretFile(fs::path path, core::FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  fs::path path_;
  core::FileDescriptor file_;
};

Result<TokenRequest> request_of(const NewToken& wanted, store::Time now) {
  FLEETFIT_ASSIGN(const auto role, core::parse_name<store::Role>(wanted.role));
  TokenRequest request{
      .name = wanted.name, .role = role, .device = wanted.device, .devices = wanted.devices};
  if (wanted.lifetime.empty()) return request;
  FLEETFIT_ASSIGN(const auto lifetime, core::within("expires", parse_lifetime(wanted.lifetime)));
  request.expires = now + lifetime;
  return request;
}

Status note(const Workplace& workplace, std::string action, std::string detail) {
  return workplace.store->fleet().add_audit({.name = "command line",
                                             .action = std::move(action),
                                             .detail = std::move(detail),
                                             .time = now_of(workplace)});
}

nlohmann::ordered_json date_or_null(const std::optional<store::Time>& time) {
  if (!time) return nullptr;
  return report::date_text(*time);
}

}  // namespace

Result<CreatedToken> create_token(store::FleetStore& fleet, const TokenRequest& request,
                                  store::Time now) {
  FLEETFIT_TRY(check(request, now));
  FLEETFIT_ASSIGN(auto secret, random_secret());
  CreatedToken created{.token = std::move(secret)};
  created.record = {.name = request.name,
                    .role = request.role,
                    .hash = core::sha256_hex(created.token),
                    .device = request.device,
                    .created = now,
                    .expires = request.expires,
                    .devices = request.devices.value_or(store::kDevicesOfToken)};
  FLEETFIT_ASSIGN(created.record.id, fleet.add_token(created.record));
  return created;
}

bool is_valid(const store::TokenRecord& token, store::Time now) {
  return !token.revoked && (!token.expires || now < *token.expires);
}

Result<store::TokenRecord> find_token(store::FleetStore& fleet, std::string_view secret,
                                      store::Time now) {
  FLEETFIT_ASSIGN(auto found, fleet.find_token(core::sha256_hex(secret)));
  if (!found || !is_valid(*found, now)) return fail(ErrorCode::not_found, "the token is not valid");
  return *std::move(found);
}

Result<milliseconds> parse_lifetime(std::string_view text) {
  using std::chrono::hours;
  constexpr std::int64_t kMostHours = std::int64_t{100} * 365 * 24;
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::invalid_input, fmt::format("'{}' {}", text, why));
  };
  constexpr std::string_view kShape = "is no duration such as 12h, 30d or 2w";
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto left = text.substr(static_cast<std::size_t>(rest - text.data()));
  if (error == std::errc::invalid_argument || left.size() != 1) return refuse(kShape);
  const auto factor = left == "h" ? 1 : left == "d" ? 24 : left == "w" ? 7 * 24 : 0;
  if (factor == 0) return refuse(kShape);
  if (error == std::errc::result_out_of_range || number > kMostHours / factor)
    return refuse("is longer than 100 years");
  if (number <= 0) return refuse("is not above zero");
  return hours(number * factor);
}

Result<CreatedToken> create_token(const Workplace& workplace, const NewToken& wanted) {
  const auto now = now_of(workplace);
  FLEETFIT_ASSIGN(const auto request, request_of(wanted, now));
  FLEETFIT_TRY(check(request, now));
  std::optional<SecretFile> file;
  if (!wanted.output.empty()) {
    FLEETFIT_ASSIGN(auto created, SecretFile::create(wanted.output));
    file.emplace(std::move(created));
  }
  auto token = create_token(workplace.store->fleet(), request, now);
  if (!token) return token;
  if (file) FLEETFIT_TRY(file->commit(token->token + "\n"));
  const auto& record = token->record;
  FLEETFIT_TRY(
      note(workplace, "token.create",
           fmt::format("{} {} {}", record.id, store::to_string(record.role), record.name)));
  return token;
}

Result<TokenList> list_tokens(const Workplace& workplace) {
  return workplace.store->fleet().list_tokens().map([&](std::vector<store::TokenRecord> tokens) {
    return TokenList{.tokens = std::move(tokens), .now = now_of(workplace)};
  });
}

Status revoke_token(const Workplace& workplace, std::int64_t id) {
  FLEETFIT_ASSIGN(const auto revoked, workplace.store->fleet().revoke_token(id, now_of(workplace)));
  if (!revoked)
    return fail(ErrorCode::not_found,
                fmt::format("there is no token {} that is not revoked yet", id));
  return note(workplace, "token.revoke", fmt::format("{}", id));
}

std::string_view state_of(const store::TokenRecord& token, store::Time now) {
  if (token.revoked) return "revoked";
  return is_valid(token, now) ? "valid" : "expired";
}

std::optional<std::int64_t> most_devices(const store::TokenRecord& token) {
  if (token.role != store::Role::agent || !token.device.empty()) return std::nullopt;
  return token.devices;
}

nlohmann::ordered_json to_json(const store::TokenRecord& token, store::Time now) {
  nlohmann::ordered_json json{{"id", token.id},
                              {"name", token.name},
                              {"role", store::to_string(token.role)},
                              {"device", token.device},
                              {"state", state_of(token, now)},
                              {"created", report::date_text(token.created)},
                              {"expires", date_or_null(token.expires)},
                              {"revoked", date_or_null(token.revoked)}};
  if (const auto most = most_devices(token)) json["devices"] = *most;
  return json;
}

nlohmann::ordered_json to_json(const TokenList& list) {
  auto tokens =
      core::json_list(list.tokens, [&](const auto& token) { return to_json(token, list.now); });
  return {{"tokens", std::move(tokens)}};
}

}  // namespace fleetfit::app
