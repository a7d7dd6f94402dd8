#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Pieces of SQL that all data bases of ours understand.
namespace fleetfit::store {

/// "?, ?, ?"
std::string placeholders(std::size_t count);

/// Of a list of columns, "a, b, c".
std::size_t count_columns(std::string_view columns);

/// Inserts a row.
std::string insert_into(std::string_view table, std::string_view columns);

/// Inserts a row; one with the same keys, the first columns, is replaced.
std::string upsert(std::string_view table, std::string_view keys, std::string_view others);

}  // namespace fleetfit::store
