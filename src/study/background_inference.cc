#include "study/background_inference.h"

#include <utility>

#include "fleetfit/tune/patience.h"

namespace fleetfit::study {
namespace {

// The model that a run of 0 epochs writes, whether it calls it a result or not.
Result<std::filesystem::path> write_untrained(const tune::TrialJob& job,
                                              const std::stop_token& stop) {
  std::string model;
  const tune::TrialListener listener{.on_model = [&](const std::string& file) { model = file; }};
  FLEETFIT_ASSIGN(auto outcome, tune::run_trial(job, listener, stop));
  if (!outcome.model_file.empty()) model = outcome.model_file;
  if (model.empty())
    return fail(ErrorCode::device_failed, "with a budget of 0 epochs: " + outcome.reason);
  return model;
}

}  // namespace

BackgroundInference::BackgroundInference(InferenceTuner& tuner)
    : tuner_(tuner), thread_([this](const std::stop_token& stop) { work(stop); }) {}

void BackgroundInference::ask(Question question) {
  const std::scoped_lock lock(mutex_);
  questions_.push_back(std::move(question));
  ++open_;
  changed_.notify_all();
}

std::size_t BackgroundInference::open() const {
  const std::scoped_lock lock(mutex_);
  return open_;
}

std::optional<BackgroundInference::Answer> BackgroundInference::wait(
    std::chrono::milliseconds timeout, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, stop, timeout, [this] { return !answers_.empty(); }))
    return std::nullopt;
  auto answer = std::move(answers_.front());
  answers_.pop_front();
  --open_;
  return answer;
}

void BackgroundInference::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !questions_.empty(); })) {
    const auto question = std::move(questions_.front());
    questions_.pop_front();
    lock.unlock();
    auto answered = answer(question, stop);
    lock.lock();
    answers_.push_back(std::move(answered));
    changed_.notify_all();
  }
}

BackgroundInference::Answer BackgroundInference::answer(const Question& question,
                                                        const std::stop_token& stop) const {
  Answer result{.key = question.key,
                .structure = question.structure,
                .model = question.model,
                .inference = fail(ErrorCode::cancelled, "")};
  if (question.untrained) {
    auto model = write_untrained(*question.untrained, stop);
    auto structure = model.and_then([&](const auto& file) { return tuner_.structure_of(file); });
    if (!structure) {
      result.inference = tl::unexpected(std::move(structure.error()));
      return result;
    }
    result.structure = *std::move(structure);
    result.model = *std::move(model);
  }
  result.inference = tuner_.tune(result.structure, result.model, stop);
  // The conductor says what the store suffers from.
  while (!result.inference && result.inference.error().code == ErrorCode::io &&
         tune::sleep_unless_stopped(std::chrono::milliseconds(500), stop))
    result.inference = tuner_.tune(result.structure, result.model, stop);
  return result;
}

}  // namespace fleetfit::study
