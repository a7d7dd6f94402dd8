#include "server/api_state.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "fleetfit/app/tokens.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/fleet/messages.h"

namespace fleetfit::server {
namespace {

constexpr std::size_t kMostBuckets = 200'000;
constexpr std::size_t kMostSessions = 10'000;
constexpr std::size_t kMostRefusers = 1000;
/// Stands for all addresses that are too many to have a line each.
constexpr std::string_view kOtherAddresses = "other addresses";
constexpr std::chrono::minutes kRefusalPause{1};
constexpr std::string_view kCookie = "fleetfit_session=";

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string random_hex() {
  std::array<unsigned char, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return {};
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// What stands behind "Bearer ", if it is that.
std::optional<std::string_view> bearer(std::string_view header) {
  constexpr std::string_view kScheme = "bearer ";
  if (header.size() <= kScheme.size()) return std::nullopt;
  const auto same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  };
  if (!std::ranges::equal(header.substr(0, kScheme.size()), kScheme, same)) return std::nullopt;
  return header.substr(kScheme.size());
}

std::optional<std::string_view> session_cookie(std::string_view header) {
  while (!header.empty()) {
    const auto end = std::min(header.find(';'), header.size());
    auto part = header.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    if (part.starts_with(kCookie)) return part.substr(kCookie.size());
    header.remove_prefix(std::min(end + 1, header.size()));
  }
  return std::nullopt;
}

double filled(double left, const RateLimit& limit, std::chrono::nanoseconds since) {
  return std::min(limit.burst, left + limit.per_second * seconds(since));
}

/// After how many seconds there is one again; nothing if there is one.
std::optional<double> wait_for_one(double left, const RateLimit& limit) {
  constexpr double kNeverS = 3600;
  if (left >= 1) return std::nullopt;
  return limit.per_second > 0 ? (1 - left) / limit.per_second : kNeverS;
}

/// Enough to find it among those of a list of hashes, and of no use to anybody.
std::string start_of(std::string_view hash) {
  constexpr std::size_t kShown = 8;
  return fmt::format("of hash {}…", hash.substr(0, kShown));
}

std::string refusal_line(std::string_view address, std::int64_t more, std::string_view last) {
  return fmt::format("{}: {} more tokens were refused within a minute; the last one: {}", address,
                     more, last);
}

}  // namespace

std::optional<double> RateLimiter::take(const std::string& who, const RateLimit& limit,
                                        std::chrono::nanoseconds now) {
  const std::lock_guard lock(mutex_);
  if (buckets_.size() >= kMostBuckets) forget_some(limit, now);
  const auto [at, added] = buckets_.try_emplace(who, Bucket{limit.burst, now});
  auto& bucket = at->second;
  bucket.left = filled(bucket.left, limit, now - bucket.filled);
  bucket.filled = now;
  auto wait = wait_for_one(bucket.left, limit);
  if (!wait) bucket.left -= 1;
  return wait;
}

std::optional<double> RateLimiter::look(const std::string& who, const RateLimit& limit,
                                        std::chrono::nanoseconds now) {
  const std::lock_guard lock(mutex_);
  const auto at = buckets_.find(who);
  if (at == buckets_.end()) return std::nullopt;
  return wait_for_one(filled(at->second.left, limit, now - at->second.filled), limit);
}

void RateLimiter::forget_some(const RateLimit& limit, std::chrono::nanoseconds now) {
  constexpr double kLongAgoS = 60;
  const double full_s =
      limit.per_second > 0 ? limit.burst / limit.per_second + kLongAgoS : kLongAgoS;
  std::erase_if(buckets_,
                [&](const auto& entry) { return seconds(now - entry.second.filled) > full_s; });
  if (buckets_.size() >= kMostBuckets) buckets_.clear();
}

std::optional<std::string> RefusalLog::add(const std::string& address, const std::string& what,
                                           std::chrono::nanoseconds now) {
  const std::lock_guard lock(mutex_);
  const bool is_full = minutes_.size() >= kMostRefusers && !minutes_.contains(address);
  const auto [at, is_first] =
      minutes_.try_emplace(is_full ? std::string(kOtherAddresses) : address, Minute{.begin = now});
  if (is_first) return fmt::format("{}: a token was refused: {}", at->first, what);
  ++at->second.more;
  at->second.last = what;
  return std::nullopt;
}

std::vector<std::string> RefusalLog::due(std::chrono::nanoseconds now) {
  std::vector<std::string> lines;
  const std::lock_guard lock(mutex_);
  for (auto at = minutes_.begin(); at != minutes_.end();) {
    auto& [address, minute] = *at;
    const bool is_over = now - minute.begin >= kRefusalPause;
    if (is_over && minute.more == 0) {
      at = minutes_.erase(at);
      continue;
    }
    if (is_over) {
      lines.push_back(refusal_line(address, minute.more, minute.last));
      minute = {.begin = now};
    }
    ++at;
  }
  return lines;
}

std::string Sessions::open(Session session, store::Time now) {
  auto value = random_hex();
  if (value.empty()) return value;
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [&](const auto& entry) { return entry.second.expires <= now; });
  if (sessions_.size() >= kMostSessions)
    sessions_.erase(std::ranges::min_element(
        sessions_, {}, [](const auto& entry) { return entry.second.expires; }));
  sessions_.emplace(core::sha256_hex(value), std::move(session));
  return value;
}

std::optional<Sessions::Session> Sessions::find(std::string_view cookie_hash, store::Time now) {
  const std::lock_guard lock(mutex_);
  const auto at = sessions_.find(cookie_hash);
  if (at == sessions_.end() || at->second.expires <= now) return std::nullopt;
  return at->second;
}

void Sessions::close(std::string_view cookie_hash) {
  const std::lock_guard lock(mutex_);
  if (const auto at = sessions_.find(cookie_hash); at != sessions_.end()) sessions_.erase(at);
}

bool Presence::seen(std::string_view device, store::Time now) {
  const std::lock_guard lock(mutex_);
  const auto [at, added] = seen_.insert_or_assign(std::string(device), now);
  return added;
}

std::vector<std::string> Presence::gone(store::Time before) {
  std::vector<std::string> names;
  const std::lock_guard lock(mutex_);
  std::erase_if(seen_, [&](const auto& entry) {
    const bool is_gone = entry.second < before;
    if (is_gone) names.push_back(entry.first);
    return is_gone;
  });
  return names;
}

void Presence::forget(std::string_view device) {
  const std::lock_guard lock(mutex_);
  if (const auto at = seen_.find(device); at != seen_.end()) seen_.erase(at);
}

store::Time ApiState::now() const {
  return std::chrono::floor<std::chrono::milliseconds>(workplace_.clock.date());
}

store::Time ApiState::later(store::Time now, double seconds) const {
  return now + std::chrono::milliseconds(std::llround(seconds * 1000));
}

Status ApiState::tell(std::span<const store::EventRecord> events) {
  if (events.empty()) return {};
  FLEETFIT_ASSIGN(const auto added, fleet().add_events(events));
  if (added > 0 && options_.events_added) options_.events_added();
  return {};
}

Status ApiState::note(const Call& call, std::string_view action, std::string_view detail) {
  return fleet().add_audit({.token = call.caller.token.id,
                            .name = call.caller.token.name,
                            .action = std::string(action),
                            .detail = std::string(detail),
                            .time = call.now});
}

void ApiState::log(const std::string& message) const {
  if (options_.log) options_.log(message);
}

void ApiState::log_refusal(const ApiRequest& request, std::string_view route,
                           std::string_view token) {
  const auto line = refusals_.add(request.peer, fmt::format("{}, a token {}", route, token),
                                  workplace_.clock.now());
  if (line) log(*line);
}

void ApiState::log_due_refusals() {
  for (const auto& line : refusals_.due(workplace_.clock.now())) log(line);
}

Result<Asker> find_caller(ApiState& state, const ApiRequest& request, store::Time now) {
  Caller caller;
  std::string hash;
  if (const auto secret = bearer(request.authorization)) {
    hash = core::sha256_hex(*secret);
  } else if (const auto cookie = session_cookie(request.cookie)) {
    caller.session = core::sha256_hex(*cookie);
    if (const auto session = state.sessions().find(caller.session, now)) hash = session->token_hash;
  }
  if (hash.empty()) return Asker{};
  FLEETFIT_ASSIGN(auto token, state.fleet().find_token(hash));
  if (!token) return Asker{.refused = start_of(hash)};
  if (!app::is_valid(*token, now))
    return Asker{.refused = fmt::format("{} '{}', which {}", token->id, core::one_line(token->name),
                                        token->revoked ? "was revoked" : "has expired")};
  caller.token = *std::move(token);
  return Asker{.caller = std::move(caller)};
}

std::string network_of(const std::string& peer) {
  constexpr std::size_t kNetworkBytes = 8;  // of 16; providers give each customer one or more
  in6_addr address{};
  if (::inet_pton(AF_INET6, peer.c_str(), &address) != 1 || IN6_IS_ADDR_V4MAPPED(&address))
    return peer;
  std::string network = "network ";
  for (const auto byte : std::span(address.s6_addr).first(kNetworkBytes))
    network += fmt::format("{:02x}", byte);
  return network;
}

ApiReply too_many(double after_s) {
  auto reply = refusal(429, "too_many", "too many requests; Retry-After says when to try again");
  reply.headers.emplace_back("Retry-After", fmt::format("{}", std::max(1.0, std::ceil(after_s))));
  return reply;
}

tl::expected<std::string, ApiReply> device_of(const Call& call) {
  const auto& bound = call.caller.token.device;
  const auto asked = call.query.text("device");
  if (bound.empty() && asked.empty()) {
    return tl::unexpected(
        refusal(400, "invalid_input", "?device: is needed, as the token is bound to no device"));
  }
  if (!bound.empty() && !asked.empty() && asked != bound)
    return tl::unexpected(refusal(403, "forbidden", "the token is bound to another device"));
  auto name = bound.empty() ? asked : bound;
  if (const auto ok = fleet::check_name(name); !ok)
    return tl::unexpected(refusal(400, "invalid_input", "?device: " + ok.error().message));
  return name;
}

}  // namespace fleetfit::server
