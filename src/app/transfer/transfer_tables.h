#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/space/table.h"
#include "fleetfit/transfer/adaproxy.h"

/// Tables as verbs of transfer look at them.
namespace fleetfit::app {

/// Opens the space and reads these columns of the table (none: all).
Result<space::DesignTable> read_device_table(const std::filesystem::path& file,
                                             const std::string& space,
                                             const std::vector<std::string>& devices);

/// Rows in which all of the columns have a number.
std::vector<std::size_t> complete_rows(std::span<const std::vector<double>> columns);

std::vector<double> pick(std::span<const double> values, std::span<const std::size_t> rows);

space::Population pick(const space::Population& designs, std::span<const std::size_t> rows);

/// What a proxy was changed by, as reports have it.
nlohmann::ordered_json changes_json(const std::vector<transfer::OperatorChange>& changes);

/// `count` of the rows in random order. Fails with `invalid_input`, saying what there is, if there
/// are fewer. `what` names them: "designs measured on both devices".
Result<std::vector<std::size_t>> sample_rows(std::span<const std::size_t> rows, std::size_t count,
                                             std::uint64_t seed, std::string_view what);

}  // namespace fleetfit::app
