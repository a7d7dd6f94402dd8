#pragma once

#include <map>
#include <string>
#include <vector>

#include "fleetfit/app/workplace.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/measure/measurement.h"

namespace fleetfit::app {

/// What is known of the fastest kernels of the engine. Reads the store once for each kind of
/// kernels, and keeps in it what measurements find out. Borrows the workplace.
class KernelChoices {
 public:
  explicit KernelChoices(Workplace& workplace) : workplace_(workplace) {}

  /// What is known, the newest first as far as a request has room, as the device's runtime takes
  /// it; "" if nothing is or the runtime is not the engine.
  Result<std::string> known(const measure::Device& device);

  /// Keeps what a measurement found out. Of a device with limits nothing is kept: times taken while
  /// it was throttled would mislead all others.
  Status save(const measure::Device& device, const measure::Measurement& measurement);

 private:
  struct Answers {
    std::map<std::string, std::string> by_question = {};
    std::vector<std::string> questions = {};  // the newest last
  };
  Result<Answers*> answers_of(const std::string& owner);

  Workplace& workplace_;
  std::map<std::string, Answers> by_owner_;
};

}  // namespace fleetfit::app
