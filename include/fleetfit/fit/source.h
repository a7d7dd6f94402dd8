#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/fit/device_fitter.h"
#include "fleetfit/fit/fleet_file.h"
#include "fleetfit/fit/report.h"
#include "fleetfit/space/space.h"

/// Where the designs of a fleet come from. The subnets of an elastic model and the designs of a
/// space are fitted by the same steps; all in which they differ is behind `FitSource`.
namespace fleetfit::fit {

/// The design that devices have before they are fitted.
struct Original {
  std::vector<space::Choice> design = {};
  double accuracy = 0;  ///< NaN: found out later, with that of the others
};

/// What is fitted, and by which measures.
struct Subject {
  std::string about = {};
  std::optional<Original> original = std::nullopt;
  double accuracy_scale = 1;          ///< times this, accuracies are percent
  double least_gain = 0;              ///< of accuracy; less is not worth a measurement
  std::size_t usual_samples = 10;     ///< measurements to learn, if the fleet does not say it
  int devices_at_once = 1;            ///< more than one only where they do not disturb each other
  std::filesystem::path bundle = {};  ///< for self-adaptation of further devices; may be empty
};

/// A device of the fleet as it was found.
struct OpenedDevice {
  std::size_t number = 0;  ///< its place in the fleet file
  FleetDevice written = {};
  std::string name = {};  ///< under which it is measured
  std::string about = {};
  std::string fingerprint = {};  ///< the same for devices that are alike; may be empty

  /// Nothing is measured there: all that is known of it are its latencies, from a file.
  bool is_unmeasured() const { return !written.latency.empty(); }
};

/// A device in the middle of a fit.
struct FittingDevice {
  OpenedDevice opened = {};
  std::unique_ptr<Prober> prober = {};
  std::unique_ptr<DeviceFitter> fitter = {};  ///< none until it is measured
  FittedDevice unmeasured = {};               ///< what was found without a fitter
  bool gave_up = false;                       ///< the reason is in what was found
  double seconds = 0;                         ///< that steps have taken in this run

  const FittedDevice& found() const { return fitter ? fitter->device() : unmeasured; }
  bool goes_on() const { return !gave_up && (!fitter || fitter->is_open()); }
};

/// What is known of a device before the fit measures it. Borrowed from the source.
struct Prior {
  std::vector<const transfer::KnownDevices*> known = {};  ///< by budget
  space::DesignBatch given = {};                          ///< measured by others already
  space::DesignBatch candidates = {};  ///< to choose from what is measured to learn
};

/// Called in this order: `open` for each device, `know` once, `prior` and `prober` for each device
/// that is measured, `search` once, `prospects` for each device, then what is left. Functions "for
/// each device" are called from several threads if `devices_at_once` is more than one. A failure of
/// code `device_failed`, `unstable` or `unsupported` ends that one device, any other one the fit.
class FitSource {
 public:
  FitSource() = default;
  virtual ~FitSource() = default;
  FitSource(const FitSource&) = delete;
  FitSource& operator=(const FitSource&) = delete;

  virtual const space::Space& space() const = 0;
  virtual Subject subject() const = 0;

  /// Finds a device; nothing is measured yet.
  virtual Result<OpenedDevice> open(std::size_t number, const FleetDevice& written) = 0;

  /// Learns what all devices have in common.
  virtual Status know(std::span<const OpenedDevice> devices) = 0;
  virtual Result<Prior> prior(const OpenedDevice& device) = 0;
  virtual Result<std::unique_ptr<Prober>> prober(const OpenedDevice& device) = 0;

  /// What a device that is not measured has now: its budgets, and its original if there is one.
  virtual Result<FittedDevice> look_up(const OpenedDevice& device) = 0;

  /// Looks for designs, by what was learned of all devices that go on.
  virtual Status search(std::span<const FittingDevice> devices) = 0;
  /// The designs that a device may get; valid until the source ends.
  virtual Result<Prospects> prospects(const FittingDevice& device) = 0;
  /// The same for all devices; nothing if each has its own, and no design can be shared.
  virtual std::optional<Prospects> common_prospects() const = 0;

  /// Gives the best of the prospects to a device that is not measured.
  virtual Result<FittedDevice> choose(const OpenedDevice& device, FittedDevice found,
                                      const Prospects& prospects) = 0;

  /// Accuracies on data that nothing was chosen by; nothing if there is no such data.
  virtual Result<std::optional<std::vector<double>>> test(space::DesignBatch designs) = 0;
  /// Where accuracies are from, for people.
  virtual std::string accuracy_about() const = 0;

  /// Writes what a device gets, and adds it to its files.
  virtual Status write(const OpenedDevice& opened, FittedDevice& device) = 0;

  virtual FitAccount account(std::span<const FittingDevice> devices) const = 0;
};

/// The budgets of a device as the file says them; limits that are shares are not known yet.
std::vector<FitBudget> budgets_of(const FleetDevice& device);

/// A device of which nothing is found yet.
FittedDevice unfitted(const OpenedDevice& device);

}  // namespace fleetfit::fit
