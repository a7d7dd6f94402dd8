#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/result.h"
#include "fleetfit/engine/program.h"
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

engine::Library library_of(const std::string& runtime);

/// What `KernelChoices::known` gave.
engine::Choices parse_choices(const std::string& text);

/// How the engine in this process runs networks as the device does, with the kernels that are known
/// to be the fastest. Fails with `unsupported` for a device of int8, one with limits or cores of
/// its own, and one of another runtime; `not_found` if there is none of that name.
Result<engine::EngineOptions> engine_options(Workplace& workplace, std::string_view name);

}  // namespace fleetfit::app
