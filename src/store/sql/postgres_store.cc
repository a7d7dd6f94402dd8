#include "store/sql/postgres_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>

#include "fleetfit/core/sleep.h"
#include "store/sql/postgres_connection.h"
#include "store/sql/sql_store.h"

namespace fleetfit::store {
namespace {

using std::chrono::milliseconds;
using Connection = std::unique_ptr<PostgresConnection>;

// The version of the schema, 0 for a new one. Fails if it is not ours to change.
Result<std::size_t> identify(PostgresConnection& connection, Migrations migrations) {
  const auto& schema = connection.address().schema;
  FLEETFIT_ASSIGN(const auto tables, connection.all<std::string>(
                                         "SELECT relname::text FROM pg_catalog.pg_namespace n "
                                         "JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid "
                                         "WHERE c.relkind IN ('r', 'p', 'v', 'm') AND nspname = ?",
                                         schema));
  if (tables.empty()) return 0;
  if (std::ranges::count(tables, "fleetfit_version") == 0)
    return connection.failure(
        ErrorCode::invalid_input,
        fmt::format("its schema '{}' is one of another program; `schema=NAME` in the URL names "
                    "another",
                    schema));
  FLEETFIT_ASSIGN(const auto version,
                  connection.first<std::int64_t>("SELECT version FROM fleetfit_version"));
  if (!version || *version < 0)
    return connection.failure(ErrorCode::invalid_input, "its table fleetfit_version is damaged");
  const auto found = static_cast<std::size_t>(*version);
  return check_version(connection, found, migrations).map([&] { return found; });
}

Status migrate(PostgresConnection& connection, Migrations migrations) {
  // The number is of our own choice: "ffit" in ASCII.
  FLEETFIT_TRY(connection.execute("SELECT pg_advisory_xact_lock(1717987700)"));
  FLEETFIT_ASSIGN(const auto version, identify(connection, migrations));
  if (version == 0)
    FLEETFIT_TRY(
        connection.execute(fmt::format("CREATE SCHEMA IF NOT EXISTS {}; "
                                       "CREATE TABLE fleetfit_version (version BIGINT NOT NULL); "
                                       "INSERT INTO fleetfit_version VALUES (0)",
                                       connection.address().schema)));
  FLEETFIT_TRY(run_migrations(connection, version, migrations));
  return connection.execute(
      fmt::format("UPDATE fleetfit_version SET version = {}", migrations.size()));
}

// A server that is started again is away for about so long: pauses that double, in all 1.5 s.
Result<Connection> connect_again(const PostgresAddress& address) {
  constexpr milliseconds kLongest{800};
  for (milliseconds pause{100};; pause *= 2) {
    auto connection = PostgresConnection::open(address);
    if (connection || pause > kLongest) return connection;
    core::sleep_unless_stopped(pause, {});
  }
}

/// Hears what is announced, over a connection of its own.
class Listener {
 public:
  explicit Listener(PostgresAddress address) : address_(std::move(address)) {}

  void wait_for(std::string_view topic, milliseconds timeout, const std::stop_token& stop) {
    const std::scoped_lock lock(mutex_);
    const auto begin = std::chrono::steady_clock::now();
    const auto left = [&] {
      return std::chrono::duration_cast<milliseconds>(timeout -
                                                      (std::chrono::steady_clock::now() - begin));
    };
    if (!begin_to_listen(topic)) {
      core::sleep_unless_stopped(timeout, stop);
      return;
    }
    const auto channel = connection_->channel_of(topic);
    while (heard_.erase(channel) == 0 && left().count() > 0 && !stop.stop_requested())
      if (!hear(std::min(left(), kTick))) return;
  }

 private:
  // How long a request to stop may have to wait.
  static constexpr milliseconds kTick{50};

  // What was said before counts as heard, as nobody knows of it. False if there is no server.
  bool begin_to_listen(std::string_view topic) {
    if (!connection_) {
      auto connection = PostgresConnection::open(address_);
      if (!connection) return false;
      connection_ = *std::move(connection);
    }
    const auto channel = connection_->channel_of(topic);
    if (channels_.contains(channel)) return true;
    if (!connection_->listen(topic)) {
      forget();
      return false;
    }
    channels_.insert(channel);
    heard_.insert(channel);
    return true;
  }

  bool hear(milliseconds timeout) {
    const auto channels = connection_->heard(timeout);
    if (!channels) {
      forget();
      return false;
    }
    heard_.insert(channels->begin(), channels->end());
    return true;
  }

  void forget() {
    connection_.reset();
    channels_.clear();
    heard_.clear();
  }

  PostgresAddress address_;
  std::mutex mutex_;
  Connection connection_;
  std::set<std::string> channels_;
  std::set<std::string> heard_;
};

class PostgresDatabase final : public SqlDatabase {
 public:
  PostgresDatabase(PostgresAddress address, Connection first)
      : address_(std::move(address)), listener_(address_) {
    all_.push_back(std::move(first));
    idle_.push_back(all_.back().get());
  }

  SqlDialect dialect() const override {
    return {.lock = " FOR UPDATE",
            .lock_progress = " FOR UPDATE OF study_progress",
            .lock_free_rows = " FOR UPDATE SKIP LOCKED"};
  }
  bool announces() const override { return true; }
  void wait_for(std::string_view topic, milliseconds timeout,
                const std::stop_token& stop) override {
    listener_.wait_for(topic, timeout, stop);
  }

 protected:
  // The one that was used last comes first: others may be closed by firewalls meanwhile.
  Result<SqlConnection*> take() override {
    std::unique_lock lock(mutex_);
    is_given_back_.wait(lock, [&] { return !idle_.empty() || all_.size() < kMost; });
    while (!idle_.empty()) {
      auto* connection = idle_.back();
      idle_.pop_back();
      if (connection->is_usable()) return connection;
      remove(connection);
    }
    all_.emplace_back();  // counts while it connects
    return connect(lock);
  }

  void give_back(SqlConnection* connection) override {
    {
      const std::scoped_lock lock(mutex_);
      auto* given = static_cast<PostgresConnection*>(connection);
      if (given->is_usable()) {
        idle_.push_back(given);
      } else {
        remove(given);
      }
    }
    is_given_back_.notify_one();
  }

 private:
  // More threads than that wait for each other.
  static constexpr std::size_t kMost = 16;

  Result<SqlConnection*> connect(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    auto connection = connect_again(address_);
    lock.lock();
    const auto place = std::ranges::find(all_, nullptr, &Connection::get);
    if (!connection) {
      all_.erase(place);
      is_given_back_.notify_one();
      return tl::unexpected(std::move(connection.error()));
    }
    *place = *std::move(connection);
    return place->get();
  }

  void remove(const PostgresConnection* connection) {
    std::erase_if(all_, [&](const Connection& one) { return one.get() == connection; });
  }

  PostgresAddress address_;
  Listener listener_;
  std::mutex mutex_;
  std::condition_variable is_given_back_;
  std::vector<Connection> all_;  // null: one that is connecting
  std::vector<PostgresConnection*> idle_;
};

}  // namespace

Status bring_up_to_date(PostgresConnection& connection, Migrations migrations) {
  FLEETFIT_ASSIGN(const auto version, identify(connection, migrations));
  if (version == migrations.size()) return {};
  return connection.transaction(SqlConnection::Transaction::write,
                                [&] { return migrate(connection, migrations); });
}

Result<std::unique_ptr<Store>> open_postgres_store(const PostgresAddress& address) {
  FLEETFIT_ASSIGN(auto connection, PostgresConnection::open(address));
  FLEETFIT_TRY(bring_up_to_date(*connection, postgres_migrations()));
  return make_sql_store(
      {.records = std::make_unique<PostgresDatabase>(address, std::move(connection))});
}

}  // namespace fleetfit::store
