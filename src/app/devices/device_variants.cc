#include "app/devices/device_variants.h"

#include <fmt/format.h>

#include <utility>

#include "fleetfit/core/sha256.h"
#include "fleetfit/graph/batch.h"
#include "fleetfit/graph/structure.h"

namespace fleetfit::app {

Result<measure::Device> variant_of(measure::Device device, const measure::Hardware& hardware,
                                   const tune::InferenceSetting& setting) {
  if (setting.cores) {
    const auto& all = device.cores.empty() ? hardware.cores : device.cores;
    if (std::ssize(all) < *setting.cores) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("cores: {} has {}, not {}", device.name, all.size(), *setting.cores));
    }
    device.cores = {all.begin(), all.begin() + *setting.cores};
    device.threads = static_cast<int>(*setting.cores);
  }
  if (setting.threads) {
    if (*setting.threads > measure::kMaxThreads) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("threads: {} are too many", *setting.threads));
    }
    device.threads = static_cast<int>(*setting.threads);
  }
  if (setting.precision) {
    FLEETFIT_ASSIGN(device.precision, measure::parse_precision(*setting.precision));
  }
  return device;
}

Result<BatchedModel> BatchedModel::open(const std::filesystem::path& file, ModelOptions options) {
  options.batch = 1;
  auto imported = graph::import_model(file, import_options(options));
  FLEETFIT_TRY(imported);
  // One that cannot be changed is known by the batch that it has.
  auto one = graph::with_batch(imported->graph, 1);
  BatchedModel model{.graph = one ? *std::move(one) : std::move(imported->graph),
                     .name = file.stem().string(),
                     .structure = {}};
  model.structure = graph::structure_id(model.graph);
  return model;
}

Result<ModelFiles> BatchedModel::files(std::int64_t batch, int threads) const {
  FLEETFIT_ASSIGN(auto batched, graph::with_batch(graph, batch));
  const auto what = fmt::format("structure {} in batches of {}", structure, batch);
  return ModelFiles::of_graph(
      {.graph = std::move(batched), .name = name, .origin = what, .hash = core::sha256_hex(what)},
      threads);
}

}  // namespace fleetfit::app
