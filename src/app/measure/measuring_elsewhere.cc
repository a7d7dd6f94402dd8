#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fleetfit/app/measuring.h"
#include "fleetfit/core/sleep.h"

namespace fleetfit::app {
namespace {

using std::chrono::milliseconds;

/// Some designs that follow each other.
struct Piece {
  std::size_t first = 0;
  std::size_t samples = 0;
  std::size_t worker = 0;  ///< its handle
  int attempts = 1;
  bool has_ended = false;
};

class Pieces {
 public:
  Pieces(const DesignsRequest& request, const CampaignJobs& jobs, tune::Executor& executor,
         core::ProgressTask& task)
      : jobs_(jobs), executor_(executor), task_(task) {
    const std::size_t end = request.first + request.samples;
    for (std::size_t first = request.first; first < end; first += jobs.designs_of_each)
      pieces_.push_back({.first = first, .samples = std::min(jobs.designs_of_each, end - first)});
  }

  Status start() {
    std::vector<tune::WorkerSpec> specs;
    for (const auto& piece : pieces_) specs.push_back(spec_of(piece));
    FLEETFIT_ASSIGN(const auto workers, executor_.submit_all(specs));
    for (std::size_t i = 0; i < pieces_.size(); ++i) pieces_[i].worker = workers.at(i);
    return {};
  }

  /// Says whether all have ended.
  Result<bool> look() {
    FLEETFIT_ASSIGN(const auto statuses, executor_.poll());
    for (auto& piece : pieces_) {
      const auto& status = statuses.at(piece.worker);
      if (piece.has_ended || status.state != tune::WorkerState::ended) continue;
      FLEETFIT_TRY(note_end(piece, status));
    }
    return std::ranges::all_of(pieces_, &Piece::has_ended);
  }

 private:
  tune::WorkerSpec spec_of(const Piece& piece) const {
    tune::WorkerSpec spec{.command = jobs_.command, .name = fmt::format("designs{}", piece.first)};
    spec.command.insert(spec.command.end(), {"--first", std::to_string(piece.first), "--samples",
                                             std::to_string(piece.samples)});
    return spec;
  }

  // One that was killed is tried again; what it has measured is not measured twice.
  Status note_end(Piece& piece, const tune::WorkerStatus& status) {
    if (status.killed && piece.attempts < jobs_.attempts) {
      FLEETFIT_ASSIGN(piece.worker, executor_.submit(spec_of(piece)));
      ++piece.attempts;
      return {};
    }
    if (!status.succeeded)
      task_.message(fmt::format("designs {} to {}: {}", piece.first,
                                piece.first + piece.samples - 1, status.ending));
    piece.has_ended = true;
    return {};
  }

  const CampaignJobs& jobs_;
  tune::Executor& executor_;
  core::ProgressTask& task_;
  std::vector<Piece> pieces_;
};

/// Tells how many designs the store knows, now and then. One that cannot be asked is asked again.
class KnownDesigns {
 public:
  KnownDesigns(Workplace& workplace, const DesignsRequest& request, core::ProgressTask& task)
      : workplace_(workplace), request_(request), task_(task) {}

  void look_now_and_then() {
    constexpr std::chrono::seconds kBetween{5};
    if (workplace_.clock.now() - last_look_ < kBetween) return;
    last_look_ = workplace_.clock.now();
    look();
  }

  void look() {
    const auto known = find_measured_designs(workplace_, request_);
    if (!known) return;
    std::set<std::size_t> designs;
    for (const auto& one : *known) designs.insert(one.number);
    if (designs.size() > told_) task_.advance(designs.size() - told_);
    told_ = std::max(told_, designs.size());
  }

 private:
  Workplace& workplace_;
  const DesignsRequest& request_;
  core::ProgressTask& task_;
  std::chrono::nanoseconds last_look_{0};
  std::size_t told_ = 0;
};

Status run_pieces(Workplace& workplace, const DesignsRequest& request, const CampaignJobs& jobs,
                  tune::Executor& executor, core::Progress& progress, const std::stop_token& stop) {
  core::ProgressTask task(progress,
                          {.name = "measure", .total = request.samples, .unit = "designs"});
  Pieces pieces(request, jobs, executor, task);
  KnownDesigns known(workplace, request, task);
  FLEETFIT_TRY(pieces.start());
  constexpr milliseconds kBetween{200};
  do {
    FLEETFIT_ASSIGN(const auto done, pieces.look());
    if (done) {
      known.look();
      return {};
    }
    known.look_now_and_then();
  } while (core::sleep_unless_stopped(kBetween, stop));
  return executor.cancel_all();
}

}  // namespace

Result<std::vector<MeasuredDesign>> measure_designs_elsewhere(
    Workplace& workplace, const DesignsRequest& request, const CampaignJobs& jobs,
    tune::Executor& executor, core::Progress& progress, const std::stop_token& stop) {
  // Finds out what is wrong with the request before anything is started.
  FLEETFIT_TRY(find_measured_designs(workplace, request));
  FLEETFIT_TRY(run_pieces(workplace, request, jobs, executor, progress, stop));
  return find_measured_designs(workplace, request);
}

}  // namespace fleetfit::app
