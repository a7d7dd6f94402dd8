#include "server/http_server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "fleetfit/core/sigpipe.h"
#include "fleetfit/core/sleep.h"

namespace fleetfit::server {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kListener = 0;
constexpr std::uint64_t kWake = 1;
constexpr auto kLookAfter = 2s;
constexpr auto kGrace = 5s;             // for answers on their way, when the server is stopped
constexpr auto kBetweenEvents = 100ms;  // streams get what has happened meanwhile at once
constexpr std::size_t kMostEvents = 1'000;

/// A connection is a file for the system, which allows few of them unless asked. Gives how many.
std::size_t allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

/// Fewer connections than there may be files: some are for the store, uploads and downloads. Room
/// is then made in time; where files are out, nobody can be let in at all.
ListenOptions with_fitting_limits(ListenOptions options) {
  const auto files = allow_many_files();
  const std::size_t others = std::min<std::size_t>(files / 4, 500);
  auto& most = options.limits.all_connections;
  most = std::min(most, std::max<std::size_t>(1, files - others));
  return options;
}

std::string address_text(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the interface of sockets
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  const int failed =
      ::getnameinfo(generic, size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? std::string(host.data()) : std::string("unknown");
}

void watch(int epoll, int operation, int fd, std::uint64_t id, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  ::epoll_ctl(epoll, operation, fd, &event);
}

}  // namespace

HttpServer::HttpServer(HttpApi& api, Bell* bell, const ListenOptions& options, TlsContext tls)
    : options_(with_fitting_limits(options)),
      bell_(bell),
      tls_(std::move(tls)),
      surroundings_{.api = api,
                    .incoming = options.incoming,
                    .secure = tls_ != nullptr,
                    .patience = options_.patience,
                    .limits = options_.limits,
                    .trusted_proxies = options.trusted_proxies},
      roster_(options_.limits) {}

HttpServer::~HttpServer() = default;

void HttpServer::log(const std::string& message) const {
  if (options_.log) options_.log(message);
}

Result<Address> HttpServer::open() {
  auto address = options_.address;
  FLEETFIT_ASSIGN(listener_, listen_on(address));
  epoll_ = core::FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = core::FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.is_open() || !wake_.is_open())
    return fail(ErrorCode::io, "the system has no more files for connections");
  watch(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), kListener, EPOLLIN);
  watch(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), kWake, EPOLLIN);
  return address;
}

void HttpServer::accept_all() {
  for (;;) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the interface of sockets
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    core::FileDescriptor descriptor(
        ::accept4(listener_.get(), generic, &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!descriptor.is_open()) {
      // Out of files: those who wait are taken when others have gone.
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(10ms);
      return;
    }
    add(std::move(descriptor), address_text(address, size));
  }
}

void HttpServer::add(core::FileDescriptor descriptor, const std::string& peer) {
  const auto address = limit_key(peer);
  if (!make_room(address, is_in(options_.trusted_proxies, peer))) return;
  const int fd = descriptor.get();
  const auto id = next_id_++;
  roster_.add(id, address,
              std::make_shared<HttpConnection>(Socket(std::move(descriptor), tls_.get()), peer,
                                               surroundings_, std::chrono::steady_clock::now()));
  watch(epoll_.get(), EPOLL_CTL_ADD, fd, id, EPOLLIN | EPOLLONESHOT);
}

bool HttpServer::make_room(const std::string& address, bool is_proxy) {
  constexpr int kAttempts = 3;  // one that is to be given up may just have got a request
  for (int i = 0; i < kAttempts; ++i) {
    const auto room = roster_.room_for(address, is_proxy);
    if (room.is_there) return true;
    if (!room.instead_of) return false;
    if (give_up(*room.instead_of)) return true;
  }
  return false;
}

bool HttpServer::give_up(Id id) {
  const auto connection = roster_.find(id);
  if (!connection) return true;
  const std::unique_lock turn(connection->mutex(), std::try_to_lock);
  if (!turn || connection->standing() == Standing::busy) return false;
  connection->give_up();
  close(id, *connection);
  return true;
}

void HttpServer::arm(Id id, const HttpConnection& connection, Want want) const {
  const std::uint32_t events = want == Want::write ? EPOLLOUT : EPOLLIN;
  watch(epoll_.get(), EPOLL_CTL_MOD, connection.fd(), id, events | EPOLLONESHOT);
}

/// With its mutex held.
void HttpServer::close(Id id, HttpConnection& connection) {
  connection.close();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.fd(), nullptr);
  roster_.remove(id);
}

bool HttpServer::is_busy() const {
  return std::ranges::any_of(roster_.all(),
                             [](const auto& entry) { return entry.second->is_busy(); });
}

void HttpServer::enqueue(Id id) {
  queue_.push(roster_.address_of(id), {.id = id, .since = std::chrono::steady_clock::now()});
}

void HttpServer::work() {
  const core::SigpipeBlocked blocked;  // OpenSSL writes to connections that others have closed
  while (const auto item = queue_.pop()) {
    try {
      advance(*item);
    } catch (const std::exception& error) {
      log(fmt::format("a connection was given up: {}", error.what()));
      roster_.remove(item->id);
    }
  }
}

void HttpServer::advance(const FairQueue::Item& item) {
  const auto connection = roster_.find(item.id);
  if (!connection) return;
  const std::lock_guard turn(connection->mutex());
  const auto want = connection->is_closed()
                        ? Want::close
                        : connection->advance(std::chrono::steady_clock::now(), item.since);
  if (want == Want::close) return close(item.id, *connection);
  roster_.note(item.id, connection->standing());
  arm(item.id, *connection, want);
}

void HttpServer::wait_for_connections(int timeout_ms) {
  std::array<epoll_event, 256> events{};
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const auto id = events[static_cast<std::size_t>(i)].data.u64;
    if (id == kListener) {
      accept_all();
    } else if (id != kWake) {
      enqueue(id);
    }
  }
}

void HttpServer::enqueue_late() {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [id, connection] : roster_.all())
    if (connection->deadline() < now) enqueue(id);
}

/// Nobody new is let in; who has asked gets an answer.
void HttpServer::finish_requests() {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, wake_.get(), nullptr);
  listener_.close();
  const auto end = std::chrono::steady_clock::now() + kGrace;
  constexpr int kTurnMs = 20;
  while (is_busy() && std::chrono::steady_clock::now() < end) wait_for_connections(kTurnMs);
}

Status HttpServer::run(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
  });
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < options_.workers; ++i) workers.emplace_back([this] { work(); });
  const std::jthread keeper([this](const std::stop_token& end) { look_after(end); });
  std::jthread messenger;
  if (bell_ != nullptr)
    messenger = std::jthread([this](const std::stop_token& end) { send_events(end); });
  auto swept = std::chrono::steady_clock::now();
  constexpr int kTurnMs = 1000;
  while (!stop.stop_requested()) {
    wait_for_connections(kTurnMs);
    if (std::chrono::steady_clock::now() - swept < 1s) continue;
    swept = std::chrono::steady_clock::now();
    enqueue_late();
  }
  finish_requests();
  queue_.end();
  return {};
}

void HttpServer::look_after(const std::stop_token& stop) {
  std::string last_problem;
  do {
    const auto done = surroundings_.api.look_after();
    const auto problem = done ? std::string() : done.error().message;
    if (!problem.empty() && problem != last_problem) log(problem);
    last_problem = problem;
  } while (core::sleep_unless_stopped(kLookAfter, stop));
}

void HttpServer::send_events(const std::stop_token& stop) {
  const core::SigpipeBlocked blocked;  // OpenSSL writes to connections that others have closed
  bool is_more = false;
  while (!stop.stop_requested()) {
    if (!is_more) bell_->wait(1s, stop);
    if (stop.stop_requested()) return;
    is_more = send_events_once();
    std::this_thread::sleep_for(kBetweenEvents);
  }
}

/// Whether there are more for some who take them.
bool HttpServer::send_events_once() {
  bool is_more = false;
  std::map<std::int64_t, std::vector<StreamedEvent>> news;  // most streams are equally far
  for (const auto& [id, connection] : roster_.streams()) {
    const std::lock_guard turn(connection->mutex());
    if (!connection->is_stream() || connection->is_closed()) continue;
    const auto now = std::chrono::steady_clock::now();
    if (connection->takes_events()) {
      const auto last = connection->last_event();
      auto at = news.find(last);
      if (at == news.end()) {
        auto events = surroundings_.api.events_after(last, kMostEvents);
        if (!events) {
          log(events.error().message);
          return false;
        }
        at = news.emplace(last, *std::move(events)).first;
      }
      connection->push(at->second, now);
      const bool got_all = at->second.empty() || connection->last_event() >= at->second.back().id;
      is_more = is_more || !got_all || at->second.size() == kMostEvents;
    }
    connection->look_after_stream(now);
    if (connection->unsent_bytes() > 0 || connection->is_closed()) enqueue(id);
  }
  close_slowest_streams();
  return is_more;
}

void HttpServer::close_slowest_streams() {
  auto streams = roster_.streams();
  std::uint64_t all = 0;
  std::multimap<std::uint64_t, Id, std::greater<>> by_unsent;
  for (const auto& [id, connection] : streams) {
    const std::lock_guard turn(connection->mutex());
    all += connection->unsent_bytes();
    by_unsent.emplace(connection->unsent_bytes(), id);
  }
  for (const auto& [unsent, id] : by_unsent) {
    if (all <= options_.limits.all_stream_bytes) return;
    if (give_up(id)) all -= unsent;
  }
}

void Bell::ring() {
  {
    const std::lock_guard lock(mutex_);
    is_rung_ = true;
  }
  rung_.notify_all();
}

void Bell::wait(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  rung_.wait_for(lock, stop, time, [this] { return is_rung_; });
  is_rung_ = false;
}

Status serve_fleet(FleetApi& api, Bell& bell, const ListenOptions& options,
                   const std::function<void(const std::string&)>& listening,
                   const std::stop_token& stop) {
  const bool has_tls = !options.certificate.empty();
  if (!has_tls && !is_loopback(options.address)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("--listen {}: others could reach it: --tls-cert and --tls-key are "
                            "needed",
                            to_text(options.address)));
  }
  TlsContext tls;
  if (has_tls) {
    FLEETFIT_ASSIGN(tls, make_tls_context(options.certificate, options.key));
  }
  std::error_code error;
  for (const auto& left : std::filesystem::directory_iterator(options.incoming, error)) {
    std::error_code ignored;
    std::filesystem::remove(left.path(), ignored);
  }
  HttpServer server(api, &bell, options, std::move(tls));
  FLEETFIT_ASSIGN(const auto address, server.open());
  listening((has_tls ? "https://" : "http://") + to_text(address));
  return server.run(stop);
}

}  // namespace fleetfit::server
