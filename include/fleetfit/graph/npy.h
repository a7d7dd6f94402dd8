#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/evaluate.h"

/// Tensors as files of numpy (.npy, format 1.0 and 2.0): little-endian floats of 16, 32 and 64
/// bits, whole numbers of 8 to 64 bits and bool, in C order. Other types, big-endian numbers and
/// Fortran order are `unsupported`; a file that breaks the format is `invalid_input`. The
/// quantization of a value is not part of a file.
namespace fleetfit::graph {

/// Also fails as `core::read_file` does. Files of up to 8 GB.
Result<Value> read_npy(const std::filesystem::path& path);

/// The same from bytes, which are copied. `name` stands for the file in messages.
Result<Value> parse_npy(std::span<const std::byte> bytes, std::string_view name);

/// The content of such a file, format 1.0.
Result<std::string> format_npy(const Value& value);

/// Also fails as `core::write_file` does.
Status write_npy(const std::filesystem::path& path, const Value& value);

}  // namespace fleetfit::graph
