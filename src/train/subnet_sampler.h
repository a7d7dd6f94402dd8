#pragma once

#include <cstddef>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"

namespace fleetfit::train {

/// A way through a supernet: its branches in the order of execution.
using SubnetPath = std::vector<elastic::BranchId>;

/// Draws subnets of a supernet by what they cost. Costs are multiply-accumulates, as a share of the
/// original's.
class SubnetSampler {
 public:
  /// `invalid_input` if the original has no multiply-accumulates.
  static Result<SubnetSampler> create(const elastic::Supernet& supernet);

  double share(const SubnetPath& path) const;

  /// Of the cheapest and of the dearest subnet.
  double least_share() const { return least_; }
  double most_share() const { return most_; }

  SubnetPath original() const;

  /// Whether nothing but the original is on the path.
  static bool is_original(const SubnetPath& path);

  /// Every subnet alike.
  SubnetPath draw(core::Random& random) const { return draw_tilted(0, random); }

  /// As random as can be with this share on average.
  SubnetPath draw_near(double share, core::Random& random) const;

  /// `count` subnets from the cheapest to the dearest, their shares spread evenly.
  std::vector<SubnetPath> draw_spread(std::size_t count, core::Random& random) const;

 private:
  struct Way {
    std::size_t span = 1;
    double share = 0;
  };
  /// What lies behind a block when a way's probability is proportional to exp(tilt x share).
  struct Ahead {
    std::vector<double> log_ways;  // of each block; at the end 0
    double mean_share = 0;
  };

  SubnetPath draw_tilted(double tilt, core::Random& random) const;
  Ahead look_ahead(double tilt) const;
  double tilt_for(double share) const;

  std::vector<std::vector<Way>> ways_;  // by block and branch
  double least_ = 0;
  double most_ = 0;
};

}  // namespace fleetfit::train
