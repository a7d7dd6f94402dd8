#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/predict/kernel_predictor.h"

/// Devices that exist on paper: their prices follow from a specification. Useful before a device
/// can be had, and to make fleets of as many devices as a study needs.
namespace fleetfit::predict {

/// What a data sheet says, or `fleetfit device probe` measures.
struct RooflineSpecification {
  double gflops = 100;         ///< 10^9 floating-point operations per second that can be reached
  double gbytes_per_s = 10;    ///< to and from memory
  double kernel_us = 5;        ///< to start a kernel
  double network_ms = 0;       ///< to start a network
  double bytes_per_value = 4;  ///< 1 for 8 bits
  double spread90 = 0.7;       ///< nine of ten prices are off by at most exp(this); 0: exact
  /// The share of `gflops` that kernels of a kind reach, from above 0 to 1; 1 for those not here.
  std::map<std::string, double> efficiency = {};
};
core::Fields fields_of(const RooflineSpecification*);

/// An accelerator that computes convolutions tile by tile. While one tile is computed the next is
/// loaded and the last one stored.
struct AcceleratorSpecification {
  int output_tile = 160;     ///< output channels at a time, T_m
  int input_tile = 12;       ///< input channels at a time, T_n
  int depthwise_tile = 576;  ///< channels at a time of depthwise convolutions, T_m(d)
  int input_ports = 10;      ///< values per cycle, I_p
  int output_ports = 10;     ///< O_p
  int weight_ports = 10;     ///< W_p
  int row_tile = 13;         ///< output rows and columns at a time
  int column_tile = 13;
  double mhz = 100;
  double kernel_us = 0;   ///< to start a kernel
  double network_ms = 0;  ///< to start a network
  double spread90 = 0;    ///< nine of ten prices are off by at most exp(this); 0: exact
};
core::Fields fields_of(const AcceleratorSpecification*);

/// A device of which only the specification is there.
template <class Specification>
class PaperDevice final : public KernelPredictor {
 public:
  /// Fails with `invalid_input`, naming the field, on a tile, port or rate that is not positive, a
  /// time that is negative, or a number that is not finite.
  static Result<PaperDevice> build(Identity identity, Specification specification);

  const Specification& specification() const { return specification_; }
  const Identity& identity() const override { return identity_; }
  Result<NetworkPrice> price(std::span<const cost::KernelFeatures> kernels) const override;
  nlohmann::json to_json() const override;

  static Result<std::unique_ptr<KernelPredictor>> from_json(const core::JsonView& json,
                                                            Identity identity);

 private:
  PaperDevice(Identity identity, Specification specification)
      : identity_(std::move(identity)), specification_(std::move(specification)) {}

  Identity identity_;
  Specification specification_;
};
extern template class PaperDevice<RooflineSpecification>;
extern template class PaperDevice<AcceleratorSpecification>;

/// Every kernel takes the time of its arithmetic or that of its memory traffic, whichever is
/// longer, and that of its start.
using RooflineDevice = PaperDevice<RooflineSpecification>;

/// Cycles of a convolution with loops over tiles of rows, columns, output and input channels:
/// a tile takes max(arithmetic, loading inputs, loading weights), an output tile
/// max(all its input tiles, storing it), where every multiplier of the array works each cycle.
/// Groups are computed one after the other, channels of a depthwise convolution
/// `depthwise_tile` at a time. Dense layers are convolutions of one pixel. All else moves its data
/// through the ports.
using TiledAccelerator = PaperDevice<AcceleratorSpecification>;

/// The nine configurations of a Xilinx ZCU102 of the literature on proxy devices, in its order.
std::vector<AcceleratorSpecification> zcu102_accelerators();

}  // namespace fleetfit::predict
