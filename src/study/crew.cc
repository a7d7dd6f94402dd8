#include "study/crew.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <thread>

#include "fleetfit/core/process_info.h"
#include "fleetfit/core/program.h"
#include "fleetfit/study/tuning.h"
#include "fleetfit/tune/patience.h"
#include "fleetfit/tune/worker.h"

namespace fleetfit::study {

using std::chrono::milliseconds;

namespace {

/// Asks to stop when `stop` does, or when the input `parent` ends.
class ParentWatch {
 public:
  ParentWatch(int parent, const std::stop_token& stop)
      : passed_on_(stop, PassOn{&source_}),
        thread_([this, parent](const std::stop_token& end) { watch(parent, end); }) {}

  std::stop_token token() const { return source_.get_token(); }

 private:
  struct PassOn {
    std::stop_source* source;
    void operator()() const { source->request_stop(); }
  };

  void watch(int parent, const std::stop_token& end) {
    constexpr int kTickMs = 200;  // how long this object's end may take
    while (parent >= 0 && !end.stop_requested()) {
      pollfd polled{parent, POLLIN, 0};
      if (::poll(&polled, 1, kTickMs) <= 0) continue;
      std::array<char, 256> ignored;
      if (::read(parent, ignored.data(), ignored.size()) > 0) continue;
      source_.request_stop();
      return;
    }
  }

  std::stop_source source_;
  std::stop_callback<PassOn> passed_on_;
  std::jthread thread_;
};

std::chrono::nanoseconds ran(const tune::WorkerStatus& status, std::chrono::nanoseconds lived) {
  return status.ran ? std::chrono::nanoseconds(*status.ran) : lived;
}

}  // namespace

std::string name_of_this_worker(std::string_view as) {
  return fmt::format("{}@{}:{}", as, core::host_name(), ::getpid());
}

bool has_died_here(std::string_view worker) {
  const auto at = worker.find('@');
  const auto colon = worker.rfind(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon < at) return false;
  if (worker.substr(at + 1, colon - at - 1) != core::host_name()) return false;
  int pid = 0;
  const auto digits = worker.substr(colon + 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  if (parsed.ec != std::errc() || pid <= 0) return false;
  if (::kill(pid, 0) != 0 && errno == ESRCH) return true;
  // One that nobody has collected yet is as dead as any.
  const auto info = core::process_info(pid);
  return info && info->state == 'Z';
}

Crew::Crew(tune::Executor& executor, const core::Clock& clock, Options options)
    : executor_(executor), clock_(clock), options_(std::move(options)), places_(options_.workers) {}

Status Crew::look_after() {
  FLEETFIT_ASSIGN(const auto statuses, executor_.poll());
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (const auto worker = places_[i].worker) {
      const auto& status = statuses.at(*worker);
      if (status.state != tune::WorkerState::ended) continue;
      FLEETFIT_TRY(note_end(places_[i], status));
    }
    missing.push_back(i);
  }
  return missing.empty() ? Status{} : replace(missing);
}

Status Crew::note_end(const Place& place, const tune::WorkerStatus& status) {
  constexpr std::chrono::seconds kQuick{5};
  const bool is_quick_failure =
      !status.succeeded && !status.killed && ran(status, clock_.now() - place.since) < kQuick;
  quick_failures_ = is_quick_failure ? quick_failures_ + 1 : 0;
  if (quick_failures_ > 2 * places_.size() + 3)
    return fail(ErrorCode::device_failed,
                fmt::format("workers end as soon as they are started: {}", status.ending));
  return {};
}

Status Crew::replace(const std::vector<std::size_t>& places) {
  std::vector<tune::WorkerSpec> specs;
  for (const auto place : places) {
    tune::WorkerSpec spec{.command = options_.command, .name = fmt::format("w{}", ++started_)};
    spec.command.insert(spec.command.end(), {"--as", spec.name});
    if (place < options_.cores.size()) spec.cores = options_.cores[place];
    specs.push_back(std::move(spec));
  }
  FLEETFIT_ASSIGN(const auto workers, executor_.submit_all(specs));
  for (std::size_t i = 0; i < places.size(); ++i)
    places_[places[i]] = {.worker = workers.at(i), .since = clock_.now()};
  return {};
}

void Crew::dismiss(milliseconds timeout) {
  static_cast<void>(executor_.cancel_all());
  const auto deadline = clock_.now() + timeout;
  const auto all_ended = [&] {
    const auto statuses = executor_.poll();
    return !statuses || std::ranges::all_of(*statuses, [](const auto& status) {
      return status.state == tune::WorkerState::ended;
    });
  };
  while (!all_ended() && clock_.now() < deadline) std::this_thread::sleep_for(milliseconds(5));
}

std::vector<std::vector<int>> share_cores(const std::vector<int>& cores, std::size_t workers) {
  std::vector<std::vector<int>> shares;
  if (workers <= 1 || cores.empty()) return shares;
  for (std::size_t i = 0; i < workers; ++i) {
    if (workers >= cores.size()) {
      shares.push_back({cores[i % cores.size()]});
      continue;
    }
    const auto begin = cores.begin() + static_cast<std::ptrdiff_t>(i * cores.size() / workers);
    const auto end = cores.begin() + static_cast<std::ptrdiff_t>((i + 1) * cores.size() / workers);
    shares.emplace_back(begin, end);
  }
  return shares;
}

std::vector<int> available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  return cores;
}

Status work_on_study(const StudyPlace& place, const WorkRequest& request,
                     const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto record, place.studies.find_study(request.study));
  if (!record)
    return fail(ErrorCode::not_found, fmt::format("there is no study '{}'", request.study));
  FLEETFIT_ASSIGN(auto study, tune::parse_study(record->definition, request.study));
  study.seed = record->seed;
  FLEETFIT_ASSIGN(auto command, trial_command(study.workload));

  tune::WorkerHooks hooks{.say = core::say};
  const auto tuner = place.inference ? place.inference(study) : nullptr;
  if (tuner)
    hooks.structure_of = [&tuner](const auto& model) { return tuner->structure_of(model); };
  const ParentWatch watch(request.parent, stop);
  return tune::work_on_study(place.studies, study, place.clock,
                             {.name = name_of_this_worker(request.as),
                              .command = std::move(command),
                              .folder = folder_of_study(request.folder, *record),
                              .lease = request.lease,
                              .idle_limit = request.idle_limit,
                              .store_patience = request.store_patience},
                             hooks, watch.token());
}

namespace {

using std::chrono::milliseconds;

tl::unexpected<Error> tuned_by_another(const std::string& study) {
  return refuse(fmt::format("study '{}' is being tuned by another process", study));
}

}  // namespace

StudyLead::StudyLead(store::StudyStore& store, const core::Clock& clock, Wish wish,
                     core::FileDescriptor lock)
    : store_(store),
      clock_(clock),
      wish_(std::move(wish)),
      name_(fmt::format("{}:{}", core::host_name(),
                        std::filesystem::weakly_canonical(wish_.folder).string())),
      lock_(std::move(lock)) {}

StudyLead::~StudyLead() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  if (!is_lost_) static_cast<void>(renew(milliseconds(0)));
}

Result<std::unique_ptr<StudyLead>> StudyLead::take(store::StudyStore& store,
                                                   const core::Clock& clock, Wish wish,
                                                   const std::function<void(std::string_view)>& say,
                                                   const std::stop_token& stop) {
  const auto file = wish.folder / "lead.lock";
  core::FileDescriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock.is_open())
    return fail(ErrorCode::io, fmt::format("{}: cannot be opened: {}", file.string(),
                                           core::system_message(errno)));
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<StudyLead> lead(new StudyLead(store, clock, std::move(wish), std::move(lock)));
  if (::flock(lead->lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return tuned_by_another(lead->wish_.study);

  tune::Patience patience(say, stop, lead->wish_.patience);
  const auto give_up_at = clock.now() + 3 * lead->wish_.lease;
  for (bool said = false;; said = true) {
    FLEETFIT_ASSIGN(const auto taken,
                    patience.keep_trying([&] { return lead->renew(lead->wish_.lease); }));
    if (taken) break;
    if (clock.now() > give_up_at) return tuned_by_another(lead->wish_.study);
    if (!said) say("waiting for another tuner of this study to end");
    if (!tune::sleep_unless_stopped(milliseconds(200), stop))
      return fail(ErrorCode::cancelled, "it was stopped");
  }
  lead->thread_ = std::jthread([raw = lead.get()](const std::stop_token& end) { raw->keep(end); });
  return lead;
}

Result<bool> StudyLead::renew(milliseconds length) {
  const auto now = std::chrono::floor<milliseconds>(clock_.date());
  // Clocks differ: another one's lease is over only when it has been over for a while.
  return store_.lead_study(wish_.study, name_, now - wish_.lease,
                           length.count() == 0 ? now - wish_.lease : now + length);
}

void StudyLead::keep(const std::stop_token& end) {
  while (tune::sleep_unless_stopped(wish_.lease / 3, end)) {
    const auto held = renew(wish_.lease);
    if (held && !*held) is_lost_ = true;
  }
}

}  // namespace fleetfit::study
