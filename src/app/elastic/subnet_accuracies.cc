#include "app/elastic/subnet_accuracies.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "fleetfit/core/json.h"

namespace fleetfit::app {

SubnetAccuracies::SubnetAccuracies(AccuracyParts parts, std::unique_ptr<adapt::ImageBatches> images,
                                   std::filesystem::path file)
    : parts_(std::move(parts)), images_(std::move(images)), file_(std::move(file)) {
  const auto document = core::read_json(file_);
  if (!document) return;
  const auto members = core::JsonView(*document, file_.string()).members();
  if (!members) return;
  for (const auto& [subnet, value] : *members) {
    const auto numbers = value.as_numbers();
    if (numbers && numbers->size() == 2) known_[subnet] = {(*numbers)[0], (*numbers)[1]};
  }
}

Result<std::vector<adapt::Evaluation>> SubnetAccuracies::evaluate(space::DesignBatch designs) {
  space::Population missing(designs.genes());
  for (std::size_t i = 0; i < designs.size(); ++i)
    if (!known_.contains(parts_.space.format(designs[i]))) missing.add(designs[i]);
  FLEETFIT_TRY(evaluate_missing(missing));
  std::vector<adapt::Evaluation> all;
  for (std::size_t i = 0; i < designs.size(); ++i)
    all.push_back(known_.at(parts_.space.format(designs[i])));
  return all;
}

Status SubnetAccuracies::evaluate_missing(space::DesignBatch designs) {
  if (designs.empty()) return {};
  if (!evaluator_) {
    FLEETFIT_ASSIGN(evaluator_,
                    adapt::Evaluator::create({parts_.models, parts_.space, parts_.table, *images_},
                                             {.threads = parts_.threads}));
    evaluator_->watch(&parts_.progress, parts_.stop);
  }
  FLEETFIT_ASSIGN(const auto found, evaluator_->evaluate(designs));
  for (std::size_t i = 0; i < designs.size(); ++i)
    known_[parts_.space.format(designs[i])] = found[i];
  return save();
}

Status SubnetAccuracies::save() const {
  auto json = nlohmann::json::object();
  for (const auto& [subnet, evaluation] : known_)
    json[subnet] = {evaluation.accuracy, evaluation.confidence};
  return core::write_json(file_, json);
}

}  // namespace fleetfit::app
