#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/names.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/predict/kernel_predictor.h"
#include "fleetfit/predict/linear_model.h"
#include "fleetfit/predict/regressor.h"

/// Networks priced as wholes, from a space's encoding of them: for spaces of which only the times
/// of whole networks are known.
namespace fleetfit::predict {

/// How designs are priced: by a model of an encoding, or by a graph network that reads the graph.
enum class DesignMethod : std::uint8_t { automatic, linear, trees, table, graph };

/// "auto", "linear", "trees", "table", "graph".
core::Names names_of(DesignMethod);
using core::to_string;

/// Prices rows of a space's encoding. Immutable; safe to use from many threads.
class NetworkPredictor {
 public:
  struct Parts {
    Identity identity = {};
    std::string space = {};
    std::string encoding = {};  ///< which of the space's
    std::string settings = {};  ///< of the model, for people
    std::unique_ptr<Regressor> model = {};
    double least_ms = 0;  ///< that was measured; no price is below half of it
    double mape = 0;      ///< in percent, of networks that the model did not see
    double spread90 = 0;  ///< nine of ten such prices are off by at most exp(this)
  };

  explicit NetworkPredictor(Parts parts) : parts_(std::move(parts)) {}

  const Identity& identity() const { return parts_.identity; }
  const std::string& space() const { return parts_.space; }
  const std::string& encoding() const { return parts_.encoding; }
  const std::string& settings() const { return parts_.settings; }
  const Regressor& model() const { return *parts_.model; }
  double mape() const { return parts_.mape; }

  /// Milliseconds, positive; rows are as long as the model's.
  void price(const MatrixView& rows, std::span<double> out) const;

  /// Around a price: holds nine of ten networks of the kind that it was trained with.
  core::Interval interval90(double ms) const;

  /// docs/formats/predictor.md, type "network".
  nlohmann::json to_json() const;
  static Result<NetworkPredictor> from_json(const core::JsonView& json);

 private:
  Parts parts_;
};

core::Fields fields_of(const NetworkPredictor::Parts*);

struct NetworkTrainOptions {
  DesignMethod method = DesignMethod::automatic;  ///< not `graph`
  Identity identity = {};                         ///< method, networks and versions are filled in
  std::string space = {};
  std::string encoding = {};
  std::uint64_t seed = 0;
  int folds = 5;
};

/// Fails with `invalid_input`, naming the row, if a latency is not positive or a feature not
/// finite, and if there are fewer than 5 networks.
Result<NetworkPredictor> train_network_predictor(const MatrixView& rows,
                                                 std::span<const double> latency_ms,
                                                 const NetworkTrainOptions& options,
                                                 core::ThreadPool& pool);

/// A latency that is a sum over genes: the table of one-hot linear forms and of look-up tables. The
/// fast way to price populations inside of a search.
class AdditiveTable {
 public:
  /// `ms[g][c]` is what choice c of gene g adds. Fails with `invalid_input`, naming the gene, if it
  /// has no choices or a number is not finite.
  static Result<AdditiveTable> build(double base_ms, const std::vector<std::vector<double>>& ms);

  std::size_t genes() const { return choices_.size(); }

  /// Rows of choices, one for each gene, one after the other; a choice that a gene does not have
  /// counts as its last. `out` has a place for each row.
  void price(std::span<const std::uint16_t> designs, std::span<double> out) const;
  void price(std::span<const std::uint8_t> designs, std::span<double> out) const;

 private:
  template <class Choice>
  void add_up(std::span<const Choice> designs, std::span<double> out) const;

  double base_ms_ = 0;
  std::vector<double> ms_;            // all genes' choices, one after the other
  std::vector<std::uint32_t> first_;  // of each gene in ms_
  std::vector<std::uint32_t> choices_;
};

}  // namespace fleetfit::predict
