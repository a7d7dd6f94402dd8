#include "fleetfit/learned/network_latency.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>

#include "fleetfit/learned/feature_scaling.h"

namespace fleetfit::learned {
namespace {

using Index = Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using Places = std::vector<Index>;

constexpr double kNineOfTen = 1.6449;  // standard deviations around the mean of a normal one
constexpr std::size_t kLeastDevices = 5;
constexpr std::size_t kLeastNetworks = 3;

Status wrong_table(const NetworkTable& table, std::string problem) {
  return refuse(fmt::format("{}: {}", table.devices.name, problem));
}

bool is_known(double ms) { return !std::isnan(ms); }

Status check_sizes(const NetworkTable& table) {
  const auto devices = table.devices.devices.size();
  const auto networks = table.networks.size();
  if (devices < kLeastDevices || networks < kLeastNetworks) {
    return wrong_table(
        table, fmt::format("{} devices and {} networks are too few; {} and {} are needed", devices,
                           networks, kLeastDevices, kLeastNetworks));
  }
  if (table.latency_ms.size() != devices || table.network_features.size() != networks)
    return wrong_table(table, "there are not as many latencies or networks as there are names");
  for (const auto& row : table.latency_ms)
    if (row.size() != networks)
      return wrong_table(table, "a device has not a latency for each network");
  for (const auto& row : table.network_features)
    if (row.size() != network_feature_names().size())
      return wrong_table(table, "a network has another number of features");
  return {};
}

Status check_values(const NetworkTable& table) {
  for (std::size_t i = 0; i < table.latency_ms.size(); ++i) {
    const auto& row = table.latency_ms[i];
    if (std::ranges::none_of(row, is_known)) {
      return wrong_table(
          table, fmt::format("nothing was measured on the device '{}'", table.devices.devices[i]));
    }
    if (std::ranges::any_of(row, [](double ms) { return ms <= 0 || std::isinf(ms); })) {
      return wrong_table(table,
                         fmt::format("a latency of the device '{}' is not positive and finite",
                                     table.devices.devices[i]));
    }
  }
  for (std::size_t i = 0; i < table.networks.size(); ++i) {
    if (std::ranges::none_of(table.latency_ms, [&](const auto& row) { return is_known(row[i]); }))
      return wrong_table(table,
                         fmt::format("the network '{}' was measured nowhere", table.networks[i]));
  }
  return {};
}

Matrix logarithms(const NetworkTable& table) {
  Matrix logs(table.latency_ms.size(), table.networks.size());
  for (Index i = 0; i < logs.rows(); ++i)
    for (Index j = 0; j < logs.cols(); ++j)
      logs(i, j) =
          std::log(table.latency_ms[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
  return logs;
}

/// A first guess of what was not measured: the network's mean and the device's slowness.
Matrix filled_by_means(const Matrix& logs) {
  Vector networks = Vector::Zero(logs.cols());
  Vector devices = Vector::Zero(logs.rows());
  for (int round = 0; round < 3; ++round) {
    for (Index j = 0; j < logs.cols(); ++j) {
      double sum = 0;
      int known = 0;
      for (Index i = 0; i < logs.rows(); ++i)
        if (is_known(logs(i, j))) sum += logs(i, j) - devices[i], ++known;
      networks[j] = sum / known;
    }
    for (Index i = 0; i < logs.rows(); ++i) {
      double sum = 0;
      int known = 0;
      for (Index j = 0; j < logs.cols(); ++j)
        if (is_known(logs(i, j))) sum += logs(i, j) - networks[j], ++known;
      devices[i] = sum / known;
    }
  }
  Matrix filled = logs;
  for (Index i = 0; i < logs.rows(); ++i)
    for (Index j = 0; j < logs.cols(); ++j)
      if (!is_known(logs(i, j))) filled(i, j) = devices[i] + networks[j];
  return filled;
}

Vector vector_of(std::span<const double> values) {
  return Eigen::Map<const Vector>(values.data(), static_cast<Index>(values.size()));
}

double correlation(const Vector& a, const Vector& b, double length) {
  return std::exp(-(a - b).squaredNorm() / (2 * length * length));
}

/// How much networks have in common, judged by their features alone.
class NetworkKinship {
 public:
  /// `features` has a row for each known network.
  NetworkKinship(const std::vector<std::vector<double>>& features, double length, double nugget);

  /// Between 0 and 1 for each two of the known networks.
  const Matrix& correlations() const { return correlations_; }

  /// A network as a weighted sum of known ones (of logarithms of latencies): weights add up to 1,
  /// and to the network's own size and int8 share where the known ones allow it.
  struct Composition {
    Vector weights;
    double rest = 0;  ///< variance that is left, relative to that of networks like no other
  };
  Composition compose(std::span<const double> network) const;

 private:
  Vector trend_of(std::span<const double> network) const;

  double length_;
  double nugget_;
  Vector mean_;
  Vector inverse_spread_;
  Matrix networks_;  // standardised, a row for each
  Matrix trends_;    // what all devices agree on: a constant, the sizes
  Matrix correlations_;
  Matrix inverse_;  // of the correlations with the nugget
  Matrix trend_inverse_;
};

NetworkKinship::NetworkKinship(const std::vector<std::vector<double>>& features, double length,
                               double nugget)
    : length_(length), nugget_(nugget) {
  const auto count = static_cast<Index>(features.size());
  Matrix raw(count, features.front().size());
  for (Index i = 0; i < count; ++i)
    raw.row(i) = vector_of(features[static_cast<std::size_t>(i)]).transpose();
  mean_ = raw.colwise().mean();
  const Matrix centred = raw.rowwise() - mean_.transpose();
  inverse_spread_ = (centred.colwise().squaredNorm().transpose() / static_cast<double>(count))
                        .unaryExpr([](double variance) {
                          return variance > 1e-12 ? 1 / std::sqrt(variance) : 0.0;
                        });
  networks_ = centred * inverse_spread_.asDiagonal();
  correlations_.resize(count, count);
  for (Index i = 0; i < count; ++i)
    for (Index j = 0; j < count; ++j)
      correlations_(i, j) = correlation(networks_.row(i), networks_.row(j), length_);
  trends_.resize(count, 3);
  for (Index i = 0; i < count; ++i)
    trends_.row(i) = trend_of(features[static_cast<std::size_t>(i)]).transpose();
  const Matrix with_nugget = correlations_ + nugget_ * Matrix::Identity(count, count);
  inverse_ = with_nugget.ldlt().solve(Matrix::Identity(count, count));
  const Matrix information =
      trends_.transpose() * inverse_ * trends_ + 1e-6 * Matrix::Identity(3, 3);
  trend_inverse_ = information.ldlt().solve(Matrix::Identity(3, 3));
}

/// A constant, the logarithm of all operations and the last feature, the share of int8.
Vector NetworkKinship::trend_of(std::span<const double> network) const {
  double operations = 1;
  for (const std::size_t flops : {0, 4, 8}) operations += std::expm1(network[flops]);
  return Eigen::Vector3d(1, std::log(operations) - 13, network.back());
}

NetworkKinship::Composition NetworkKinship::compose(std::span<const double> network) const {
  const Vector place = (vector_of(network) - mean_).cwiseProduct(inverse_spread_);
  Vector near(networks_.rows());
  for (Index i = 0; i < near.size(); ++i) near[i] = correlation(networks_.row(i), place, length_);
  const Vector trend_error = trend_of(network) - trends_.transpose() * (inverse_ * near);
  const Vector from_trend = trend_inverse_ * trend_error;
  return {
      .weights = inverse_ * (near + trends_ * from_trend),
      .rest = std::max(0.0, 1 + nugget_ - near.dot(inverse_ * near) + trend_error.dot(from_trend))};
}

/// A row of inputs for each device, with a 1 in front.
Result<Matrix> scaled_inputs(const FeatureScaling& scaling, const DeviceFeatures& devices) {
  FLEETFIT_ASSIGN(const auto rows, scaling.scale(devices));
  const auto width = static_cast<Index>(scaling.inputs());
  Matrix inputs(devices.devices.size(), width + 1);
  inputs.col(0).setOnes();
  for (Index i = 0; i < inputs.rows(); ++i)
    for (Index j = 0; j < width; ++j)
      inputs(i, j + 1) = rows[static_cast<std::size_t>(i * width + j)];
  return inputs;
}

/// A normal distribution after some of its numbers became known.
struct Conditional {
  Vector mean;
  Matrix covariance;
};

Conditional condition(const Vector& mean, const Matrix& covariance, const Places& places,
                      const Vector& values, double error) {
  if (places.empty()) return {mean, covariance};
  Matrix known = covariance(places, places);
  known.diagonal().array() += error * error;
  const auto solver = known.ldlt();
  const Matrix gain = solver.solve(covariance(places, Eigen::all));
  const Vector off = values - mean(places);
  return {mean + gain.transpose() * off, covariance - covariance(Eigen::all, places) * gain};
}

/// What was measured of a device, and where.
struct Known {
  Places places;
  Vector values;
};

Known known_of(const Matrix& logs, Index device) {
  Known known;
  for (Index j = 0; j < logs.cols(); ++j)
    if (is_known(logs(device, j))) known.places.push_back(j);
  known.values = logs.row(device)(known.places).transpose();
  return known;
}

NetworkPrediction prediction_of(double log_mean, double variance) {
  const double reach = kNineOfTen * std::sqrt(std::max(0.0, variance));
  return {.latency_ms = std::exp(log_mean),
          .low_ms = std::exp(log_mean - reach),
          .high_ms = std::exp(log_mean + reach)};
}

}  // namespace

struct NetworkLatencyModel::Parts {
  NetworkLatencyOptions options;
  std::vector<std::string> networks;
  std::optional<FeatureScaling> scaling;
  std::optional<NetworkKinship> kinship;
  Matrix weights = {};     // inputs of a device by networks
  Matrix covariance = {};  // of networks, given the device's features
  double composed = 0;     // variance of a network that is composed of others, by its `rest`

  /// Explains by features, and learns from the rest what goes together.
  void learn(const Matrix& inputs, const Matrix& logs) {
    const auto devices = static_cast<double>(logs.rows());
    Matrix gram = inputs.transpose() * inputs;
    gram.diagonal().array() += options.device_ridge;
    gram(0, 0) -= options.device_ridge;
    weights = gram.ldlt().solve(inputs.transpose() * logs);
    const Matrix rest = logs - inputs * weights;
    const Matrix seen = rest.transpose() * rest / devices;
    const double common = seen.mean();
    const double peculiar = seen.diagonal().mean() - common;
    const auto count = logs.cols();
    const Matrix expected =
        Matrix::Constant(count, count, common) +
        peculiar / 2 * (kinship->correlations() + Matrix::Identity(count, count));
    covariance = (1 - options.shrinkage) * seen + options.shrinkage * expected;
    covariance.diagonal().array() += options.measurement_error * options.measurement_error;
  }

  /// Composes each network of the others and looks how far that is from the truth.
  void learn_composing(const NetworkTable& table, const Matrix& logs) {
    double sum = 0;
    for (Index network = 0; network < logs.cols(); ++network) {
      auto others = table.network_features;
      others.erase(others.begin() + network);
      const NetworkKinship rest(others, options.network_length, options.network_nugget);
      const auto made = rest.compose(table.network_features[static_cast<std::size_t>(network)]);
      Vector shares(logs.cols());
      shares << made.weights.head(network), 0, made.weights.tail(logs.cols() - network - 1);
      const Vector errors = logs.col(network) - logs * shares;
      sum += errors.squaredNorm() / made.rest;
    }
    composed = sum / static_cast<double>(logs.size());
  }

  void fill_in(const Matrix& inputs, const Matrix& logs, Matrix& filled) const {
    for (Index i = 0; i < logs.rows(); ++i) {
      const auto known = known_of(logs, i);
      if (known.places.size() == static_cast<std::size_t>(logs.cols())) continue;
      const Vector mean = (inputs.row(i) * weights).transpose();
      filled.row(i) = condition(mean, covariance, known.places, known.values, 0).mean.transpose();
      filled.row(i)(known.places) = known.values.transpose();
    }
  }
};

struct NetworkLatencyModel::Posterior : Conditional {};

NetworkLatencyModel::NetworkLatencyModel(std::unique_ptr<const Parts> parts)
    : parts_(std::move(parts)) {}
NetworkLatencyModel::NetworkLatencyModel(NetworkLatencyModel&&) noexcept = default;
NetworkLatencyModel& NetworkLatencyModel::operator=(NetworkLatencyModel&&) noexcept = default;
NetworkLatencyModel::~NetworkLatencyModel() = default;

Result<NetworkLatencyModel> NetworkLatencyModel::fit(const NetworkTable& table,
                                                     const NetworkLatencyOptions& options) {
  FLEETFIT_TRY(check_sizes(table));
  FLEETFIT_TRY(check_values(table));
  FLEETFIT_ASSIGN(auto scaling, FeatureScaling::fit(table.devices));
  FLEETFIT_ASSIGN(const auto inputs, scaled_inputs(scaling, table.devices));
  auto parts = std::make_unique<Parts>(Parts{.options = options,
                                             .networks = table.networks,
                                             .scaling = std::move(scaling),
                                             .kinship = std::nullopt});
  parts->kinship.emplace(table.network_features, options.network_length, options.network_nugget);
  const Matrix logs = logarithms(table);
  Matrix filled = filled_by_means(logs);
  parts->learn(inputs, filled);
  for (int round = 1; round < options.rounds; ++round) {
    parts->fill_in(inputs, logs, filled);
    parts->learn(inputs, filled);
  }
  parts->learn_composing(table, filled);
  return NetworkLatencyModel(std::move(parts));
}

std::span<const std::string> NetworkLatencyModel::networks() const { return parts_->networks; }

std::vector<std::size_t> NetworkLatencyModel::best_references(std::size_t count) const {
  Matrix left = parts_->covariance;
  const double error = parts_->options.measurement_error * parts_->options.measurement_error;
  std::vector<std::size_t> chosen;
  count = std::min(count, parts_->networks.size());
  while (chosen.size() < count) {
    // How much variance of all networks together each one would take away.
    Vector gains =
        left.colwise().squaredNorm().transpose().array() / (left.diagonal().array() + error);
    for (const auto network : chosen) gains[static_cast<Index>(network)] = -1;
    Index best = 0;
    gains.maxCoeff(&best);
    chosen.push_back(static_cast<std::size_t>(best));
    const Vector column = left.col(best);
    left -= column * column.transpose() / (column[best] + error);
  }
  return chosen;
}

Result<NetworkLatencyModel::Posterior> NetworkLatencyModel::posterior(
    const DeviceFeatures& devices, std::size_t device,
    std::span<const NetworkReference> references) const {
  FLEETFIT_ASSIGN(const auto row, parts_->scaling->row_of(devices, device));
  std::vector<double> inputs(parts_->scaling->inputs());
  parts_->scaling->scale(row, inputs);
  Vector mean = parts_->weights.row(0).transpose();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    mean += inputs[i] * parts_->weights.row(static_cast<Index>(i + 1)).transpose();
  Places places;
  Vector values(references.size());
  for (const auto& reference : references) {
    const auto place = static_cast<Index>(reference.network);
    if (reference.network >= parts_->networks.size())
      return refuse("a reference is none of the model's networks");
    const auto& name = parts_->networks[reference.network];
    if (std::ranges::count(places, place) > 0)
      return refuse(fmt::format("the reference '{}' is there twice", name));
    if (!(reference.latency_ms > 0) || std::isinf(reference.latency_ms)) {
      return refuse(fmt::format("the latency of the reference '{}' is not positive", name));
    }
    values[static_cast<Index>(places.size())] = std::log(reference.latency_ms);
    places.push_back(place);
  }
  return Posterior{
      condition(mean, parts_->covariance, places, values, parts_->options.measurement_error)};
}

Result<std::vector<NetworkPrediction>> NetworkLatencyModel::predict(
    const DeviceFeatures& devices, std::size_t device,
    std::span<const NetworkReference> references) const {
  FLEETFIT_ASSIGN(const auto expected, posterior(devices, device, references));
  std::vector<NetworkPrediction> predictions;
  for (Index i = 0; i < expected.mean.size(); ++i)
    predictions.push_back(prediction_of(expected.mean[i], expected.covariance(i, i)));
  return predictions;
}

Result<NetworkPrediction> NetworkLatencyModel::predict_unseen(
    const DeviceFeatures& devices, std::size_t device, std::span<const NetworkReference> references,
    std::span<const double> network) const {
  if (network.size() != network_feature_names().size())
    return refuse("the network has another number of features");
  FLEETFIT_ASSIGN(const auto expected, posterior(devices, device, references));
  const auto composition = parts_->kinship->compose(network);
  const auto& weights = composition.weights;
  return prediction_of(weights.dot(expected.mean), weights.dot(expected.covariance * weights) +
                                                       parts_->composed * composition.rest);
}

}  // namespace fleetfit::learned
