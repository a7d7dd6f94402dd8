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
#include <map>
#include <system_error>
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

/// A connection is a file for the system, which allows few of them unless asked.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
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
    : options_(options),
      bell_(bell),
      tls_(std::move(tls)),
      surroundings_{.api = api, .incoming = options.incoming, .secure = tls_ != nullptr} {}

HttpServer::~HttpServer() = default;

void HttpServer::log(const std::string& message) const {
  if (options_.log) options_.log(message);
}

Result<Address> HttpServer::open() {
  allow_many_files();
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

void HttpServer::add(core::FileDescriptor descriptor, std::string peer) {
  const int fd = descriptor.get();
  const auto connection =
      std::make_shared<HttpConnection>(Socket(std::move(descriptor), tls_.get()), std::move(peer),
                                       surroundings_, std::chrono::steady_clock::now());
  Id id = 0;
  {
    const std::lock_guard lock(connections_mutex_);
    if (connections_.size() >= options_.most_connections) return;
    id = next_id_++;
    connections_.emplace(id, connection);
  }
  watch(epoll_.get(), EPOLL_CTL_ADD, fd, id, EPOLLIN | EPOLLONESHOT);
}

void HttpServer::arm(Id id, const HttpConnection& connection, Want want) const {
  const std::uint32_t events = want == Want::write ? EPOLLOUT : EPOLLIN;
  watch(epoll_.get(), EPOLL_CTL_MOD, connection.fd(), id, events | EPOLLONESHOT);
}

void HttpServer::remove(Id id) {
  const std::lock_guard lock(connections_mutex_);
  connections_.erase(id);
}

HttpServer::ConnectionPointer HttpServer::find(Id id) {
  const std::lock_guard lock(connections_mutex_);
  const auto at = connections_.find(id);
  return at == connections_.end() ? nullptr : at->second;
}

std::vector<std::pair<HttpServer::Id, HttpServer::ConnectionPointer>> HttpServer::all() {
  const std::lock_guard lock(connections_mutex_);
  return {connections_.begin(), connections_.end()};
}

bool HttpServer::is_busy() {
  const std::lock_guard lock(connections_mutex_);
  return std::ranges::any_of(connections_,
                             [](const auto& entry) { return entry.second->is_busy(); });
}

void HttpServer::enqueue(Id id) {
  {
    const std::lock_guard lock(queue_mutex_);
    queue_.push_back(id);
  }
  queued_.notify_one();
}

std::optional<HttpServer::Id> HttpServer::dequeue() {
  std::unique_lock lock(queue_mutex_);
  queued_.wait(lock, [this] { return ended_ || !queue_.empty(); });
  if (queue_.empty()) return std::nullopt;
  const auto id = queue_.front();
  queue_.pop_front();
  return id;
}

void HttpServer::work() {
  const core::SigpipeBlocked blocked;  // OpenSSL writes to connections that others have closed
  while (const auto id = dequeue()) {
    try {
      advance(*id);
    } catch (const std::exception& error) {
      log(fmt::format("a connection was given up: {}", error.what()));
      remove(*id);
    }
  }
}

void HttpServer::advance(Id id) {
  const auto connection = find(id);
  if (!connection) return;
  const std::lock_guard turn(connection->mutex());
  const auto want =
      connection->is_closed() ? Want::close : connection->advance(std::chrono::steady_clock::now());
  if (want != Want::close) return arm(id, *connection, want);
  connection->close();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection->fd(), nullptr);
  remove(id);
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
  for (const auto& [id, connection] : all())
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
  {
    const std::lock_guard lock(queue_mutex_);
    ended_ = true;
    queue_.clear();
  }
  queued_.notify_all();
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
  while (!stop.stop_requested()) {
    bell_->wait(1s, stop);
    if (stop.stop_requested()) return;
    if (surroundings_.streams > 0) send_events_once();
    std::this_thread::sleep_for(kBetweenEvents);
  }
}

void HttpServer::send_events_once() {
  std::map<std::int64_t, std::vector<StreamedEvent>> news;  // most streams are equally far
  for (const auto& [id, connection] : all()) {
    const std::lock_guard turn(connection->mutex());
    if (!connection->is_stream() || connection->is_closed()) continue;
    const auto last = connection->last_event();
    auto at = news.find(last);
    if (at == news.end()) {
      auto events = surroundings_.api.events_after(last, kMostEvents);
      if (!events) return log(events.error().message);
      at = news.emplace(last, *std::move(events)).first;
    }
    const auto now = std::chrono::steady_clock::now();
    connection->push(at->second, now);
    connection->look_after_stream(now);
    enqueue(id);
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
