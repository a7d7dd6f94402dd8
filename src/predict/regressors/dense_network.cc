#include "fleetfit/predict/dense_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/predict/training_files.h"
#include "predict/documents.h"
#include "predict/packed_layer.h"

namespace fleetfit::predict {
namespace {

using core::JsonView;

constexpr DocumentKind kMlp{.type = "mlp", .version = 1};
constexpr std::size_t kBlock = 64;  // rows whose values stay in the cache from layer to layer

RowSet row_set_of(const NamedSet& named) {
  const auto& set = named.set;
  RowSet rows{.name = named.name,
              .values = {set.x.values.begin(), set.x.values.end()},
              .ms = {set.y.begin(), set.y.end()},
              .fold = {set.fold.begin(), set.fold.end()},
              .folds = set.folds};
  for (std::size_t i = 0; i < set.x.columns; ++i) rows.features.push_back(fmt::format("{}", i));
  return rows;
}

/// What was trained, if it is of these sets.
Result<std::vector<FittedRegressor>> fitted_to(std::span<const NamedSet> sets,
                                               std::vector<TrainedModel> trained) {
  std::vector<FittedRegressor> fitted;
  for (std::size_t i = 0; i < std::min(sets.size(), trained.size()); ++i) {
    auto& model = trained[i];
    if (model.name != sets[i].name || model.out_of_fold.size() != sets[i].set.y.size()) break;
    fitted.push_back({.model = std::move(model.model),
                      .out_of_fold = std::move(model.out_of_fold),
                      .settings = std::move(model.settings)});
  }
  if (fitted.size() == sets.size()) return fitted;
  return fail(ErrorCode::cancelled,
              fmt::format("training was stopped before there was a network for {}",
                          sets[fitted.size()].name));
}

Result<std::vector<FittedRegressor>> fit(std::span<const NamedSet> sets, const core::Random& random,
                                         int threads, const MlpOptions& options) {
  std::vector<RowSet> rows_to_fit;
  for (const auto& named : sets) {
    FLEETFIT_TRY(core::within(named.name, check_set(named.set)));
    rows_to_fit.push_back(row_set_of(named));
  }
  FLEETFIT_ASSIGN(const auto folder, core::ScratchFolder::create());
  const auto rows = folder.path() / "rows.json";
  const auto models = folder.path() / "models.json";
  FLEETFIT_TRY(write_row_sets(rows, rows_to_fit));
  FLEETFIT_TRY(run_trainer("mlp", rows, models,
                           {.seed = random.split("mlp").seed(),
                            .budget_s = options.budget_s,
                            .threads = threads,
                            .trials = options.trials,
                            .stop = options.stop}));
  FLEETFIT_ASSIGN(auto trained, read_trained_models(models));
  return fitted_to(sets, std::move(trained));
}

}  // namespace

core::Fields fields_of(const DenseNetwork::Parts*) {
  using Parts = DenseNetwork::Parts;
  static constexpr core::Field kAll[] = {core::other_field("type"), core::other_field("version"),
                                         FLEETFIT_MEMBERS(Parts, inputs, layers, output)};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

struct DenseNetwork::Packed {
  std::vector<PackedLayer> layers;
};

DenseNetwork::DenseNetwork(Parts parts)
    : parts_(std::move(parts)), packed_(new Packed{.layers = pack(parts_.layers)}) {}
DenseNetwork::DenseNetwork(DenseNetwork&&) noexcept = default;
DenseNetwork& DenseNetwork::operator=(DenseNetwork&&) noexcept = default;
DenseNetwork::~DenseNetwork() = default;

Result<DenseNetwork> DenseNetwork::make(Parts parts) {
  FLEETFIT_TRY(check(parts.inputs));
  FLEETFIT_TRY(check_chain(parts.layers, parts.inputs.mean.size(), "layers"));
  if (parts.layers.back().outputs != 1) {
    return refuse(
        fmt::format("layers: the last gives {} numbers, expected 1", parts.layers.back().outputs));
  }
  FLEETFIT_TRY(check(parts.output));
  return DenseNetwork(std::move(parts));
}

Result<std::unique_ptr<Regressor>> DenseNetwork::from_json(const JsonView& json,
                                                           std::size_t features) {
  FLEETFIT_ASSIGN(auto parts, read_of_kind<Parts>(json, kMlp));
  FLEETFIT_ASSIGN(auto network, core::within(json.place(), make(std::move(parts))));
  if (network.features() != features) {
    return json.error(
        fmt::format("takes {} features, but there are {}", network.features(), features));
  }
  return std::make_unique<DenseNetwork>(std::move(network));
}

std::size_t DenseNetwork::features() const { return parts_.inputs.mean.size(); }

void DenseNetwork::predict(const MatrixView& rows, std::span<double> out) const {
  const std::size_t count = rows.rows();
  std::vector<float> values;
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t block = std::min(kBlock, count - first);
    values.resize(block * features());
    for (std::size_t r = 0; r < block; ++r)
      scale_inputs(parts_.inputs, rows.row(first + r),
                   std::span(values).subspan(r * features(), features()));
    apply_layers(packed_->layers, block, values, Activation::none);
    for (std::size_t r = 0; r < block; ++r)
      out[first + r] = scaled_output(parts_.output, values[r]);
  }
}

nlohmann::json DenseNetwork::to_json() const { return json_of_kind(parts_, kMlp); }

const DenseNetwork::Parts& DenseNetwork::parts() const { return parts_; }

FitRegressors fit_mlp(MlpOptions options) {
  return [options = std::move(options)](std::span<const NamedSet> sets, const core::Random& random,
                                        core::ThreadPool& pool) {
    return fit(sets, random, pool.workers(), options);
  };
}

}  // namespace fleetfit::predict
