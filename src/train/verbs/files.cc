#include "train/verbs/files.h"

#include <fmt/format.h>

#include <utility>

namespace fleetfit::train {

namespace fs = std::filesystem;

Result<OpenedSplits> open_splits(const std::string& spec) {
  FLEETFIT_ASSIGN(auto train, data::open_dataset(spec, data::Split::train));
  FLEETFIT_ASSIGN(auto validation, data::open_dataset(spec, data::Split::validation));
  FLEETFIT_ASSIGN(auto test, data::open_dataset(spec, data::Split::test));
  return OpenedSplits{std::move(train), std::move(validation), std::move(test)};
}

Status check_output(const fs::path& output) {
  std::error_code ignored;
  const auto folder = output.has_parent_path() ? output.parent_path() : fs::path(".");
  if (fs::is_directory(folder, ignored) && !fs::is_directory(output, ignored)) return {};
  return fail(ErrorCode::invalid_input, fmt::format("{} cannot be written", output.string()));
}

}  // namespace fleetfit::train
