#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/predict/network_parts.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/space.h"

namespace fleetfit::learned {

/// Which columns are 1 for a design: those of the encoding "one-hot" and, where networks of the
/// space can have dead paths, behind them those of "live", so that a runtime that removes dead
/// paths and one that does not can both be predicted. Immutable; safe to use from many threads.
class DesignColumns {
 public:
  /// The space must outlive it.
  explicit DesignColumns(const space::Space& space);

  const space::Space& space() const { return *space_; }
  std::size_t count() const { return width_ * (tells_live_ ? 2 : 1); }

  /// How many columns of a design can be 1 at most.
  std::size_t most_taken() const { return (space_->slots().size() + 1) * (tells_live_ ? 2 : 1); }

  /// Writes their numbers into `out`, which has room for `most_taken()`; gives their number.
  std::size_t taken(space::Design design, std::span<std::uint32_t> out) const;

 private:
  const space::Space* space_;
  std::size_t one_hot_ = 0;
  std::size_t live_ = 0;
  std::size_t width_ = 0;  // columns of one encoding
  bool tells_live_ = false;
};

/// A small dense network from a design's columns to some numbers: layers with ReLU between them,
/// and a linear layer past them. Immutable; safe to use from many threads.
class DesignNetwork {
 public:
  struct Parts {
    std::vector<predict::DenseLayer> layers = {};
    predict::DenseLayer skip = {};  ///< from the columns to the outputs; added
  };

  /// Fails with `invalid_input`, naming the part, if sizes do not fit together or a number is not
  /// finite.
  static Result<DesignNetwork> make(Parts parts, std::size_t columns);

  std::size_t outputs() const { return parts_.skip.outputs; }
  const Parts& parts() const { return parts_; }

  /// `out` has room for `outputs()`; `scratch` is only kept to save its memory.
  void apply(std::span<const std::uint32_t> taken, std::span<float> out,
             std::vector<float>& scratch) const;

 private:
  explicit DesignNetwork(Parts parts);

  Parts parts_;
  std::size_t widest_ = 0;
};

core::Fields fields_of(const DesignNetwork::Parts*);

/// out += row x weights + bias of a layer whose weights lie input by input.
void add_dense(const predict::DenseLayer& layer, std::span<const float> row, std::span<float> out);

/// Fails with `invalid_input`, naming it, if the layer has not these sizes or a number is not
/// finite.
Status check_layer(const predict::DenseLayer& layer, std::size_t inputs, std::size_t outputs,
                   const std::string& name);

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
