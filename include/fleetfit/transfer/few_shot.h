#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/source.h"
#include "fleetfit/space/table.h"

/// Few-shot transfer: all known devices of a table help to predict a new one from a handful of
/// measurements, and say which designs to measure. docs/fewshot.md says how.
namespace fleetfit::transfer {

/// A latency on the target, with the range in which a measurement lies nine times out of ten.
struct PredictedLatency {
  double ms = 0;
  double low_ms = 0;
  double high_ms = 0;
};

/// How good a model is, judged by its own uncertainty without further measurements.
struct FewShotVerdict {
  double expected_srcc = 0;  ///< rank correlation to expect between predictions and measurements
  /// The highest that any predictor can reach, as measurements of one design differ from each
  /// other, and are rounded.
  double ceiling = 0;
  /// Deviation of a measurement from the device's true latency at the median design, in ms.
  double noise_ms = 0;
  bool enough = false;  ///< further measurements would hardly bring it closer to the ceiling
};

struct FewShotOptions {
  std::uint64_t seed = 1;               ///< of all random choices, and for ties
  std::size_t reference_samples = 900;  ///< designs of each reference to learn from, by chance
  std::size_t candidates = 1000;        ///< designs to choose from, by chance, if there are more
  double tolerance = 0.01;              ///< distance from the ceiling that is enough
};

class KnownDevices;
struct FewShotLessons;  ///< what the references teach; private

/// Latencies of all designs of a space on one device. Immutable; safe to use from many threads.
class FewShotModel final : public space::Source {
 public:
  ~FewShotModel() override;

  /// Milliseconds, always positive; never fails.
  Status evaluate(space::DesignBatch designs, std::span<double> out) const override;

  /// The same with ranges; `out` has room for just the designs.
  void predict(space::DesignBatch designs, std::span<PredictedLatency> out) const;

  const FewShotVerdict& verdict() const;

  /// Which of `candidates` to measure next: at most `count` places in it, the most useful first.
  std::vector<std::size_t> next(space::DesignBatch candidates, std::size_t count) const;

 private:
  friend class KnownDevices;
  struct Parts;
  explicit FewShotModel(std::unique_ptr<const Parts> parts);

  std::unique_ptr<const Parts> parts_;
};

/// What devices whose latencies are known teach about any other device. Immutable; safe to use from
/// many threads.
class KnownDevices {
 public:
  /// `references` are columns of the table. Fails with `invalid_input`, naming the column, if there
  /// is none, if one stands there twice, has too few measured designs or equal latencies only.
  static Result<KnownDevices> learn(const space::DesignTable& table,
                                    std::span<const std::size_t> references,
                                    const FewShotOptions& options = {});

  KnownDevices(KnownDevices&& other) noexcept;
  KnownDevices& operator=(KnownDevices&& other) noexcept;
  ~KnownDevices();

  /// Which of `candidates` to measure on a new device: at most `count` places in it, the most
  /// useful first.
  std::vector<std::size_t> choose(space::DesignBatch candidates, std::size_t count) const;

  /// A model of the device on which these designs took these milliseconds. Single outliers are
  /// borne; of more than 400 designs 400 are used, by chance. Fails with `invalid_input` on fewer
  /// than three designs, on a latency that is not positive and finite, and if all are equal.
  Result<std::unique_ptr<const FewShotModel>> fit(space::DesignBatch designs,
                                                  std::span<const double> latencies_ms) const;

 private:
  explicit KnownDevices(std::shared_ptr<const FewShotLessons> lessons);
  Result<std::unique_ptr<const FewShotModel>> fit_some(space::DesignBatch designs,
                                                       std::span<const double> latencies_ms) const;

  std::shared_ptr<const FewShotLessons> lessons_;  // shared with the models that were fitted
};

}  // namespace fleetfit::transfer
