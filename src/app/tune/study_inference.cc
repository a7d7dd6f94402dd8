#include <fmt/format.h>

#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/study/studies.h"

namespace fleetfit::app {
namespace {

class DeviceInferenceTuner final : public study::InferenceTuner {
 public:
  DeviceInferenceTuner(Workplace& workplace, const tune::Study& study)
      : workplace_(workplace), study_(study), silent_(core::make_silent_progress()) {}

  Result<std::string> structure_of(const std::filesystem::path& model) override {
    return structure_of_model(model);
  }

  Result<std::vector<tune::Inference>> tune(const std::string& /*structure*/,
                                            const std::filesystem::path& model,
                                            const std::stop_token& stop) override {
    std::vector<tune::Inference> answers;
    // Field by field: g++ 12 takes the list of all fields for a use of what is not initialized.
    InferenceRequest request;
    request.model = model;
    request.study = *study_.inference;
    request.algorithm = study_.algorithm.inference;
    request.seed = study_.seed;
    request.study_name = study_.name;
    for (const auto& device : study_.inference->devices) {
      FLEETFIT_ASSIGN(const auto found,
                      tune_inference_on(workplace_, request, device, *silent_, stop));
      if (!found.result.best) return fail(ErrorCode::device_failed, why_none(found));
      const auto& best = found.result.trials[*found.result.best];
      answers.push_back({.device = device,
                         .latency_ms = best.cost->cost.latency_ms,
                         .response_ms = best.response.mean_ms,
                         .throughput = best.response.throughput,
                         .energy_mj = best.response.energy_mj});
    }
    return answers;
  }

 private:
  static std::string why_none(const DeviceInference& found) {
    return fmt::format("{}: {}", found.device,
                       found.result.trials.empty() ? "nothing could be tried"
                                                   : found.result.trials.front().reason);
  }

  Workplace& workplace_;
  const tune::Study& study_;
  std::unique_ptr<core::Progress> silent_;
};

tl::unexpected<Error> nothing_to_confirm(const std::string& study, std::string_view why) {
  return fail(ErrorCode::not_found,
              fmt::format("study {}: there is nothing to confirm yet: {}", study, why));
}

/// The best trial of a study that says how to run it.
Result<study::BestOfStudy> confirmable(Workplace& workplace, const std::string& name) {
  auto best = study::best_of_study(workplace.store->studies(), name);
  if (!best) return best;
  if (!best->study.inference) return nothing_to_confirm(name, "it tunes no inference");
  if (!best->best) return nothing_to_confirm(name, best->why_none);
  if (best->best->trial.record.structure.empty() || best->best->trial.record.model_file.empty())
    return nothing_to_confirm(name, "its best trial has written no network");
  return best;
}

/// What was found for the network on a device; nothing if nothing could be run there.
Result<std::optional<DeviceInference>> answer_for(Workplace& workplace,
                                                  const study::BestOfStudy& best,
                                                  const std::string& device) {
  FLEETFIT_ASSIGN(const auto fingerprint, inference_fingerprint(workplace, device));
  return find_inference(workplace, best.best->trial.record.structure, device, fingerprint,
                        tune::question_key(*best.study.inference, best.study.algorithm.inference));
}

}  // namespace

study::StudyPlace study_place(Workplace& workplace) {
  return {.studies = workplace.store->studies(),
          .clock = workplace.clock,
          .inference = [&workplace](const tune::Study& study) {
            return std::make_unique<DeviceInferenceTuner>(workplace, study);
          }};
}

Result<std::vector<ConfirmedInference>> confirm_study(Workplace& workplace,
                                                      const ConfirmStudyRequest& request,
                                                      core::Progress& progress,
                                                      const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto best, confirmable(workplace, request.study));
  std::vector<ConfirmedInference> confirmed;
  for (const auto& device : best.study.inference->devices) {
    if (device.starts_with("predictor:")) continue;
    FLEETFIT_ASSIGN(auto answer, answer_for(workplace, best, device));
    if (!answer || !answer->result.best) continue;
    // Field by field: g++ 12 takes the list of all fields for a use of what is not initialized.
    ConfirmRequest run;
    run.model = best.best->trial.record.model_file;
    run.device = device;
    run.scenario = best.study.inference->scenario;
    run.result = std::move(answer->result);
    run.seconds = request.seconds;
    run.seed = best.study.seed;
    run.threads = request.threads;
    FLEETFIT_ASSIGN(auto one, confirm_inference(workplace, run, progress, stop));
    confirmed.push_back(std::move(one));
  }
  if (confirmed.empty())
    return nothing_to_confirm(request.study, "no device has a recommended setting");
  return confirmed;
}

}  // namespace fleetfit::app
