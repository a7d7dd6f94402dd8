#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/learned/device_inputs.h"
#include "fleetfit/learned/networks.h"
#include "fleetfit/space/source.h"
#include "fleetfit/space/space.h"

/// Learning to optimize: networks that predict what a design costs on a device that was never
/// measured as a whole, how accurate it is, and which design is best there; docs/learning.md.
namespace fleetfit::learned {

inline constexpr std::size_t kMostCosts = 2;  ///< latency, and energy if it was learned

/// One network of an ensemble for a cost. Its first output is the cost on a typical device, the
/// others say how that changes with each of the device's inputs.
struct CostMember {
  DesignNetwork network;
  std::vector<float> typical = {};  ///< its outputs' means over random designs
};

/// How likely a limit is broken, and what that counts. Learned in a rehearsal with devices that
/// were taken as new.
struct Risk {
  /// By how many times the spread true costs exceeded predicted ones: quantiles at even steps from
  /// the smallest to the largest. Empty: not known, then the margin decides what keeps a limit.
  std::vector<double> excess = {};
  /// What a limit that is broken for sure counts against a design, in the unit of accuracy.
  double price = 0;

  bool is_known() const { return !excess.empty(); }
  /// The chance that a cost exceeds the predicted one by more than `room` times the spread.
  double chance(double room) const;
  /// The inverse.
  double room(double chance) const;
};
core::Fields fields_of(const Risk*);

/// ln of a cost = the device's level + offset + scale x number.
struct CostModel {
  std::string name = {};  ///< "latency_ms", "energy_mj"
  double offset = 0;
  double scale = 1;
  /// How many times the spread is added to ln of the cost, so that nine of ten designs that are
  /// chosen keep a limit on devices that were not learned from.
  double margin = 0;
  Risk risk = {};
  double noise = 0.015;         ///< counts beside the spread: what no network can know
  double usual_spread = 0.01;   ///< of the members, in ln, on devices not learned from: the median
  double rank_correlation = 0;  ///< mean over known devices, by members that had not seen them
  std::vector<CostMember> members = {};
};
core::Fields fields_of(const CostModel*);

/// Accuracy = centre + scale x sinh(number): keeps the good designs apart, and the bad ones from
/// spoiling the scale.
struct AccuracyModel {
  double centre = 0;
  double scale = 1;
  double spread90 = 1;  ///< the range of the middle nine tenths of designs, in points
  std::vector<DesignNetwork> members = {};

  double of(double number) const;
};
core::Fields fields_of(const AccuracyModel*);

/// What it was learned from.
struct Lineage {
  std::string method = {};  ///< "supervised", "unsupervised", "" without an optimizer network
  std::vector<std::string> devices = {};
  std::size_t designs = 0;
  std::uint64_t seed = 0;
};
core::Fields fields_of(const Lineage*);

/// A design on a device, as the networks see it.
struct Judged {
  double accuracy = 0;
  double accuracy_spread = 0;
  std::array<double, kMostCosts> log_cost = {};
  std::array<double, kMostCosts> spread = {};  ///< of the members, in ln
};

/// All of it. Immutable but for `remember_designs`; safe to use from many threads.
class Model {
 public:
  struct Parts {
    const space::Space* space = nullptr;
    DeviceInputs device;
    std::vector<CostModel> costs = {};  ///< latency first
    AccuracyModel accuracy = {};
    std::vector<OptimizerNetwork> optimizers = {};
    Lineage lineage = {};
  };

  /// Fails with `invalid_input`, naming the part, if the parts do not fit together.
  static Result<Model> make(Parts parts);

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const space::Space& space() const { return *parts_.space; }
  const Parts& parts() const { return parts_; }
  const DesignColumns& columns() const { return columns_; }

  /// Numbers of a design that do not depend on the device: accuracy and its spread, then the
  /// outputs of each cost's members.
  std::size_t row_size() const { return row_size_; }
  void describe(space::DesignBatch designs, std::span<float> rows) const;

  /// Describes all designs of a small space once, which makes answers quicker; nothing happens in a
  /// space of more than `most`. To be called before others use it.
  void remember_designs(core::ThreadPool& pool, std::uint64_t most = 100'000);

  /// What an optimizer network takes besides the device: see `goal_inputs`.
  std::size_t optimizer_inputs() const { return optimizer_inputs(parts_); }
  static std::size_t optimizer_inputs(const Parts& parts);

 private:
  struct Remembered;
  explicit Model(Parts parts);

  Parts parts_;
  DesignColumns columns_;
  std::size_t row_size_ = 0;
  std::unique_ptr<const Remembered> remembered_;
};

/// The designs of a space on one device. Borrows the model; safe to use from many threads.
class DeviceJudge {
 public:
  DeviceJudge(const Model& model, DeviceVector device);

  const Model& model() const { return *model_; }
  const DeviceVector& device() const { return device_; }

  void judge(space::DesignBatch designs, std::span<Judged> out) const;

  /// The same from what `Model::describe` gave.
  Judged judge_row(std::span<const float> row) const;

  /// ln of the cost of a typical design, and the members' spread there.
  double typical(std::size_t cost) const { return typical_[cost]; }
  double typical_spread(std::size_t cost) const { return typical_spread_[cost]; }

  /// ln of the cost that nine of ten designs like it will not exceed.
  double safe(const Judged& judged, std::size_t cost) const;

  /// The chance that the true cost of the design is above a limit, given as ln.
  double risk(const Judged& judged, std::size_t cost, double log_limit) const;

  /// ln of the lowest limit with no more than that risk; `safe` if the risk is not known.
  double bound(const Judged& judged, std::size_t cost, double most_risk) const;

 private:
  double whole_spread(const Judged& judged, std::size_t cost) const;

  const Model* model_;
  DeviceVector device_;
  std::array<double, kMostCosts> typical_ = {};
  std::array<double, kMostCosts> typical_spread_ = {};
};

/// What is wanted: the best accuracy within limits, less the price of the risk that they are
/// broken, or, with weights, the least of
///   -accuracy / spread90 + sum of weight x cost / typical cost of the device.
struct Goal {
  std::vector<double> limits = {};   ///< of each cost; infinite: none
  std::vector<double> weights = {};  ///< of each cost; empty: limits count
  double most_risk = 0.5;  ///< that a limit is broken; more is taken only if all have more
};

/// `invalid_input`, naming the cost, on a limit or weight that cannot be.
Status check(const Goal& goal, const Model& model);

/// Device and goal as optimizer networks take them.
std::vector<float> optimizer_inputs(const DeviceJudge& judge, const Goal& goal);

/// How good a design is for a goal; smaller is better.
struct Fitness {
  double violation = 0;  ///< by how much more the limits would have to be, in ln
  double loss = 0;

  auto operator<=>(const Fitness&) const = default;
};
Fitness fitness(const DeviceJudge& judge, const Goal& goal, const Judged& judged);

/// docs/formats/learned.md. Reading checks everything; errors are `invalid_input` and name file and
/// place.
Status write_model(const Model& model, const std::filesystem::path& file);
Result<Model> read_model(const std::filesystem::path& file);
nlohmann::json to_json(const Model& model);
Result<Model> model_from_json(const core::JsonView& json);

}  // namespace fleetfit::learned
