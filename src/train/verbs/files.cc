#include "train/verbs/files.h"

#include <fmt/format.h>

#include <utility>

namespace fleetfit::train {

namespace fs = std::filesystem;

Result<OpenedSplits> open_splits(const std::string& spec) {
  auto train = data::open_dataset(spec, data::Split::train);
  if (!train) return tl::unexpected(std::move(train.error()));
  auto validation = data::open_dataset(spec, data::Split::validation);
  if (!validation) return tl::unexpected(std::move(validation.error()));
  auto test = data::open_dataset(spec, data::Split::test);
  if (!test) return tl::unexpected(std::move(test.error()));
  return OpenedSplits{*std::move(train), *std::move(validation), *std::move(test)};
}

Status check_output(const fs::path& output) {
  std::error_code ignored;
  const auto folder = output.has_parent_path() ? output.parent_path() : fs::path(".");
  if (fs::is_directory(folder, ignored) && !fs::is_directory(output, ignored)) return {};
  return fail(ErrorCode::invalid_input, fmt::format("{} cannot be written", output.string()));
}

}  // namespace fleetfit::train
