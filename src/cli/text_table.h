#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fleetfit::cli {

/// Columns of text for people; columns of numbers are aligned to the right.
class TextTable {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One cell for each column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// "3.50 MB", "710 B", without a unit "3.50 M": three digits and a prefix of thousands.
std::string with_prefix(double value, std::string_view unit = {});

}  // namespace fleetfit::cli
