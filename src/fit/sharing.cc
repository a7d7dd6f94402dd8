#include "fit/sharing.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "fleetfit/search/cover.h"

namespace fleetfit::fit {
namespace {

// A model that is shared has to hold on many devices, so that only likely ones are worth a try.
constexpr double kLikely = 0.8;

class ModelSharing {
 public:
  ModelSharing(std::vector<DeviceFitter*> devices, const Prospects& prospects,
               const SharingPlan& plan)
      : devices_(std::move(devices)), prospects_(prospects), plan_(plan) {
    std::erase_if(devices_, [](const DeviceFitter* one) { return !one->device().best; });
    spent_.resize(devices_.size());
  }

  /// Chooses, measures what was chosen, and chooses again as long as something did not hold. Each
  /// round measures at least one more design, and a device that may not be measured any more takes
  /// only what is sure, so that it ends.
  Result<std::vector<SharedModel>> run(const space::Space& space) {
    chances_.resize(devices_.size());
    for (std::size_t d = 0; d < devices_.size(); ++d) FLEETFIT_TRY(look_at(d));
    while (true) {
      choose();
      FLEETFIT_ASSIGN(const auto all_hold, confirm());
      if (all_hold) break;
    }
    return shared(space);
  }

  std::size_t measurements() const {
    std::size_t sum = 0;
    for (const auto spent : spent_) sum += spent;
    return sum;
  }

 private:
  Status look_at(std::size_t d) {
    FLEETFIT_ASSIGN(chances_[d], devices_[d]->within(prospects_.designs));
    return {};
  }

  bool may_serve(std::size_t design, std::size_t d) const {
    const double accuracy = prospects_.accuracy[design];
    const double least = devices_[d]->device().best->accuracy - plan_.within;
    const bool open = spent_[d] < plan_.confirmations;
    return accuracy >= least && chances_[d][design] >= (open ? kLikely : 1.0);
  }

  void choose() {
    std::vector<search::Serving> servings;
    places_.clear();
    for (std::size_t i = 0; i < prospects_.designs.size(); ++i) {
      search::Serving serving{.serves = std::vector<bool>(devices_.size()),
                              .worth = prospects_.accuracy[i]};
      bool any = false;
      for (std::size_t d = 0; d < devices_.size(); ++d)
        any = (serving.serves[d] = may_serve(i, d)) || any;
      if (!any) continue;
      servings.push_back(std::move(serving));
      places_.push_back(i);
    }
    chosen_ = search::fewest_that_serve_all(servings);
    for (auto& one : chosen_) one = places_[one];
  }

  /// The most accurate of those that were chosen and may serve the device.
  std::size_t model_of(std::size_t d) const {
    std::size_t best = chosen_.front();
    double accuracy = -std::numeric_limits<double>::infinity();
    for (const auto design : chosen_)
      if (may_serve(design, d) && prospects_.accuracy[design] > accuracy) {
        accuracy = prospects_.accuracy[design];
        best = design;
      }
    return best;
  }

  /// Whether all that was chosen is known to hold.
  Result<bool> confirm() {
    bool all_hold = true;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const auto design = model_of(d);
      if (chances_[d][design] >= 1) continue;
      FLEETFIT_TRY(
          devices_[d]->confirm_one(prospects_.designs[design], prospects_.accuracy[design]));
      ++spent_[d];
      FLEETFIT_TRY(look_at(d));
      all_hold = all_hold && chances_[d][design] >= 1;
    }
    return all_hold;
  }

  std::vector<SharedModel> shared(const space::Space& space) const {
    std::vector<SharedModel> models;
    for (const auto design : chosen_) {
      SharedModel model{.design = space.format(prospects_.designs[design]),
                        .accuracy = prospects_.accuracy[design]};
      for (std::size_t d = 0; d < devices_.size(); ++d)
        if (model_of(d) == design) model.devices.push_back(devices_[d]->device().name);
      if (!model.devices.empty()) models.push_back(std::move(model));
    }
    std::ranges::stable_sort(models, std::greater(),
                             [](const auto& m) { return m.devices.size(); });
    return models;
  }

  std::vector<DeviceFitter*> devices_;
  const Prospects& prospects_;
  SharingPlan plan_;
  std::vector<std::size_t> spent_;            // measurements, of each device
  std::vector<std::vector<double>> chances_;  // of each design on each device
  std::vector<std::size_t> places_;
  std::vector<std::size_t> chosen_;
};

}  // namespace

Result<Sharing> share_models(std::vector<DeviceFitter*> devices, const Prospects& prospects,
                             const space::Space& space, const SharingPlan& plan) {
  ModelSharing sharing(std::move(devices), prospects, plan);
  FLEETFIT_ASSIGN(auto models, sharing.run(space));
  return Sharing{.models = std::move(models), .measurements = sharing.measurements()};
}

}  // namespace fleetfit::fit
