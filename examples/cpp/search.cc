// search MFLOPS: the network of the space nasbench201 with the most parameters within a budget of
// FLOPs. Shows how to search with numbers of your own; what counts as good here is only an example.
#include <fleetfit/core/random.h>
#include <fleetfit/core/thread_pool.h>
#include <fleetfit/cost/cost.h>
#include <fleetfit/search/search.h>
#include <fleetfit/space/space.h>

#include <cstdio>
#include <cstdlib>

namespace core = fleetfit::core;
namespace cost = fleetfit::cost;
namespace search = fleetfit::search;
namespace space = fleetfit::space;

namespace {

enum class Count { mflops, params };

// What is counted in a design's network.
class Counted final : public space::Source {
 public:
  Counted(const space::Space& of, Count what) : space_(of), what_(what) {}

  fleetfit::Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    for (std::size_t i = 0; i < designs.size(); ++i) {
      FLEETFIT_ASSIGN(const auto network, space_.lower(designs[i]));
      FLEETFIT_ASSIGN(const auto counted, cost::count_cost(network));
      out[i] = what_ == Count::mflops ? static_cast<double>(counted.total.flops) / 1e6
                                      : static_cast<double>(counted.total.params);
    }
    return {};
  }

 private:
  const space::Space& space_;
  Count what_;
};

int report(const fleetfit::Error& error) {
  std::fprintf(stderr, "search: %s\n", error.message.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: search MFLOPS\n");
    return 2;
  }
  const auto found_space = space::find_space("nasbench201");
  if (!found_space) return report(found_space.error());
  const auto& cells = **found_space;

  const Counted mflops(cells, Count::mflops);
  const Counted params(cells, Count::params);
  const search::Problem problem{
      .space = &cells,
      .accuracy = &params,
      .costs = {{.name = "mflops", .source = &mflops, .limit = std::atof(argv[1])}}};

  auto strategy =
      search::make_evolution(cells, core::Random(1), {.population = 40, .generations = 6});
  if (!strategy) return report(strategy.error());
  core::ThreadPool pool(core::ThreadPool::available_cpus());
  const auto found = search::run_search(problem, **strategy, pool);
  if (!found) return report(found.error());
  if (!found->best) {
    std::fprintf(stderr, "search: no network is that small\n");
    return 1;
  }
  std::printf("design %s mflops %.3f params %.0f\n", cells.format(found->best->design).c_str(),
              found->best->costs[0], found->best->accuracy);
  return 0;
}
