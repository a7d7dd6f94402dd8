#include <fmt/format.h>

#include "fleetfit/app/inference_tuning.h"

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

}  // namespace

study::StudyPlace study_place(Workplace& workplace) {
  return {.studies = workplace.store->studies(),
          .clock = workplace.clock,
          .inference = [&workplace](const tune::Study& study) {
            return std::make_unique<DeviceInferenceTuner>(workplace, study);
          }};
}

}  // namespace fleetfit::app
