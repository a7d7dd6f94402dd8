#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/predict/network_parts.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/space.h"

namespace fleetfit::learned {

/// From a device and a goal to designs. A decoder takes gene after gene, each knowing the choices
/// before it, so that genes fit together; inactive genes are passed over, so that every design is
/// one of its space. Immutable; safe to use from many threads.
///
///   state = context(inputs)
///   for each active gene: logits = out(relu(hidden(relu(state + place)))), state += choices[taken]
class OptimizerNetwork {
 public:
  struct Gene {
    predict::DenseLayer place = {};    ///< 1 x width; only its bias counts, the weights are 0
    predict::DenseLayer choices = {};  ///< choices x width: what a choice adds to the state
    predict::DenseLayer out = {};      ///< width x choices
  };
  struct Parts {
    std::vector<predict::DenseLayer> context = {};  ///< with ReLU between them
    predict::DenseLayer hidden = {};                ///< width x width
    std::vector<Gene> genes = {};
  };

  /// Fails with `invalid_input`, naming the part, if sizes do not fit together or to the space, or
  /// a number is not finite.
  static Result<OptimizerNetwork> make(Parts parts, const space::Space& space, std::size_t inputs);

  std::size_t inputs() const { return parts_.context.front().inputs; }
  std::size_t width() const { return parts_.hidden.inputs; }
  const Parts& parts() const { return parts_; }

  /// Adds the likeliest designs, found by keeping the `beam` best beginnings; the likeliest first.
  void propose(const space::Space& space, std::span<const float> inputs, std::size_t beam,
               space::Population& designs) const;

 private:
  explicit OptimizerNetwork(Parts parts) : parts_(std::move(parts)) {}
  std::vector<float> context_of(std::span<const float> inputs) const;
  void logits_of(std::size_t gene, std::span<const float> state, std::span<float> out,
                 std::vector<float>& scratch) const;

  Parts parts_;
};
core::Fields fields_of(const OptimizerNetwork::Gene*);
core::Fields fields_of(const OptimizerNetwork::Parts*);

}  // namespace fleetfit::learned
