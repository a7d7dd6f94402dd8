#include "app/fit/subnet_search.h"

#include <fmt/format.h>

#include <utility>

#include "fleetfit/core/random.h"

namespace fleetfit::app {
namespace {

constexpr std::size_t kChoiceImages = 1500;
constexpr std::size_t kTestImages = 4000;

Result<std::vector<double>> evaluate(SubnetAccuracies& accuracies, space::DesignBatch designs) {
  FLEETFIT_ASSIGN(const auto found, accuracies.evaluate(designs));
  std::vector<double> shares;
  for (const auto& evaluation : found) shares.push_back(evaluation.accuracy);
  return shares;
}

}  // namespace

SubnetRatings::SubnetRatings(const FitPlace& place, const FitFolder& folder,
                             const elastic::SubnetSpace& space)
    : place_(place), folder_(folder), space_(space) {}

Status SubnetRatings::open(const std::filesystem::path& file, const elastic::Bundle& bundle) {
  FLEETFIT_ASSIGN(bundle_,
                  elastic::read_bundle(file, {.batch = static_cast<std::int64_t>(kImageBatch)}));
  const ImagesRequest images{
      .bundle = file, .data = place_.fleet.data, .seed = place_.request.seed};
  FLEETFIT_ASSIGN(validation_, open_images(images, bundle, data::Split::validation));
  FLEETFIT_ASSIGN(test_, open_images(images, bundle, data::Split::test));
  return {};
}

std::unique_ptr<adapt::SubnetQuality> SubnetRatings::to_search(
    const adapt::LatencyTable& proxy) const {
  return on(validation_.part(0, place_.fleet.samples), "search", proxy);
}

Result<std::vector<double>> SubnetRatings::to_choose(space::DesignBatch designs,
                                                     const adapt::LatencyTable& proxy) {
  const auto images = on(validation_.part(place_.fleet.samples, kChoiceImages), "choice", proxy);
  choice_images_ = images->images();
  return evaluate(*images, designs);
}

Result<std::vector<double>> SubnetRatings::to_test(space::DesignBatch designs,
                                                   const adapt::LatencyTable& proxy) {
  const auto images = on(test_.part(0, kTestImages), "test", proxy);
  test_images_ = images->images();
  return evaluate(*images, designs);
}

std::string SubnetRatings::about() const {
  return fmt::format(
      "share of {} test images of {} whose class was found; networks were chosen by {} other "
      "images",
      test_images_, place_.fleet.data, place_.fleet.samples + choice_images_);
}

std::unique_ptr<SubnetAccuracies> SubnetRatings::on(std::unique_ptr<adapt::ImageBatches> images,
                                                    std::string_view what,
                                                    const adapt::LatencyTable& proxy) const {
  const auto file = folder_.named(
      fmt::format("accuracy-{}", what),
      fmt::format("{} {} {} {} {} {}", bundle_.manifest_sha256, place_.fleet.data,
                  place_.request.seed, place_.fleet.samples, kChoiceImages, kTestImages),
      "json");
  return std::make_unique<SubnetAccuracies>(AccuracyParts{.models = bundle_.models,
                                                          .space = space_,
                                                          .table = proxy,
                                                          .progress = place_.progress,
                                                          .stop = place_.stop,
                                                          .threads = place_.request.threads},
                                            std::move(images), file);
}

Result<std::size_t> add_finalists(const adapt::SubnetProblem& problem,
                                  adapt::SubnetQuality& quality, const SubnetSearchPlan& plan,
                                  std::set<std::string>& finalists) {
  const auto& space = problem.space;
  const auto fastest =
      adapt::design_of(space, adapt::fastest_subnet(problem.models, problem.table));
  finalists.insert(space.format(fastest));
  if (problem.table.subnet_ms(space.path(fastest)) > 1.1 * problem.budget_ms) return 0;
  const adapt::GuidedOptions few{
      .first = 12, .batch = 8, .most_rounds = 4, .patience = 2, .levels = 0};
  const auto strategy = adapt::make_guided(problem, core::Random(plan.seed).split("search"),
                                           plan.thorough ? adapt::GuidedOptions{} : few);
  FLEETFIT_ASSIGN(const auto searched,
                  adapt::search_subnets(problem, quality, *strategy, {.stop = plan.stop}));
  if (searched.stopped) return fail(ErrorCode::cancelled, "stopped");
  const auto chosen = adapt::finalists(searched, problem.budget_ms);
  for (const auto& numbers : {chosen.near, chosen.levels})
    for (const auto number : numbers)
      finalists.insert(space.format(searched.subnets[number].design));
  return chosen.near.size() + (plan.thorough ? chosen.levels.size() : 0);
}

}  // namespace fleetfit::app
