// Latencies of ncnn's networks on chips that were left out: from the data sheet alone, and with a
// few networks measured there; against what one would do without a model.
//   network_latency_bench DATA_FOLDER [--devices]
#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "bench/ncnn_devices.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"

namespace fleetfit::bench {
namespace {

using learned::NetworkLatencyModel;
using learned::NetworkReference;
using learned::NetworkTable;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr std::size_t kFolds = 5;
constexpr std::size_t kNetworkFolds = 7;
constexpr std::size_t kReferences = 10;
constexpr std::size_t kLeastNetworks = 12;  // for a rank correlation that means something

struct Score {
  std::size_t device = 0;
  double srcc = 0;
  double error = 0;     // median of |predicted / measured - 1|
  double inside = NAN;  // share in the 90 % range
};
using Scores = std::map<std::string, std::vector<Score>>;

struct Comparison {
  std::vector<double> predicted;
  std::vector<double> measured;
  std::size_t inside = 0;
  bool has_ranges = false;

  void add(double ms, double truth) {
    predicted.push_back(ms);
    measured.push_back(truth);
  }
  void add(const learned::NetworkPrediction& found, double truth) {
    add(found.latency_ms, truth);
    has_ranges = true;
    if (truth >= found.low_ms && truth <= found.high_ms) ++inside;
  }
  Score score(std::size_t device) const {
    std::vector<double> errors;
    for (std::size_t i = 0; i < measured.size(); ++i)
      errors.push_back(std::abs(predicted[i] / measured[i] - 1));
    Score score{.device = device,
                .srcc = *core::spearman(predicted, measured),
                .error = *core::median(errors)};
    if (has_ranges)
      score.inside = static_cast<double>(inside) / static_cast<double>(measured.size());
    return score;
  }
};

template <class Text>
std::vector<std::vector<std::size_t>> folds_by(const std::vector<Text>& groups, std::size_t count,
                                               std::uint64_t seed) {
  const std::set<Text> distinct(groups.begin(), groups.end());
  std::vector<Text> order(distinct.begin(), distinct.end());
  core::Random(seed).shuffle(order);
  std::vector<std::vector<std::size_t>> folds(count);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto place = std::ranges::find(order, groups[i]) - order.begin();
    folds[static_cast<std::size_t>(place) % count].push_back(i);
  }
  return folds;
}

NetworkTable without(const NetworkTable& all, const std::vector<std::size_t>& devices,
                     const std::vector<std::size_t>& networks) {
  NetworkTable rest{.devices = {.name = all.devices.name, .columns = all.devices.columns}};
  for (std::size_t n = 0; n < all.networks.size(); ++n) {
    if (std::ranges::count(networks, n)) continue;
    rest.networks.push_back(all.networks[n]);
    rest.network_features.push_back(all.network_features[n]);
  }
  for (std::size_t d = 0; d < all.devices.devices.size(); ++d) {
    if (std::ranges::count(devices, d)) continue;
    rest.devices.devices.push_back(all.devices.devices[d]);
    const auto row = all.devices.row(d);
    rest.devices.values.insert(rest.devices.values.end(), row.begin(), row.end());
    auto& latencies = rest.latency_ms.emplace_back();
    for (std::size_t n = 0; n < all.networks.size(); ++n)
      if (!std::ranges::count(networks, n)) latencies.push_back(all.latency_ms[d][n]);
  }
  return rest;
}

/// Known devices for the baselines, logarithms; what is missing is its network's mean at the
/// device's level.
struct Plain {
  Matrix logs;
  Vector means;
  Vector levels;

  explicit Plain(const NetworkTable& table) : logs(table.latency_ms.size(), table.networks.size()) {
    for (Eigen::Index i = 0; i < logs.rows(); ++i)
      for (Eigen::Index j = 0; j < logs.cols(); ++j)
        logs(i, j) =
            std::log(table.latency_ms[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
    means = Vector::Zero(logs.cols());
    levels = Vector::Zero(logs.rows());
    for (int round = 0; round < 5; ++round) {
      for (Eigen::Index j = 0; j < logs.cols(); ++j) means[j] = mean_of(logs.col(j) - levels);
      for (Eigen::Index i = 0; i < logs.rows(); ++i)
        levels[i] = mean_of(logs.row(i).transpose() - means);
    }
    for (Eigen::Index i = 0; i < logs.rows(); ++i)
      for (Eigen::Index j = 0; j < logs.cols(); ++j)
        if (std::isnan(logs(i, j))) logs(i, j) = means[j] + levels[i];
  }

  static double mean_of(const Vector& values) {
    double sum = 0;
    int count = 0;
    for (const double value : values)
      if (!std::isnan(value)) sum += value, ++count;
    return sum / count;
  }

  double level(const std::vector<NetworkReference>& references) const {
    if (references.empty()) return levels.mean();
    double sum = 0;
    for (const auto& reference : references)
      sum += std::log(reference.latency_ms) - means[static_cast<Eigen::Index>(reference.network)];
    return sum / static_cast<double>(references.size());
  }

  /// Each network's mean over known devices, at the level of the references.
  Vector by_mean(const std::vector<NetworkReference>& references) const {
    return means.array() + level(references);
  }

  /// The known device whose references are most alike but for a common factor.
  Vector by_nearest(const std::vector<NetworkReference>& references) const {
    double best = INFINITY;
    double best_shift = 0;
    Eigen::Index nearest = 0;
    for (Eigen::Index i = 0; i < logs.rows(); ++i) {
      double sum = 0;
      double squares = 0;
      for (const auto& reference : references) {
        const double off =
            std::log(reference.latency_ms) - logs(i, static_cast<Eigen::Index>(reference.network));
        sum += off;
        squares += off * off;
      }
      const double shift = sum / static_cast<double>(references.size());
      const double distance = squares - sum * shift + 0.01 * shift * shift;
      if (distance >= best) continue;
      best = distance;
      best_shift = shift;
      nearest = i;
    }
    return logs.row(nearest).transpose().array() + best_shift;
  }

  /// Few-shot transfer as a regression of each network on the references, over known devices.
  Vector by_regression(const std::vector<NetworkReference>& references) const {
    std::vector<Eigen::Index> places;
    for (const auto& reference : references)
      places.push_back(static_cast<Eigen::Index>(reference.network));
    Matrix inputs = (logs.rowwise() - means.transpose())(Eigen::all, places);
    const Vector common = inputs.rowwise().mean();
    inputs.colwise() -= common;
    Matrix targets = logs.rowwise() - means.transpose();
    targets.colwise() -= common;
    const double ridge = 0.05 * static_cast<double>(logs.rows());
    const Matrix gram =
        inputs.transpose() * inputs + ridge * Matrix::Identity(inputs.cols(), inputs.cols());
    const Matrix weights = gram.ldlt().solve(inputs.transpose() * targets);
    Vector own(references.size());
    for (Eigen::Index i = 0; i < own.size(); ++i)
      own[i] = std::log(references[static_cast<std::size_t>(i)].latency_ms) -
               means[places[static_cast<std::size_t>(i)]];
    const double slowness = own.mean();
    return (means + weights.transpose() * (own.array() - slowness).matrix()).array() + slowness;
  }
};

std::vector<NetworkReference> references_of(const std::vector<double>& latency_ms,
                                            const std::vector<std::size_t>& networks,
                                            std::size_t count) {
  std::vector<NetworkReference> references;
  for (const auto network : networks) {
    if (references.size() == count) break;
    if (!std::isnan(latency_ms[network])) references.push_back({network, latency_ms[network]});
  }
  return references;
}

std::vector<std::size_t> others_of(const std::vector<double>& latency_ms,
                                   const std::vector<std::size_t>& references) {
  std::vector<std::size_t> others;
  for (std::size_t n = 0; n < latency_ms.size(); ++n)
    if (!std::isnan(latency_ms[n]) && !std::ranges::count(references, n)) others.push_back(n);
  return others;
}

void score_device(const NetworkTable& all, const NetworkLatencyModel& model, const Plain& plain,
                  std::size_t device, Scores& scores) {
  const auto& truth = all.latency_ms[device];
  const auto chosen = model.best_references(kReferences);
  const auto others = others_of(truth, chosen);
  if (others.size() < kLeastNetworks) return;
  const auto add = [&](const std::string& name, const Vector& logs) {
    Comparison comparison;
    for (const auto n : others)
      comparison.add(std::exp(logs[static_cast<Eigen::Index>(n)]), truth[n]);
    scores[name].push_back(comparison.score(device));
  };
  for (const std::size_t count : {0, 1, 3, 10}) {
    const auto references = references_of(truth, chosen, count);
    const auto found = *model.predict(all.devices, device, references);
    Comparison comparison;
    for (const auto n : others) comparison.add(found[n], truth[n]);
    scores[fmt::format("{:2} model", count)].push_back(comparison.score(device));
    add(fmt::format("{:2} mean of networks", count), plain.by_mean(references));
    if (count == 0) continue;
    add(fmt::format("{:2} nearest device", count), plain.by_nearest(references));
    add(fmt::format("{:2} regression", count), plain.by_regression(references));
  }
}

Scores leave_chips_out(const NcnnTable& ncnn) {
  Scores scores;
  for (const auto& fold : folds_by(ncnn.chips, kFolds, 1)) {
    const auto known = without(ncnn.table, fold, {});
    const auto model = *NetworkLatencyModel::fit(known);
    const Plain plain(known);
    for (const auto device : fold) score_device(ncnn.table, model, plain, device, scores);
  }
  return scores;
}

/// Log-linear in operations and int8, fitted to the references of the device itself.
double by_operations(const NetworkTable& known, const std::vector<NetworkReference>& references,
                     const std::vector<double>& network) {
  const auto inputs = [](const std::vector<double>& features) {
    double operations = 1;
    for (const std::size_t i : {0, 4, 8}) operations += std::expm1(features[i]);
    return Eigen::Vector3d(1, std::log(operations) - 13, features.back());
  };
  Eigen::Matrix3d gram = 1e-3 * Eigen::Matrix3d::Identity();
  Eigen::Vector3d target = Eigen::Vector3d::Zero();
  for (const auto& reference : references) {
    const auto row = inputs(known.network_features[reference.network]);
    gram += row * row.transpose();
    target += row * std::log(reference.latency_ms);
  }
  return std::exp(inputs(network).dot(gram.ldlt().solve(target)));
}

/// Chips and architectures are both new: each architecture is predicted once for each chip.
Scores leave_both_out(const NcnnTable& ncnn) {
  std::map<std::string, std::vector<Comparison>> comparisons;
  const auto devices = ncnn.table.devices.devices.size();
  for (const auto& networks : folds_by(ncnn.architectures, kNetworkFolds, 2)) {
    for (const auto& fold : folds_by(ncnn.chips, kFolds, 1)) {
      const auto known = without(ncnn.table, fold, networks);
      const auto model = *NetworkLatencyModel::fit(known);
      const auto chosen = model.best_references(kReferences);
      for (const auto device : fold) {
        const auto left = without(ncnn.table, {}, networks).latency_ms[device];
        for (const std::size_t count : {0, 3, 10}) {
          const auto references = references_of(left, chosen, count);
          for (const auto n : networks) {
            const double truth = ncnn.table.latency_ms[device][n];
            if (std::isnan(truth)) continue;
            const auto& features = ncnn.table.network_features[n];
            auto& model_rows = comparisons[fmt::format("{:2} model", count)];
            auto& line_rows = comparisons[fmt::format("{:2} line over operations", count)];
            model_rows.resize(devices);
            line_rows.resize(devices);
            model_rows[device].add(
                *model.predict_unseen(ncnn.table.devices, device, references, features), truth);
            if (count > 0) line_rows[device].add(by_operations(known, references, features), truth);
          }
        }
      }
    }
  }
  Scores scores;
  for (const auto& [name, rows] : comparisons)
    for (std::size_t device = 0; device < rows.size(); ++device)
      if (rows[device].measured.size() >= kLeastNetworks)
        scores[name].push_back(rows[device].score(device));
  return scores;
}

template <class Member>
std::vector<double> all_of(const std::vector<Score>& scores, Member member) {
  std::vector<double> values;
  for (const auto& score : scores) values.push_back(score.*member);
  return values;
}

void print_summary(const char* title, const Scores& scores) {
  fmt::print("\n{}\n{:<28} {:>7} {:>22} {:>22} {:>10}\n", title, "measured, method", "devices",
             "rank corr. med 10%ile", "error med 90%ile", "in 90 %");
  for (const auto& [name, rows] : scores) {
    const auto srcc = all_of(rows, &Score::srcc);
    const auto error = all_of(rows, &Score::error);
    const auto inside = all_of(rows, &Score::inside);
    fmt::print("{:<28} {:>7} {:>15.3f} {:>6.3f} {:>13.1f} % {:>4.0f} %", name, rows.size(),
               *core::median(srcc), *core::quantile(srcc, 0.1), 100 * *core::median(error),
               100 * *core::quantile(error, 0.9));
    const auto share = core::mean(inside);
    fmt::print("{}\n", share ? fmt::format(" {:>8.0f} %", 100 * *share) : "");
  }
}

void print_classes(const NcnnTable& ncnn, const Scores& scores) {
  fmt::print(
      "\nBy class of devices: median rank correlation and error, without and with ten "
      "measured networks\n");
  std::map<std::string, std::array<std::vector<Score>, 2>> classes;
  for (std::size_t which : {0, 1})
    for (const auto& score : scores.at(which == 0 ? " 0 model" : "10 model"))
      classes[ncnn.classes[score.device]][which].push_back(score);
  for (const auto& [name, rows] : classes) {
    fmt::print("{:<22} {:>4}", name, rows[0].size());
    for (const auto& part : rows)
      fmt::print(" {:>8.3f} {:>8.1f} %", *core::median(all_of(part, &Score::srcc)),
                 100 * *core::median(all_of(part, &Score::error)));
    fmt::print("\n");
  }
}

void print_devices(const NcnnTable& ncnn, const Scores& scores) {
  fmt::print("\nrank correlation and error without and with ten measured networks\n");
  const auto& none = scores.at(" 0 model");
  const auto& ten = scores.at("10 model");
  for (std::size_t i = 0; i < none.size(); ++i)
    fmt::print("{:.3f} {:6.1f} %  {:.3f} {:6.1f} %  {}\n", none[i].srcc, 100 * none[i].error,
               ten[i].srcc, 100 * ten[i].error, ncnn.table.devices.devices[none[i].device]);
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    fmt::print(stderr, "usage: network_latency_bench DATA_FOLDER [--devices]\n");
    return 2;
  }
  const auto ncnn = read_ncnn(arguments[0]);
  if (!ncnn) {
    fmt::print(stderr, "{}\n", ncnn.error().message);
    return 2;
  }
  const std::set<std::string> chips(ncnn->chips.begin(), ncnn->chips.end());
  fmt::print("{} devices of {} chips, {} networks\n", ncnn->table.devices.devices.size(),
             chips.size(), ncnn->table.networks.size());
  const auto scores = leave_chips_out(*ncnn);
  print_summary("New chips, known networks", scores);
  print_classes(*ncnn, scores);
  print_summary("New chips, new networks", leave_both_out(*ncnn));
  if (std::ranges::count(arguments, "--devices")) print_devices(*ncnn, scores);
  return 0;
}

}  // namespace
}  // namespace fleetfit::bench

int main(int argc, char** argv) {
  return fleetfit::bench::run(std::vector<std::string>(argv + 1, argv + argc));
}
