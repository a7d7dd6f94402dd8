#include "fleetfit/study/tuning.h"
#include "fleetfit/core/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "fleetfit/core/companion.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/tune/executor.h"
#include "fleetfit/tune/patience.h"
#include "study/conductor.h"
#include "study/crew.h"

namespace fleetfit::study {
namespace {

using std::chrono::milliseconds;
using store::StudyRecord;

// Longer than a trial may take to end.
constexpr milliseconds kGoodbye{14'000};

Result<StudyRecord> create_record(const StudyPlace& place, const TuneRequest& request) {
  StudyRecord record{.name = request.study.name,
                     .definition = request.definition,
                     .seed = request.study.seed,
                     .created = std::chrono::floor<milliseconds>(place.clock.date())};
  FLEETFIT_TRY(place.studies.create_study(record));
  return record;
}

Result<StudyRecord> create_or_resume(const StudyPlace& place, const TuneRequest& request) {
  FLEETFIT_ASSIGN(auto found, place.studies.find_study(request.study.name));
  if (!found) return create_record(place, request);
  if (!request.resume)
    return fail(
        ErrorCode::invalid_input,
        fmt::format("there is a study '{}' already; --resume goes on with it", request.study.name));
  if (found->definition != request.definition)
    return refuse(
        fmt::format("the file of study '{}' has changed since the study was begun; give "
                    "the new one another name",
                    request.study.name));
  return *std::move(found);
}

// The same for the same work, so that a process finds the jobs that a killed one left.
std::string job_name(const ClusterRequest& request) {
  std::string name = request.work;
  const auto is_other = [](unsigned char c) { return std::isalnum(c) == 0; };
  std::ranges::replace_if(name, is_other, '-');
  const auto place = core::sha256_hex(request.folder.string() + "\n" + request.work);
  return fmt::format("fleetfit-{}-{}", name.substr(0, 40), place.substr(0, 8));
}

/// One run of `tune_study`.
class Tuning {
 public:
  Tuning(const StudyPlace& place, const TuneRequest& request, const TuningParts& parts,
         const StudyRecord& record)
      : place_(place),
        store_(place.studies),
        request_(request),
        parts_(parts),
        study_(request.study),
        folder_(folder_of_study(request.folder, record)),
        progress_(parts.progress, place.clock, request.study.budget.max_trials) {
    study_.seed = record.seed;
  }

  Result<TuneSummary> run(std::vector<std::string> command, const std::stop_token& stop) {
    FLEETFIT_TRY(core::create_folder(folder_));
    const auto say = [this](std::string_view text) { progress_.say(text); };
    FLEETFIT_ASSIGN(const auto lead, StudyLead::take(store_, place_.clock,
                                                     {.study = study_.name,
                                                      .folder = folder_,
                                                      .lease = request_.lease,
                                                      .patience = patience_options()},
                                                     say, stop));

    const auto tuner = study_.inference && place_.inference ? place_.inference(study_) : nullptr;
    std::optional<BackgroundInference> inference;
    if (tuner) inference.emplace(*tuner);
    Conductor conductor(store_, study_, inference ? &*inference : nullptr, progress_,
                        {.ahead = open_trials(), .command = std::move(command), .folder = folder_});
    Crew crew(parts_.executor, place_.clock, crew_options());
    const auto done = conduct(conductor, crew, *lead, stop);
    crew.dismiss(kGoodbye);
    if (auto noted = note_time(conductor, done && *done); !noted && done)
      return tl::unexpected(noted.error());
    FLEETFIT_TRY(done);
    return summary(*done);
  }

 private:
  tune::PatienceOptions patience_options() const {
    return {.most = request_.store_patience, .warn = parts_.warn};
  }

  // What breaks now is not what the user wrote, whatever it is.
  tl::unexpected<Error> store_failed(const Error& error) const {
    return fail(
        core::exit_status(error.code) == core::kFailed ? error.code : ErrorCode::io,
        fmt::format("{}; checkpoints and logs are kept in {}, and as soon as the store is there "
                    "as it was, the same command with --resume goes on",
                    error.message, folder_.string()));
  }

  // One more than there are workers, so that none waits for the tuner. A single worker does wait:
  // what is proposed then depends on what has ended alone, not on who was quicker, and the same
  // seed gives the same study.
  std::size_t open_trials() const { return request_.workers == 1 ? 1 : request_.workers + 1; }

  Crew::Options crew_options() const {
    auto command = request_.worker_command;
    command.insert(command.end(), {"--folder", request_.folder.string(), "--lease-ms",
                                   std::to_string(request_.lease.count()), "--store-patience-ms",
                                   std::to_string(request_.store_patience.count())});
    return {.workers = request_.workers,
            .command = std::move(command),
            .cores = share_cores(available_cores(), request_.workers)};
  }

  /// Says whether all is done; otherwise it was stopped.
  Result<bool> conduct(Conductor& conductor, Crew& crew, const StudyLead& lead,
                       const std::stop_token& stop) {
    tune::Patience patience([this](std::string_view text) { progress_.say(text); }, stop,
                            patience_options());
    // A single worker waits for each decision.
    auto pause =
        request_.workers == 1 && !store_.hears_of_changes()
            ? core::GrowingPause(std::chrono::milliseconds(5), std::chrono::milliseconds(20))
            : tune::pause_between_questions(store_);
    began_ = place_.clock.now();
    while (!stop.stop_requested()) {
      if (lead.is_lost())
        return fail(ErrorCode::io,
                    fmt::format("another machine has taken the study '{}' over", study_.name));
      const auto step = patience.keep_trying([&] { return conductor.step(); });
      if (!step && stop.stop_requested()) return false;
      if (!step) return store_failed(step.error());
      if (*step == Conductor::Step::done) return true;
      FLEETFIT_TRY(crew.look_after());
      release_trials_of_the_dead(conductor);
      const auto noted = keep_note(conductor, patience);
      if (!noted && stop.stop_requested()) return false;
      if (!noted) return store_failed(noted.error());
      if (*step == Conductor::Step::moved) {
        pause.something_happened();
      } else {
        conductor.wait(pause.take(), stop);
      }
      if (progress_.is_due())
        progress_.look(conductor.running().size(), conductor.rungs(), words_of(conductor));
    }
    return false;
  }

  // Workers of this machine that have died need no lease to run out. Failing does not matter: it
  // will.
  void release_trials_of_the_dead(const Conductor& conductor) {
    for (const auto& claim : conductor.running())
      if (has_died_here(claim.worker)) static_cast<void>(store_.give_back(claim));
  }

  /// How far the trial is that runs alone, as it says.
  std::string words_of(const Conductor& conductor) {
    const auto running = conductor.running();
    if (running.size() != 1) return "";
    const auto trial = store_.find_trial(study_.name, running.front().trial);
    return trial && *trial ? (*trial)->progress : "";
  }

  // Often enough that the tuner, which else may only read for long, says when the store cannot be
  // written any more.
  Status keep_note(Conductor& conductor, tune::Patience& patience) {
    constexpr std::chrono::seconds kBetween{2};
    if (place_.clock.now() - began_ < kBetween) return {};
    const double more = take_time();
    const auto energy = conductor.take_energy();
    return patience.keep_trying(
        [&] { return store_.update_study(study_.name, more, energy, false); });
  }

  double take_time() {
    const auto now = place_.clock.now();
    return std::chrono::duration<double>(now - std::exchange(began_, now)).count();
  }

  Status note_time(Conductor& conductor, bool done) {
    return store_.update_study(study_.name, take_time(), conductor.take_energy(), done);
  }

  Result<TuneSummary> summary(bool done) {
    FLEETFIT_ASSIGN(const auto counts, store_.count_trials(study_.name));
    return TuneSummary{.done = done, .trials = counts};
  }

  const StudyPlace& place_;
  store::StudyStore& store_;
  const TuneRequest& request_;
  const TuningParts& parts_;
  tune::Study study_;
  std::filesystem::path folder_;
  TuningProgress progress_;
  std::chrono::nanoseconds began_{0};
};

}  // namespace

Result<TuneSummary> tune_study(const StudyPlace& place, const TuneRequest& request,
                               const TuningParts& parts, const std::stop_token& stop) {
  FLEETFIT_ASSIGN(auto command, trial_command(request.study.workload));
  FLEETFIT_ASSIGN(const auto record, create_or_resume(place, request));
  return Tuning(place, request, parts, record).run(std::move(command), stop);
}

std::unique_ptr<tune::Executor> make_slurm_executor(const ClusterRequest& request,
                                                    const core::Clock& clock,
                                                    core::Progress& progress) {
  const auto say = [&progress](std::string_view text) {
    progress.receive({.kind = core::ProgressKind::message, .name = "slurm", .text = text});
  };
  return tune::make_slurm_executor(clock, {.job_name = job_name(request),
                                           .folder = request.folder / "slurm",
                                           .resources = request.resources,
                                           .most_at_once = request.most_at_once,
                                           .say = say});
}

std::unique_ptr<tune::Executor> make_slurm_executor(const TuneRequest& request,
                                                    const core::Clock& clock,
                                                    core::Progress& progress) {
  return make_slurm_executor(ClusterRequest{.work = request.study.name,
                                            .folder = request.folder,
                                            .resources = request.study.resources},
                             clock, progress);
}

Result<std::filesystem::path> default_study_folder(std::string_view store_url) {
  constexpr std::string_view kFile = "sqlite:";
  if (store_url.starts_with(kFile) && store_url.size() > kFile.size())
    return std::filesystem::absolute(std::string(store_url.substr(kFile.size())) + ".studies");
  if (store_url.starts_with("memory:"))
    return refuse(
        "--store memory: is seen by one process alone; a study needs one that its workers "
        "can open, as sqlite:FILE");
  return std::filesystem::absolute("fleetfit.studies");
}

std::filesystem::path folder_of_study(const std::filesystem::path& folder,
                                      const StudyRecord& study) {
  std::string name = study.name;
  const auto is_odd = [](unsigned char c) {
    return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.';
  };
  std::ranges::replace_if(name, is_odd, '_');
  return folder / fmt::format("{}-{}", name, study.created.time_since_epoch().count());
}

Result<std::vector<std::string>> trainer_command(const std::string& verb) {
  FLEETFIT_ASSIGN(auto trainer, core::find_companion("fleetfit-train"));
  // OpenMP's threads would otherwise spin between operators, and disturb other trials.
  return std::vector<std::string>{"/usr/bin/env", "GOMP_SPINCOUNT=5000", trainer.string(), verb};
}

Result<std::vector<std::string>> trial_command(const tune::Workload& workload) {
  if (workload.builtin.empty() && workload.command.empty())
    return refuse("the study has no workload; `study ask` and `study tell` evaluate its trials");
  if (workload.builtin.empty()) return workload.command;
  auto command = trainer_command("workload");
  if (command) command->push_back(workload.builtin);
  return command;
}

}  // namespace fleetfit::study
