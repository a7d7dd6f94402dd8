#pragma once

#include <functional>
#include <memory>

#include "app/elastic/subnet_images.h"
#include "fleetfit/adapt/guided.h"
#include "fleetfit/app/adapting.h"
#include "fleetfit/elastic/supernet.h"

namespace fleetfit::app {

/// What subnets are judged by. Borrows everything.
struct JudgeParts {
  const AdaptRequest& request;
  const elastic::SubnetSpace& space;
  adapt::NetworkTimer& timer;
  const SubnetImages& validation;
  const SubnetImages& test;
  /// Makes what evaluates subnets on these images.
  std::function<Result<std::unique_ptr<adapt::Evaluator>>(const adapt::ImageBatches&)> evaluator;
};

/// Chooses among what a search has found. The finalists are timed whole, and those within the
/// budget evaluated on further images; then what is to be in the pool is evaluated on images that
/// nothing was chosen by. Adds the best, the pool and what is compared with it to the report, if a
/// subnet keeps the budget. Fails as timing and evaluating do.
Status judge_subnets(const JudgeParts& parts, const adapt::SearchedSubnets& searched,
                     AdaptReport& report);

}  // namespace fleetfit::app
