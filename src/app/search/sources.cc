#include "fleetfit/app/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <utility>

#include "app/devices/opened_device.h"
#include "app/measure/measuring_designs.h"
#include "fleetfit/app/measuring.h"
#include "fleetfit/app/predicting_designs.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/predict/dense_network.h"
#include "fleetfit/predict/design_predictor.h"
#include "fleetfit/predict/graph_pricing.h"
#include "fleetfit/predict/network_predictor.h"
#include "fleetfit/predict/tree_model.h"
#include "fleetfit/space/table.h"
#include "fleetfit/transfer/adaproxy.h"

namespace fleetfit::app {
namespace {

struct FitOptions {
  FitMethod method = FitMethod::automatic;
  std::uint64_t seed = 1;
  int threads = 1;
  std::stop_token stop = {};
};

struct FittedSource {
  std::unique_ptr<const space::Source> source;
  std::string settings;         ///< for people
  std::size_t designs = 0;      ///< that it was fitted to
  double rank_correlation = 0;  ///< with designs that were held out
};

constexpr std::size_t kLeastDesigns = 10;
constexpr int kFolds = 5;

class RegressorSource final : public space::Source {
 public:
  RegressorSource(const space::Space& space, std::size_t encoding,
                  std::unique_ptr<predict::Regressor> model)
      : space_(space), encoding_(encoding), model_(std::move(model)) {}

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    const std::size_t columns = model_->features();
    std::vector<double> rows(designs.size() * columns);
    space_.encode(designs, encoding_, rows);
    model_->predict({.values = rows, .columns = columns}, out);
    return {};
  }

 private:
  const space::Space& space_;
  std::size_t encoding_;
  std::unique_ptr<predict::Regressor> model_;
};

/// The table's designs that have a number, encoded and dealt out to folds.
struct Examples {
  std::size_t columns = 0;
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<int> fold = {};

  predict::TrainingSet set() const {
    return {.x = {.values = x, .columns = columns}, .y = y, .fold = fold, .folds = kFolds};
  }
};

Result<Examples> examples_of(const space::Space& space, std::size_t encoding,
                             const space::DesignTable& table, std::uint64_t seed) {
  Examples examples{.columns = space.encodings()[encoding].features.size()};
  space::Population known(table.designs.genes());
  for (std::size_t row = 0; row < table.designs.size(); ++row) {
    const double value = table.values[0][row];
    if (std::isnan(value)) continue;
    if (value <= 0) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("a predictor is fitted to positive numbers; {} has {}",
                              space.format(table.designs[row]), value));
    }
    known.add(table.designs[row]);
    examples.y.push_back(value);
  }
  if (known.size() < kLeastDesigns) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} designs are too few to fit a predictor to, at least {} are needed",
                            known.size(), kLeastDesigns));
  }
  examples.x.resize(known.size() * examples.columns);
  space.encode(known, encoding, examples.x);
  examples.fold =
      predict::deal_folds(known.size(), kFolds, core::Random(seed).split("fitted source"));
  return examples;
}

struct Ranked {
  predict::FittedRegressor fitted;
  double rank_correlation;
};

Result<Ranked> ranked(Result<predict::FittedRegressor> fitted, std::span<const double> y) {
  FLEETFIT_TRY(fitted);
  // A model that gives all designs one price ranks none of them.
  const auto correlation = core::spearman(fitted->out_of_fold, y);
  return Ranked{*std::move(fitted), correlation.value_or(0)};
}

Result<Ranked> fit(const Examples& examples, const FitOptions& options) {
  const auto set = examples.set();
  const core::Random random(options.seed);
  core::ThreadPool pool(options.threads);
  if (options.method == FitMethod::mlp) {
    // Its first setting has three hidden layers: four dense ones.
    const auto fit_dense = predict::fit_mlp({.trials = 1, .stop = options.stop});
    const predict::NamedSet designs{.name = "designs", .set = set};
    auto fitted = fit_dense(std::span(&designs, 1), random, pool);
    FLEETFIT_TRY(fitted);
    return ranked(std::move(fitted->front()), set.y);
  }
  auto linear = ranked(predict::fit_ridge(set), set.y);
  auto trees = ranked(
      predict::fit_boosted_trees(set, random, pool, {.target = predict::BoostTarget::logarithm}),
      set.y);
  if (!linear || !trees) return linear ? std::move(trees) : std::move(linear);
  return linear->rank_correlation >= trees->rank_correlation ? std::move(linear) : std::move(trees);
}

/// Learns the table's first column from the space's one-hot encoding. Fails with `invalid_input` if
/// there are too few designs, if a number is not positive, or if all numbers are equal; with
/// `not_found` if dense layers are asked for where fleetfit-train is not installed.
Result<FittedSource> fit_source(const space::Space& space, const space::DesignTable& table,
                                const FitOptions& options) {
  FLEETFIT_ASSIGN(const auto encoding, space.find_encoding("one-hot"));
  FLEETFIT_ASSIGN(const auto examples, examples_of(space, encoding, table, options.seed));
  const auto [least, most] = std::ranges::minmax(examples.y);
  if (least == most) {
    return fail(ErrorCode::invalid_input,
                fmt::format("all designs have {}: there is nothing to learn", least));
  }
  auto best = fit(examples, options);
  FLEETFIT_TRY(best);
  return FittedSource{
      .source = std::make_unique<RegressorSource>(space, encoding, std::move(best->fitted.model)),
      .settings = std::move(best->fitted.settings),
      .designs = examples.y.size(),
      .rank_correlation = best->rank_correlation};
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr std::array kQuantities = {std::string_view("latency_ms"), std::string_view("energy_mj"),
                                    std::string_view("memory_mb"), std::string_view("accuracy")};

std::string file_name(const std::filesystem::path& path) { return path.filename().string(); }

Result<space::DesignTable> read_column(const SourcePlace& place, std::string_view text,
                                       Quantity quantity) {
  FLEETFIT_ASSIGN(const auto from, table_column_from(text));
  return space::read_design_table(from.file, place.space,
                                  {.columns = {from.column}, .cells = space::rule_of(quantity)});
}

space::Population known_designs(const space::DesignTable& table) {
  space::Population known(table.designs.genes());
  for (std::size_t row = 0; row < table.designs.size(); ++row)
    if (!std::isnan(table.values[0][row])) known.add(table.designs[row]);
  return known;
}

Result<OpenedSource> open_table(const SourcePlace& place, std::string_view text,
                                Quantity quantity) {
  FLEETFIT_ASSIGN(const auto table, read_column(place, text, quantity));
  OpenedSource opened{
      .source = space::table_source(table, 0),
      .about = fmt::format("{}, column {}", file_name(table.name), table.columns[0]),
      .is_measured = true};
  auto known = known_designs(table);
  if (known.size() != place.space.size().exact()) opened.designs = std::move(known);
  return opened;
}

Result<OpenedSource> open_design_predictor(const SourcePlace& place, const std::string& file,
                                           const core::JsonView& json) {
  FLEETFIT_ASSIGN(auto predictor, predict::design_predictor_from_json(json));
  const auto& its_space = predictor->space();
  if (its_space.name() != place.space.name()) {
    return fail(ErrorCode::invalid_input, fmt::format("{}: it is for the space {}, not for {}",
                                                      file, its_space.name(), place.space.name()));
  }
  auto about =
      fmt::format("predictor of {} ({})", predictor->identity().device, predictor->settings());
  return OpenedSource{.source = std::move(predictor), .about = std::move(about)};
}

/// Builds each design's network and prices its kernels.
class KernelSource final : public space::Source {
 public:
  KernelSource(const space::Space& space, predict::GraphPricing pricing)
      : space_(space), pricing_(std::move(pricing)) {}

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      FLEETFIT_ASSIGN(auto graph, space_.lower(designs[i]));
      FLEETFIT_ASSIGN(const auto priced,
                      pricing_.price(std::move(graph), space_.format(designs[i])));
      out[i] = priced.latency_ms;
    }
    return {};
  }

 private:
  const space::Space& space_;
  predict::GraphPricing pricing_;
};

Result<OpenedSource> open_predictor(const SourcePlace& place, std::string_view text,
                                    Quantity quantity) {
  const std::string file(text);
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  const core::JsonView json(document, file);
  FLEETFIT_ASSIGN(const auto type, json.text("type"));
  if (type.starts_with("network")) return open_design_predictor(place, file, json);
  if (quantity != Quantity::latency_ms) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: it predicts latencies, not {}", file, to_string(quantity)));
  }
  FLEETFIT_ASSIGN(auto pricing, predict::GraphPricing::open(file));
  auto about = fmt::format("predictor of {}, kernel by kernel", pricing.identity().device);
  return OpenedSource{.source = std::make_unique<KernelSource>(place.space, std::move(pricing)),
                      .about = std::move(about)};
}

/// Proxies are adapted to latencies.
Result<OpenedSource> open_adapted(const SourcePlace& place, const std::filesystem::path& file,
                                  Quantity quantity) {
  if (quantity != Quantity::latency_ms) {
    return fail(ErrorCode::invalid_input,
                fmt::format("an adapted proxy tells latencies, not {}", to_string(quantity)));
  }
  FLEETFIT_ASSIGN(auto adapted, transfer::load_adapted(file, place.space));
  const auto& report = adapted.report();
  auto about = fmt::format("{} adapted to {} by {} measurements", report.proxy, report.target,
                           report.measurements);
  return OpenedSource{.source = transfer::adapted_source(std::move(adapted)),
                      .about = std::move(about)};
}

/// Measures what the store does not know; one batch at a time, as a device does one thing at once.
/// Designs that failed, or were not reached before the user stopped it, have no number.
class DeviceSource final : public space::Source {
 public:
  DeviceSource(const SourcePlace& place, DesignsRequest request, Quantity quantity)
      : place_(place), request_(std::move(request)), quantity_(quantity) {}

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    const std::scoped_lock lock(mutex_);
    auto request = request_;
    request.designs.emplace(designs.genes());
    for (std::size_t i = 0; i < designs.size(); ++i) request.designs->add(designs[i]);
    const auto start = place_.workplace.clock.now();
    FLEETFIT_ASSIGN(const auto measured,
                    measure_designs(place_.workplace, request, place_.progress, place_.stop));
    const std::chrono::duration<double> took = place_.workplace.clock.now() - start;
    std::ranges::fill(out, kNan);
    bool anything = false;
    for (const auto& one : measured) {
      out[one.number] = cost_of(one.record, quantity_);
      if (one.known) continue;
      ++spent_.measurements;
      anything = true;
    }
    if (anything) spent_.machine_s += took.count();
    return {};
  }

  Spent spent() const {
    const std::scoped_lock lock(mutex_);
    return spent_;
  }

 private:
  SourcePlace place_;
  DesignsRequest request_;
  Quantity quantity_;
  mutable std::mutex mutex_;
  mutable Spent spent_;  // guarded by mutex_
};

Result<OpenedSource> open_device_source(const SourcePlace& place, std::string_view name,
                                        Quantity quantity, const SourceOptions& options) {
  if (quantity == Quantity::accuracy) {
    return fail(ErrorCode::invalid_input,
                "a device has no accuracy; it comes from a table:, a "
                "predictor: or a fitted: source");
  }
  FLEETFIT_TRY(find_device(place.workplace, name));
  auto source = std::make_unique<DeviceSource>(place,
                                               DesignsRequest{.space = place.space.name(),
                                                              .devices = {std::string(name)},
                                                              .protocol = options.protocol,
                                                              .threads = options.threads},
                                               quantity);
  auto spent = [device_source = source.get()] { return device_source->spent(); };
  return OpenedSource{.source = std::move(source),
                      .about = fmt::format("measured on {}", name),
                      .is_measured = true,
                      .spent = std::move(spent)};
}

Result<OpenedSource> open_fitted(const SourcePlace& place, std::string_view text, Quantity quantity,
                                 const SourceOptions& options) {
  FLEETFIT_ASSIGN(const auto table, read_column(place, text, quantity));
  FLEETFIT_ASSIGN(auto fitted, core::within(table.name, fit_source(place.space, table,
                                                                   {.method = options.fit,
                                                                    .seed = options.seed,
                                                                    .threads = options.threads,
                                                                    .stop = place.stop})));
  return OpenedSource{
      .source = std::move(fitted.source),
      .about = fmt::format("fitted to {} designs of {}, column {} ({})", fitted.designs,
                           file_name(table.name), table.columns[0], fitted.settings),
      .rank_correlation = fitted.rank_correlation};
}

/// Hands a source that the caller owns to callers that open it.
class BorrowedSource final : public space::Source {
 public:
  explicit BorrowedSource(const space::Source& source) : source_(source) {}

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    return source_.evaluate(designs, out);
  }

 private:
  const space::Source& source_;
};

Result<OpenedSource> open_own(std::string_view name, const SourceOptions& options) {
  const auto found = options.own.find(name);
  if (found == options.own.end())
    return fail(ErrorCode::not_found, "the caller has no source of that name");
  return OpenedSource{.source = std::make_unique<BorrowedSource>(*found->second),
                      .about = fmt::format("{}, of the caller's own", name)};
}

Result<OpenedSource> open_kind(const SourcePlace& place, std::string_view kind,
                               std::string_view rest, Quantity quantity,
                               const SourceOptions& options) {
  if (kind == "table") return open_table(place, rest, quantity);
  if (kind == "predictor") return open_predictor(place, rest, quantity);
  if (kind == "adapted") return open_adapted(place, rest, quantity);
  if (kind == "device") return open_device_source(place, rest, quantity, options);
  if (kind == "fitted") return open_fitted(place, rest, quantity, options);
  if (kind == "own") return open_own(rest, options);
  return fail(ErrorCode::invalid_input,
              "a source is table:FILE#COLUMN, predictor:FILE, adapted:FILE, device:NAME or "
              "fitted:FILE#COLUMN");
}

}  // namespace

Result<FitMethod> fit_method_from(std::string_view name) {
  if (name == "auto") return FitMethod::automatic;
  if (name == "mlp") return FitMethod::mlp;
  return fail(ErrorCode::invalid_input,
              fmt::format("there is no way '{}' to fit; there are auto and mlp", name));
}

bool measures(std::string_view source) { return source.starts_with("device:"); }

Result<OpenedSource> open_source(const SourcePlace& place, std::string_view text, Quantity quantity,
                                 const SourceOptions& options) {
  const std::size_t colon = text.find(':');
  const auto kind = text.substr(0, colon);
  const auto rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  FLEETFIT_ASSIGN(auto opened, core::within(text, open_kind(place, kind, rest, quantity, options)));
  opened.text = text;
  return opened;
}

}  // namespace fleetfit::app
