#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/store/optuna.h"

namespace {

using namespace fleetfit;

/// What the header promises of a study.
void check(const store::OptunaStudy& study) {
  if (study.maximize.empty()) std::abort();
  for (const auto& trial : study.trials) {
    if (trial.values.size() > study.maximize.size()) std::abort();
    for (const auto& parameter : trial.parameters) {
      const auto& distribution = study.distributions.at(parameter.distribution);
      if (distribution.kind == store::OptunaDistribution::Kind::categorical)
        static_cast<void>(distribution.choices.at(static_cast<std::size_t>(parameter.value)));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto folder = core::ScratchFolder::create().value();
  const auto file = folder.path() / "optuna.db";
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (!core::write_file(file, input)) return 0;
  const auto names = store::list_optuna_studies(file);
  if (!names) return 0;
  for (const auto& name : *names) {
    const auto study = store::read_optuna_study(file, name);
    if (study) check(*study);
  }
  return 0;
}
