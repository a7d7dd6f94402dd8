// Writes the baselines of elastic models as bundles, which `fleetfit elastify OUT.ffb` trains:
//   elastic_baselines exits IN.ffb OUT.ffb      early exits; of IN.ffb only the originals count
//   elastic_baselines uniform IN.ffb OUT.ffb    one width for all layers, from the branches of
//   IN.ffb
// `fleetfit bundle draft` gives an IN.ffb with branches that have learned nothing yet, `fleetfit
// elastify --merge 0` one whose shrunk blocks have learned what they replace.

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "bench/elastic_baselines.h"
#include "fleetfit/core/program.h"
#include "fleetfit/elastic/bundle.h"

namespace fleetfit::bench {
namespace {

Result<elastic::Supernet> baseline(std::string_view method, const elastic::Supernet& model) {
  if (method == "uniform") return uniform_widths(model);
  if (method == "exits") return early_exits(model, 1);
  return fail(ErrorCode::invalid_input, fmt::format("'{}' is neither exits nor uniform", method));
}

Status write_baseline(std::string_view method, const char* in, const char* out) {
  FLEETFIT_ASSIGN(auto bundle, elastic::read_bundle(in));
  FLEETFIT_ASSIGN(auto model, baseline(method, bundle.models.front()));
  bundle.models = {std::move(model)};
  bundle.info.samples.clear();  // of subnets that are no more
  FLEETFIT_TRY(elastic::write_bundle(bundle, out));
  fmt::print("{}: {} subnets\n", out, elastic::SubnetSpace(bundle.models).size().decimal());
  return {};
}

}  // namespace
}  // namespace fleetfit::bench

int main(int argc, char** argv) {
  using namespace fleetfit;
  return core::run_guarded([&] {
    if (argc != 4)
      return core::report("usage: elastic_baselines exits|uniform IN.ffb OUT.ffb", core::kBadInput);
    const auto written = bench::write_baseline(argv[1], argv[2], argv[3]);
    return written ? 0 : core::report(written.error());
  });
}
