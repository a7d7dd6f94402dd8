#include "fleetfit/predict/design_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "fleetfit/core/version.h"
#include "predict/design_graph.h"
#include "predict/predictor_fields.h"

namespace fleetfit::predict {
namespace {

constexpr std::size_t kBlock = 1024;  // designs that are encoded at once

NetworkMethod network_method(DesignMethod method) {
  switch (method) {
    case DesignMethod::linear:
      return NetworkMethod::linear;
    case DesignMethod::trees:
      return NetworkMethod::trees;
    case DesignMethod::table:
      return NetworkMethod::table;
    default:
      return NetworkMethod::automatic;
  }
}

class EncodedDesignPredictor final : public DesignPredictor {
 public:
  EncodedDesignPredictor(NetworkPredictor predictor, const space::Space& space,
                         std::size_t encoding)
      : predictor_(std::move(predictor)), space_(space), encoding_(encoding) {}

  const Identity& identity() const override { return predictor_.identity(); }
  const space::Space& space() const override { return space_; }
  std::string_view reads() const override { return predictor_.encoding(); }
  std::string_view settings() const override { return predictor_.settings(); }
  double mape() const override { return predictor_.mape(); }
  core::Interval interval90(double ms) const override { return predictor_.interval90(ms); }

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    const auto columns = space_.encodings()[encoding_].features.size();
    std::vector<double> rows(std::min(kBlock, designs.size()) * columns);
    for (std::size_t first = 0; first < designs.size(); first += kBlock) {
      const auto count = std::min(kBlock, designs.size() - first);
      const auto block = std::span(rows).first(count * columns);
      space_.encode(designs.part(first, count), encoding_, block);
      predictor_.price({.values = block, .columns = columns}, out.subspan(first, count));
    }
    return {};
  }

  nlohmann::json to_json() const override {
    auto json = predictor_.to_json();
    json["space_version"] = space_.version();
    return json;
  }

 private:
  NetworkPredictor predictor_;
  const space::Space& space_;
  std::size_t encoding_;
};

Result<NetworkPredictor> train_on_encoding(const space::Space& space, space::DesignBatch designs,
                                           std::span<const double> latency_ms,
                                           const DesignTrainOptions& options, std::size_t encoding,
                                           core::ThreadPool& pool) {
  const auto& chosen = space.encodings()[encoding];
  std::vector<double> rows(designs.size() * chosen.features.size());
  space.encode(designs, encoding, rows);
  return train_network_predictor({.values = rows, .columns = chosen.features.size()}, latency_ms,
                                 {.method = network_method(options.method),
                                  .identity = options.identity,
                                  .space = space.name(),
                                  .encoding = chosen.name,
                                  .seed = options.seed},
                                 pool);
}

Result<std::vector<std::size_t>> encodings_to_try(const space::Space& space,
                                                  const std::string& name) {
  if (name == "auto") {
    std::vector<std::size_t> all(space.encodings().size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }
  const auto found = space.find_encoding(name);
  if (!found) return fail(ErrorCode::invalid_input, found.error().message);
  return std::vector{*found};
}

Result<std::unique_ptr<const DesignPredictor>> train_encoded(const space::Space& space,
                                                             space::DesignBatch designs,
                                                             std::span<const double> latency_ms,
                                                             const DesignTrainOptions& options,
                                                             core::ThreadPool& pool) {
  FLEETFIT_ASSIGN(const auto encodings, encodings_to_try(space, options.encoding));
  std::optional<NetworkPredictor> best;
  std::size_t best_encoding = 0;
  for (const auto encoding : encodings) {
    FLEETFIT_ASSIGN(auto trained,
                    train_on_encoding(space, designs, latency_ms, options, encoding, pool));
    if (best && trained.mape() >= best->mape()) continue;
    best = std::move(trained);
    best_encoding = encoding;
  }
  return std::make_unique<const EncodedDesignPredictor>(*std::move(best), space, best_encoding);
}

Status check_times(const space::Space& space, space::DesignBatch designs,
                   std::span<const double> latency_ms) {
  for (std::size_t i = 0; i < designs.size(); ++i) {
    if (latency_ms[i] > 0 && latency_ms[i] < std::numeric_limits<double>::infinity()) continue;
    return fail(ErrorCode::invalid_input,
                fmt::format("design {}: {} is no time", space.format(designs[i]), latency_ms[i]));
  }
  return {};
}

Result<std::unique_ptr<const DesignPredictor>> encoded_from_json(const core::JsonView& json) {
  FLEETFIT_ASSIGN(auto predictor, NetworkPredictor::from_json(json));
  FLEETFIT_ASSIGN(const auto space, read_space(json));
  const auto encoding = space->find_encoding(predictor.encoding());
  if (!encoding) return json.at("encoding")->error(encoding.error().message);
  const auto columns = space->encodings()[*encoding].features.size();
  if (predictor.model().features() != columns) {
    return json.at("features")
        ->error(fmt::format("the encoding {} has {} now", predictor.encoding(), columns));
  }
  return std::make_unique<const EncodedDesignPredictor>(std::move(predictor), *space, *encoding);
}

}  // namespace

core::Names names_of(DesignMethod) {
  static constexpr core::Name kAll[] = {{DesignMethod::automatic, "auto"},
                                        {DesignMethod::linear, "linear"},
                                        {DesignMethod::trees, "trees"},
                                        {DesignMethod::table, "table"},
                                        {DesignMethod::graph, "graph"}};
  return {.what = "method", .all = kAll};
}

Result<std::unique_ptr<const DesignPredictor>> train_design_predictor(
    const space::Space& space, space::DesignBatch designs, std::span<const double> latency_ms,
    const DesignTrainOptions& options, core::ThreadPool& pool) {
  FLEETFIT_TRY(check_times(space, designs, latency_ms));
  if (options.method != DesignMethod::graph)
    return train_encoded(space, designs, latency_ms, options, pool);
  auto with_method = options;
  with_method.identity.method = to_string(options.method);
  with_method.identity.networks = static_cast<int>(designs.size());
  with_method.identity.fleetfit_version = core::version();
  return train_design_graph(space, designs, latency_ms, with_method);
}

Result<std::unique_ptr<const DesignPredictor>> design_predictor_from_json(
    const core::JsonView& json) {
  FLEETFIT_ASSIGN(const auto type, read_document_type(json));
  if (type == "network") return encoded_from_json(json);
  if (type == "network-graph") return design_graph_from_json(json);
  return json.at("type")->error(fmt::format("'{}' is no predictor of designs of a space", type));
}

Result<std::unique_ptr<const DesignPredictor>> read_design_predictor(
    const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  return design_predictor_from_json(core::JsonView(document, file.string()));
}

}  // namespace fleetfit::predict
