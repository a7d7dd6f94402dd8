#include "fleetfit/app/workplace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "fleetfit/app/stores.h"
#include "fleetfit/core/program.h"
#include "fleetfit/store/gone.h"
#include "fleetfit/study/tuning.h"
#include "fleetfit/tune/patience.h"

namespace fleetfit::app {
namespace {

// A new file would look like a store in which there is no such study.
Status check_file_is_there(std::string_view store_url) {
  constexpr std::string_view kFile = "sqlite:";
  if (!store_url.starts_with(kFile)) return {};
  const std::filesystem::path file(store_url.substr(kFile.size()));
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return {};
  return fail(ErrorCode::not_found, fmt::format("{}: {}", file.string(), store::kFileGone));
}

}  // namespace

Result<Workplace> open_workplace(std::string_view store_url, const core::Clock& clock,
                                 Programs programs, store::StoreUse use) {
  FLEETFIT_ASSIGN(auto store, store::open_store(store_url, use));
  return Workplace{.store = std::move(store), .clock = clock, .programs = std::move(programs)};
}

Result<Workplace> open_workplace_patiently(std::string_view store_url, const core::Clock& clock,
                                           const std::stop_token& stop) {
  FLEETFIT_TRY(check_file_is_there(store_url));
  tune::Patience patience(core::say, stop, {.most = study::kStorePatience});
  FLEETFIT_ASSIGN(auto store, patience.keep_trying([&] { return store::open_store(store_url); }));
  return Workplace{.store = std::move(store), .clock = clock, .programs = {.stop = stop}};
}

Result<store::CopyCounts> copy_store(std::string_view from, std::string_view to,
                                     core::Progress& progress) {
  FLEETFIT_ASSIGN(const auto source, store::open_store(from, store::StoreUse::look));
  FLEETFIT_ASSIGN(const auto target, store::open_store(to));
  core::ProgressTask task(progress, {.name = "copy", .unit = "records"});
  std::int64_t told = 0;
  return store::copy_records(*source, *target, [&](const store::CopyCounts& counts) {
    const auto done = counts.devices + counts.models + counts.measurements + counts.kernel_choices +
                      counts.trials + counts.inferences + counts.tokens + counts.agents +
                      counts.jobs + counts.events + counts.files + counts.audit;
    task.advance(static_cast<std::size_t>(done - told));
    told = done;
  });
}

nlohmann::ordered_json to_json(const store::CopyCounts& counts) {
  return {{"devices", counts.devices},
          {"models", counts.models},
          {"measurements", counts.measurements},
          {"kernel_choices", counts.kernel_choices},
          {"studies", counts.studies},
          {"trials", counts.trials},
          {"inferences", counts.inferences},
          {"tokens", counts.tokens},
          {"agents", counts.agents},
          {"jobs", counts.jobs},
          {"events", counts.events},
          {"files", counts.files},
          {"audit", counts.audit}};
}

}  // namespace fleetfit::app
