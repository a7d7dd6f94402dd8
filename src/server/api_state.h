#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fleetfit/app/workplace.h"
#include "fleetfit/server/fleet_api.h"
#include "fleetfit/store/fleet_store.h"
#include "server/api_routes.h"
#include "server/latency_index.h"
#include "server/shared_answers.h"

/// What a server knows beside its store. Every class here is safe to use from many threads.
namespace fleetfit::server {

/// A bucket of tokens for everybody who asks: each request takes one, and they come back with time.
class RateLimiter {
 public:
  /// Nothing if it may; else after how many seconds it may again.
  std::optional<double> take(const std::string& who, const RateLimit& limit,
                             std::chrono::nanoseconds now);
  /// The same without taking one.
  std::optional<double> look(const std::string& who, const RateLimit& limit,
                             std::chrono::nanoseconds now);

 private:
  struct Bucket {
    double left = 0;
    std::chrono::nanoseconds filled = {};
  };
  void forget_some(const RateLimit& limit, std::chrono::nanoseconds now);

  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
};

/// What is said of tokens that were refused: a line for each address and minute at most, however
/// many there are.
class RefusalLog {
 public:
  /// The line to be written now, if there is one. `what` says where, and which token.
  std::optional<std::string> add(const std::string& address, const std::string& what,
                                 std::chrono::nanoseconds now);
  /// Lines about those that came after the first one of their minute, once it is over.
  std::vector<std::string> due(std::chrono::nanoseconds now);

 private:
  struct Minute {
    std::chrono::nanoseconds begin = {};
    std::int64_t more = 0;
    std::string last = {};
  };
  std::mutex mutex_;
  std::map<std::string, Minute, std::less<>> minutes_;
};

/// Who has signed in by a browser. Cookies are known by their hashes.
class Sessions {
 public:
  struct Session {
    std::string token_hash = {};
    store::Time expires = {};
  };
  /// Gives the cookie's value, which is random.
  std::string open(Session session, store::Time now);
  std::optional<Session> find(std::string_view cookie_hash, store::Time now);
  void close(std::string_view cookie_hash);

 private:
  std::mutex mutex_;
  std::map<std::string, Session, std::less<>> sessions_;
};

/// Which devices are online.
class Presence {
 public:
  /// True if it was not before.
  bool seen(std::string_view device, store::Time now);
  /// Those that were seen last before that time; they are not online any more.
  std::vector<std::string> gone(store::Time before);
  void forget(std::string_view device);

 private:
  std::mutex mutex_;
  std::map<std::string, store::Time, std::less<>> seen_;
};

/// What routes work with. The workplace is borrowed.
class ApiState {
 public:
  ApiState(app::Workplace& workplace, FleetApiOptions options)
      : options_(std::move(options)), workplace_(workplace), latencies_(*workplace.store) {}

  const FleetApiOptions& options() const { return options_; }
  app::Workplace& workplace() { return workplace_; }
  store::Store& store() { return *workplace_.store; }
  store::FleetStore& fleet() { return workplace_.store->fleet(); }
  /// By tokens. Addresses have a limiter of their own: who has many of them cannot make the server
  /// forget how often a token was used.
  RateLimiter& limiter() { return limiter_; }
  RateLimiter& address_limiter() { return address_limiter_; }
  Sessions& sessions() { return sessions_; }
  Presence& presence() { return presence_; }
  LatencyIndex& latencies() { return latencies_; }
  SharedAnswers& shared_answers() { return shared_answers_; }
  /// Held while results are kept, so that the same one sent twice at once is not kept twice.
  std::mutex& results_mutex() { return results_mutex_; }
  /// Held while a device is registered, so that a token does not register more than it may by doing
  /// so at once.
  std::mutex& registration_mutex() { return registration_mutex_; }

  store::Time now() const;
  store::Time later(store::Time now, double seconds) const;
  /// A device that was heard of since then is online.
  store::Time online_since(store::Time now) const { return later(now, -options_.online_s); }

  /// Keeps the events and wakes those who wait for some.
  Status tell(std::span<const store::EventRecord> events);
  Status tell(const store::EventRecord& event) { return tell({&event, 1}); }
  /// Who did what.
  Status note(const Call& call, std::string_view action, std::string_view detail);
  void log(const std::string& message) const;
  /// Writes down that a token was refused, and from where; never the token.
  void log_refusal(const ApiRequest& request, std::string_view route, std::string_view token);
  /// Writes what is due of the refusals of before.
  void log_due_refusals();

 private:
  FleetApiOptions options_;
  app::Workplace& workplace_;
  RateLimiter limiter_;
  RateLimiter address_limiter_;
  RefusalLog refusals_;
  Sessions sessions_;
  Presence presence_;
  LatencyIndex latencies_;
  SharedAnswers shared_answers_;
  std::mutex results_mutex_;
  std::mutex registration_mutex_;
};

/// What a request says of who sends it.
struct Asker {
  std::optional<Caller> caller = std::nullopt;  ///< somebody with a token that may be used now
  std::string refused = {};  ///< the token that may not, for people; empty: none was shown
};
Result<Asker> find_caller(ApiState& state, const ApiRequest& request, store::Time now);

/// By what those who ask from there are counted: the address, of IPv6 the network, as everybody has
/// all addresses of one.
std::string network_of(const std::string& peer);

ApiReply too_many(double after_s);

/// The device that an agent is: `?device=`, or the one that its token is bound to. An error is a
/// reply.
tl::expected<std::string, ApiReply> device_of(const Call& call);

}  // namespace fleetfit::server
