#include "study/progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fleetfit/report/words.h"

namespace fleetfit::study {
namespace {

constexpr std::chrono::seconds kBetweenLooks{20};

std::string rung_text(const tune::Tuner::Rung& rung) {
  return fmt::format("bracket {} level {}: {} ended, {} went on", rung.bracket, rung.level,
                     rung.ended, rung.promoted);
}

}  // namespace

TuningProgress::TuningProgress(core::Progress& sink, const core::Clock& clock,
                               std::size_t max_trials)
    : clock_(clock),
      task_(sink, {.name = "tune", .total = max_trials, .unit = "trials"}),
      max_trials_(max_trials),
      began_(clock.now()),
      last_look_(began_) {}

void TuningProgress::ended(const store::TrialRecord& trial) {
  ++ended_;
  task_.advance();
  if (is_loaded_ && trial.state == store::TrialState::failed)
    task_.message(fmt::format("trial {} failed: {}", trial.number, trial.reason));
}

void TuningProgress::scored(const store::TrialRecord& trial, double score) {
  if (best_ && best_->trial == trial.number) best_->score = score;
  if (best_ && best_->score <= score) return;
  best_ = Best{trial.number, score};
  if (is_loaded_ && !trial.levels.empty() && max_trials_ > 1)
    task_.message(
        fmt::format("best so far: trial {} with accuracy {:.4g} after {} epochs on {:g} "
                    "of the data, {}",
                    trial.number, trial.levels.back().accuracy, trial.levels.back().epochs,
                    trial.levels.back().data_fraction, trial.params));
}

void TuningProgress::loaded() {
  is_loaded_ = true;
  ended_before_ = ended_;
  began_ = clock_.now();
}

std::string TuningProgress::time_left() const {
  const std::size_t now_ended = ended_ - ended_before_;
  if (now_ended == 0 || max_trials_ <= ended_) return "";
  const double elapsed = std::chrono::duration<double>(clock_.now() - began_).count();
  return fmt::format("; about {} left",
                     report::rough_duration(elapsed / static_cast<double>(now_ended) *
                                            static_cast<double>(max_trials_ - ended_)));
}

bool TuningProgress::is_due() const { return clock_.now() - last_look_ >= kBetweenLooks; }

void TuningProgress::look(std::size_t running, const std::vector<tune::Tuner::Rung>& rungs,
                          const std::string& words) {
  last_look_ = clock_.now();
  if (max_trials_ == 1) {
    const auto news = running == 0 ? "waiting for a worker" : words;
    if (!news.empty() && news != last_words_) task_.message(news);
    last_words_ = news;
    return;
  }
  std::vector<std::string> texts;
  for (const auto& rung : rungs)
    if (rung.ended > 0) texts.push_back(rung_text(rung));
  task_.message(fmt::format("{} of {} trials have ended, {} running{}{}{}{}", ended_, max_trials_,
                            running, words.empty() ? "" : fmt::format(" ({})", words),
                            best_ ? fmt::format("; best: trial {}", best_->trial) : "", time_left(),
                            texts.empty() ? "" : fmt::format("; {}", fmt::join(texts, "; "))));
}

}  // namespace fleetfit::study
