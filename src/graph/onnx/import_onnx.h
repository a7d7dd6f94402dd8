#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "fleetfit/graph/import.h"
#include "graph/onnx/wire.h"

namespace fleetfit::graph::onnx_format {

/// As graph::import_onnx, for bytes that `owner` keeps alive: the graph's constants refer to them.
/// Without a folder, tensors in files of their own are refused.
Result<ImportedModel> import(Bytes bytes, std::shared_ptr<const void> owner,
                             const std::optional<std::filesystem::path>& folder,
                             const ImportOptions& options);

}  // namespace fleetfit::graph::onnx_format
