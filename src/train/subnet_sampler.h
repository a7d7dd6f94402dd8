#pragma once

#include <cstddef>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"

namespace fleetfit::train {

/// A way through a supernet: its branches in the order of execution.
using SubnetPath = std::vector<elastic::BranchId>;

/// Draws subnets of a supernet by what they cost: half by multiply-accumulates, half by the number
/// of layers that have any, each as a share of the original's. Small networks take as long as they
/// are deep, large ones as long as they multiply.
class SubnetSampler {
 public:
  /// `invalid_input` if the original has no multiply-accumulates.
  static Result<SubnetSampler> create(const elastic::Supernet& supernet);

  /// Multiply-accumulates, as a share of the original's.
  double mac_share(const SubnetPath& path) const;
  double cost(const SubnetPath& path) const;

  /// Of the cheapest and of the dearest subnet.
  double least_cost() const { return least_; }
  double most_cost() const { return most_; }

  SubnetPath original() const;

  /// Whether nothing but the original is on the path.
  static bool is_original(const SubnetPath& path);

  /// Every subnet alike.
  SubnetPath draw(core::Random& random) const { return draw_tilted(0, random); }

  /// As random as can be with this cost on average.
  SubnetPath draw_near(double cost, core::Random& random) const;

  /// `count` subnets from the cheapest to the dearest, their costs spread evenly.
  std::vector<SubnetPath> draw_spread(std::size_t count, core::Random& random) const;

 private:
  struct Way {
    std::size_t span = 1;
    double macs = 0;  // shares of the original's
    double layers = 0;
    double cost() const { return (macs + layers) / 2; }
  };
  /// What lies behind a block when a way's probability is proportional to exp(tilt x cost).
  struct Ahead {
    std::vector<double> log_ways;  // of each block; at the end 0
    double mean_cost = 0;
  };

  SubnetPath draw_tilted(double tilt, core::Random& random) const;
  Ahead look_ahead(double tilt) const;
  double tilt_for(double cost) const;

  std::vector<std::vector<Way>> ways_;  // by block and branch
  double least_ = 0;
  double most_ = 0;
};

}  // namespace fleetfit::train
