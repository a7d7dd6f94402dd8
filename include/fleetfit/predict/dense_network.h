#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "fleetfit/predict/network_parts.h"
#include "fleetfit/predict/regressor.h"

namespace fleetfit::predict {

/// A multi-layer perceptron at work: dense layers with ReLU between them. `fleetfit-train mlp`
/// trains it; docs/formats/mlp.md describes its JSON, of type "mlp".
class DenseNetwork final : public Regressor {
 public:
  struct Parts {
    InputScaling inputs;
    std::vector<DenseLayer> layers;  ///< each takes what the one before gives; the last gives 1
    OutputScaling output;
  };

  /// Fails with `invalid_input`, naming the part, if sizes do not fit together or a number is not
  /// finite.
  static Result<DenseNetwork> make(Parts parts);

  static Result<std::unique_ptr<Regressor>> from_json(const core::JsonView& json,
                                                      std::size_t features);

  DenseNetwork(DenseNetwork&&) noexcept;
  DenseNetwork& operator=(DenseNetwork&&) noexcept;
  ~DenseNetwork() override;

  std::size_t features() const override;
  void predict(const MatrixView& rows, std::span<double> out) const override;

  nlohmann::json to_json() const override;

  const Parts& parts() const;

 private:
  struct Packed;
  explicit DenseNetwork(Parts parts);

  Parts parts_;
  std::unique_ptr<const Packed> packed_;
};
core::Fields fields_of(const DenseNetwork::Parts*);

struct MlpOptions {
  std::optional<double> budget_s = {};  ///< for all sets; none: as long as it takes
  std::optional<int> trials = {};       ///< settings to try; none: what fleetfit-train thinks best
  std::stop_token stop = {};            ///< the best network so far is then taken
};

/// Fits multi-layer perceptrons, which the program `fleetfit-train` beside the running one does,
/// started once for all sets; fails with `not_found` if it is not installed and with `cancelled` if
/// it was stopped before each set had a network. Safe to call from many threads.
FitRegressors fit_mlp(MlpOptions options);

}  // namespace fleetfit::predict
