// A fleet's server under load, on this machine:
//   fleet_load FLEETFIT [--agents 1000] [--rate 100] [--seconds 60] [--kills 0] [--threads 8]
// Starts `FLEETFIT server`, over a new store of SQLite in TMPDIR. Agents send a heartbeat every 10
// seconds, claim what waits for them and send results and events; somebody asks for jobs, so many a
// second; somebody looks at the pages. Half of the kills end the server by SIGKILL, and it is
// started again; the others let an agent forget what it has claimed. In the end every job must have
// finished once, and every event must be there once. Prints how long answers took, and fails if
// anything was lost.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <queue>
#include <thread>

#include "fleetfit/app/tokens.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/process.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/core/sleep.h"
#include "fleetfit/fleet/client.h"

namespace fleetfit::bench {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds kHeartbeat{10};

struct LoadOptions {
  std::string program;
  int agents = 1000;
  double rate = 100;
  double seconds = 60;
  int kills = 0;
  int threads = 8;
};

store::Time now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

/// How long answers took, by kind of call. Safe to use from many threads.
class Times {
 public:
  void add(const std::string& kind, double ms) {
    const std::scoped_lock lock(mutex_);
    ms_[kind].push_back(ms);
  }
  void count_failure(const fleet::CallError& error) {
    const std::scoped_lock lock(mutex_);
    ++failures_[error.passing() ? fmt::format("status {}, tried again", error.status)
                                : fmt::format("status {}: {}", error.status, error.message)];
    refused_ = refused_ || !error.passing();
  }

  // Whether nothing was refused and 99 of 100 answers came within 100 ms.
  bool print() {
    std::vector<double> all;
    for (auto& [kind, ms] : ms_) {
      print(kind, ms);
      all.insert(all.end(), ms.begin(), ms.end());
    }
    print("all", all);
    for (const auto& [what, count] : failures_) fmt::print("{:<24} {:>8} times\n", what, count);
    return !refused_;
  }

 private:
  static void print(std::string_view kind, std::vector<double>& ms) {
    if (ms.empty()) return;
    std::ranges::sort(ms);
    fmt::print("{:<24} {:>8} answers  p50 {:>8.2f} ms  p99 {:>8.2f} ms  longest {:>8.1f} ms\n",
               kind, ms.size(), ms[ms.size() / 2], ms[ms.size() * 99 / 100], ms.back());
  }

  std::mutex mutex_;
  std::map<std::string, std::vector<double>> ms_;
  std::map<std::string, int> failures_;
  bool refused_ = false;
};

/// A client whose calls are timed.
class Caller {
 public:
  Caller(std::unique_ptr<fleet::Client> client, Times& times)
      : client_(std::move(client)), times_(times) {}

  fleet::Client::Reply post(const std::string& path, const Json& body) {
    return timed("POST " + path, [&] { return client_->post(path, body); });
  }
  fleet::Client::Reply get(const std::string& path) {
    return timed("GET " + path, [&] { return client_->get(path); });
  }

 private:
  template <class Call>
  fleet::Client::Reply timed(const std::string& kind, const Call& call) {
    const auto start = Clock::now();
    auto reply = call();
    if (reply) {
      times_.add(kind, 1000 * Seconds(Clock::now() - start).count());
    } else {
      times_.count_failure(reply.error());
    }
    return reply;
  }

  std::unique_ptr<fleet::Client> client_;
  Times& times_;
};

/// The program under load. Belongs to one thread.
class Server {
 public:
  Server(std::string program, std::filesystem::path folder)
      : program_(std::move(program)), folder_(std::move(folder)) {}

  const std::string& url() const { return url_; }
  std::string store_url() const { return "sqlite:" + (folder_ / "store.db").string(); }
  std::int64_t most_memory_bytes() const { return most_memory_bytes_; }

  Status start() {
    FLEETFIT_ASSIGN(
        auto started,
        core::Process::start({program_, "--store", store_url(), "--json", "server", "--listen",
                              address_, "--files", (folder_ / "files").string()},
                             {.error_output = core::ErrorOutput::inherit}));
    process_.emplace(std::move(started));
    std::string text;
    for (;;) {
      FLEETFIT_ASSIGN(const auto line, process_->read_line(std::chrono::seconds(60)));
      if (!line) return fail(ErrorCode::device_failed, "the server ended at its start");
      text += *line;
      if (const auto json = Json::parse(text, nullptr, false); !json.is_discarded()) {
        url_ = json.at("url");
        address_ = url_.substr(url_.find("//") + 2);
        return {};
      }
    }
  }

  void note_memory() {
    std::ifstream status(fmt::format("/proc/{}/status", process_->pid()));
    for (std::string word; status >> word;)
      if (std::int64_t kib = 0; word == "VmHWM:" && status >> kib)
        most_memory_bytes_ = std::max(most_memory_bytes_, kib << 10);
  }

  Status kill_and_start() {
    note_memory();
    ::kill(process_->pid(), SIGKILL);
    process_->wait(std::chrono::seconds(10));
    return start();
  }

  void stop() {
    note_memory();
    process_->stop();
  }

 private:
  std::string program_;
  std::filesystem::path folder_;
  std::string address_ = "127.0.0.1:0";
  std::string url_;
  std::optional<core::Process> process_;
  std::int64_t most_memory_bytes_ = 0;
};

/// What all agents have in common.
struct Load {
  std::string url;
  std::string token;
  Times& times;
  std::atomic<int> crashes = 0;  ///< agents that are still to forget what they claimed
  std::atomic<std::int64_t> crashed = 0;
  std::mutex mutex = {};
  std::map<std::int64_t, int> counted = {};  ///< how often a job's result was said to count
};

/// One device: what it has not reported yet is kept until the server has it.
class Agent {
 public:
  static Result<Agent> make(int number, Load& load) {
    auto name = fmt::format("load-{:05}", number);
    FLEETFIT_ASSIGN(auto client,
                    fleet::make_client({.server = load.url, .token = load.token, .device = name}));
    return Agent(std::move(name), std::move(client), load);
  }

  // How long it wants to rest then.
  Seconds turn(core::Random& random) {
    const bool done = (registered_ || register_me()) && send_results() && beat() && send_events();
    return done ? kHeartbeat : Seconds(0.2 + random.uniform());
  }

 private:
  Agent(std::string name, std::unique_ptr<fleet::Client> client, Load& load)
      : name_(std::move(name)), caller_(std::move(client), load.times), load_(&load) {}

  bool register_me() {
    const auto reply = caller_.post(
        "/agent/register", {{"name", name_}, {"version", "load"}, {"hardware", "simulated"}});
    if (!reply) return false;
    sequence_ = reply->value("last_sequence", std::int64_t{0});
    registered_ = true;
    return true;
  }

  bool beat() {
    const auto reply = caller_.post("/agent/heartbeat", {{"running", Json::array()}});
    if (!reply) return false;
    return reply->value("waiting", 0) == 0 || (claim() && send_results());
  }

  bool claim() {
    const auto reply = caller_.post("/agent/claim", {{"most", 20}});
    if (!reply) return false;
    if (load_->crashes.fetch_sub(1) > 0) return crash();
    load_->crashes.fetch_add(1);
    for (const auto& job : reply->at("jobs")) {
      results_.push_back({{"job", job.at("id")},
                          {"attempt", job.at("attempt")},
                          {"state", "finished"},
                          {"reason", ""},
                          {"result", {{"job", job.at("id")}}}});
      events_.push_back({{"sequence", ++sequence_},
                         {"time", "2026-11-16T08:00:00.000Z"},
                         {"kind", "load"},
                         {"job", job.at("id")},
                         {"body", Json::object()}});
    }
    return true;
  }

  bool crash() {
    results_.clear();
    events_.clear();
    registered_ = false;
    ++load_->crashed;
    return false;
  }

  bool send_results() {
    if (results_.empty()) return true;
    const auto reply = caller_.post("/agent/results", {{"results", results_}});
    if (!reply) return false;
    const std::scoped_lock lock(load_->mutex);
    for (const auto& result : reply->at("results"))
      if (result.at("ended") == "now") ++load_->counted[result.at("job")];
    results_.clear();
    return true;
  }

  bool send_events() {
    if (events_.empty()) return true;
    if (!caller_.post("/agent/events", {{"events", events_}})) return false;
    events_.clear();
    return true;
  }

  std::string name_;
  Caller caller_;
  Load* load_;
  bool registered_ = false;
  std::int64_t sequence_ = 0;
  std::vector<Json> results_;
  std::vector<Json> events_;
};

// Agents take their turns, the one that is due first.
void run_agents(std::vector<Agent> agents, std::uint64_t seed, const std::stop_token& stop) {
  core::Random random(seed);
  using Due = std::pair<Clock::time_point, std::size_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due;
  const auto later = [](Seconds time) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
  };
  for (std::size_t i = 0; i < agents.size(); ++i)
    due.emplace(later(random.uniform() * kHeartbeat), i);
  while (!stop.stop_requested()) {
    const auto [time, index] = due.top();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now());
    if (left.count() > 0) {
      core::sleep_unless_stopped(std::min(left, std::chrono::milliseconds(200)), stop);
      continue;
    }
    due.pop();
    due.emplace(later(agents[index].turn(random)), index);
  }
}

// Asks for jobs of agents at random; gives how many the server has.
std::int64_t ask_for_jobs(Caller caller, const LoadOptions& options, Clock::time_point end) {
  core::Random random(7);
  std::int64_t asked = 0;
  const auto start = Clock::now();
  while (Clock::now() < end) {
    const auto due = start + std::chrono::duration_cast<Clock::duration>(
                                 Seconds(static_cast<double>(asked) / options.rate));
    std::this_thread::sleep_until(due);
    const Json job{{"device", fmt::format("load-{:05}", random.below(options.agents))},
                   {"kind", "probe"},
                   {"request", Json::object()},
                   {"key", fmt::format("load {}", asked)}};
    const auto reply = caller.post("/jobs", job);
    if (reply) {
      ++asked;
    } else if (reply.error().passing()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the same job again
    } else {
      return asked;
    }
  }
  return asked;
}

void look_at_pages(Caller caller, const std::stop_token& stop) {
  while (core::sleep_unless_stopped(std::chrono::milliseconds(500), stop)) {
    for (const char* path :
         {"/summary", "/devices?limit=100", "/jobs?limit=100", "/events?limit=100"})
      caller.get(path);
  }
}

/// What is in the store in the end.
struct Found {
  std::int64_t jobs = 0;
  std::int64_t wrong = 0;  ///< not finished, or with another's result
  std::int64_t attempts = 0;
  std::int64_t events = 0;
  std::int64_t sequences = 0;  ///< of all agents
};

Result<Found> look(store::FleetStore& fleet) {
  Found found;
  for (std::int64_t before = 0;;) {
    FLEETFIT_ASSIGN(const auto jobs, fleet.list_jobs({.before = before, .limit = 1000}));
    if (jobs.empty()) break;
    for (const auto& job : jobs) {
      ++found.jobs;
      found.attempts += job.attempt;
      const auto result = Json::parse(job.result);
      const bool is_right =
          job.state == store::JobState::finished && result.value("job", std::int64_t{0}) == job.id;
      found.wrong += is_right ? 0 : 1;
    }
    before = jobs.back().id;
  }
  for (std::int64_t after = 0;;) {
    FLEETFIT_ASSIGN(const auto events,
                    fleet.list_events({.kind = "load", .after = after, .limit = 1000}));
    if (events.empty()) break;
    found.events += static_cast<std::int64_t>(events.size());
    after = events.back().id;
  }
  for (std::string after;;) {
    FLEETFIT_ASSIGN(const auto agents,
                    fleet.list_agents({.after = after, .limit = 1000, .probes = false}));
    if (agents.empty()) break;
    for (const auto& agent : agents) found.sequences += fleet.last_sequence(agent.name).value_or(0);
    after = agents.back().name;
  }
  return found;
}

// Waits until no job waits or runs, at most four minutes: a lease lasts one.
Status drain(store::FleetStore& fleet) {
  for (int i = 0; i < 240; ++i) {
    FLEETFIT_ASSIGN(const auto counts, fleet.count_jobs());
    if (counts.waiting + counts.running == 0) return {};
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return fail(ErrorCode::unstable, "there are jobs that do not end");
}

// At random moments until `end`, the server or an agent in turn.
Result<int> kill_at_random(Server& server, Load& load, int kills, Clock::time_point end) {
  core::Random random(11);
  std::vector<double> moments;
  const double length_s = Seconds(end - Clock::now()).count();
  for (int i = 0; i < kills; ++i) moments.push_back(random.uniform() * length_s);
  std::ranges::sort(moments);
  const auto start = Clock::now();
  int servers = 0;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    std::this_thread::sleep_until(start +
                                  std::chrono::duration_cast<Clock::duration>(Seconds(moments[i])));
    if (i % 2 == 1) {
      ++load.crashes;
      continue;
    }
    FLEETFIT_TRY(server.kill_and_start());
    ++servers;
  }
  std::this_thread::sleep_until(end);
  return servers;
}

struct Tokens {
  std::string admin;
  std::string agent;
};

Result<Tokens> make_tokens(store::FleetStore& fleet) {
  FLEETFIT_ASSIGN(const auto admin, app::create_token(fleet, {.role = store::Role::admin}, now()));
  FLEETFIT_ASSIGN(const auto agent, app::create_token(fleet, {.role = store::Role::agent}, now()));
  return Tokens{.admin = admin.token, .agent = agent.token};
}

Result<std::vector<std::vector<Agent>>> make_agents(const LoadOptions& options, Load& load) {
  std::vector<std::vector<Agent>> groups(static_cast<std::size_t>(options.threads));
  for (int i = 0; i < options.agents; ++i) {
    FLEETFIT_ASSIGN(auto agent, Agent::make(i, load));
    groups[static_cast<std::size_t>(i % options.threads)].push_back(std::move(agent));
  }
  return groups;
}

// As devices that exist, so that jobs can be asked for at once.
Status save_agents(store::FleetStore& fleet, int count) {
  std::vector<store::AgentRecord> agents;
  for (int i = 0; i < count; ++i)
    agents.push_back({.name = fmt::format("load-{:05}", i), .created = now()});
  return fleet.save_agents(agents);
}

bool print_found(const Found& found, std::int64_t asked, Load& load) {
  std::int64_t twice = 0;
  for (const auto& [job, count] : load.counted) twice += count > 1 ? 1 : 0;
  fmt::print(
      "jobs asked for {}, in the store {}, not finished as they should {}, counted twice {}; {} "
      "attempts; agents that forgot what they had {}\nevents of agents {}, of {} that they were "
      "told to have\n",
      asked, found.jobs, found.wrong, twice, found.attempts, load.crashed.load(), found.events,
      found.sequences);
  return found.jobs == asked && found.wrong == 0 && twice == 0 && found.events == found.sequences;
}

Result<bool> run(const LoadOptions& options, const std::filesystem::path& folder) {
  Server server(options.program, folder);
  FLEETFIT_ASSIGN(const auto store, store::open_store(server.store_url()));
  auto& fleet = store->fleet();
  FLEETFIT_ASSIGN(const auto tokens, make_tokens(fleet));
  FLEETFIT_TRY(save_agents(fleet, options.agents));
  FLEETFIT_TRY(server.start());

  Times times;
  Load load{.url = server.url(), .token = tokens.agent, .times = times};
  FLEETFIT_ASSIGN(auto groups, make_agents(options, load));
  auto asking = fleet::make_client({.server = server.url(), .token = tokens.admin});
  auto looking = fleet::make_client({.server = server.url(), .token = tokens.admin});
  if (!asking || !looking) return tl::unexpected((asking ? looking : asking).error());

  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(options.seconds));
  std::int64_t asked = 0;
  Result<int> killed = 0;
  Status drained;
  {
    std::vector<std::jthread> agents;
    for (std::size_t i = 0; i < groups.size(); ++i)
      agents.emplace_back([group = std::move(groups[i]), i](const std::stop_token& stop) mutable {
        run_agents(std::move(group), i, stop);
      });
    const std::jthread pages([&](const std::stop_token& stop) {
      look_at_pages(Caller(*std::move(looking), times), stop);
    });
    std::thread asker(
        [&] { asked = ask_for_jobs(Caller(*std::move(asking), times), options, end); });
    killed = kill_at_random(server, load, options.kills, end);
    asker.join();
    drained = killed ? drain(fleet) : Status{};
    std::this_thread::sleep_for(kHeartbeat + std::chrono::seconds(5));  // for the last events
  }
  server.stop();
  if (!killed) return tl::unexpected(killed.error());
  FLEETFIT_ASSIGN(const auto found, look(fleet));
  fmt::print("{} agents, {} s, {} kills of the server; its memory at most {:.0f} MB\n",
             options.agents, options.seconds, *killed,
             static_cast<double>(server.most_memory_bytes()) / 1e6);
  const bool answered = times.print();
  const bool complete = print_found(found, asked, load);
  if (!drained) fmt::print("{}\n", drained.error().message);
  return answered && complete && drained.has_value();
}

// A connection for each agent, here and in the server.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int main_with(int argc, char** argv) {
  LoadOptions options;
  CLI::App program("A fleet's server under load");
  program.add_option("FLEETFIT", options.program, "The program")->required();
  program.add_option("--agents", options.agents)->check(CLI::Range(1, 100'000));
  program.add_option("--rate", options.rate, "Jobs a second")->check(CLI::PositiveNumber);
  program.add_option("--seconds", options.seconds)->check(CLI::PositiveNumber);
  program.add_option("--kills", options.kills)->check(CLI::NonNegativeNumber);
  program.add_option("--threads", options.threads)->check(CLI::Range(1, 256));
  CLI11_PARSE(program, argc, argv);
  allow_many_files();
  const auto folder = core::ScratchFolder::create();
  const auto done = folder ? run(options, folder->path()) : tl::unexpected(folder.error());
  if (!done) fmt::print(stderr, "fleet_load: {}\n", done.error().message);
  return done.value_or(false) ? 0 : 1;
}

}  // namespace
}  // namespace fleetfit::bench

int main(int argc, char** argv) { return fleetfit::bench::main_with(argc, argv); }
