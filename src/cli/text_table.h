#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fleetfit::cli {

/// A table for people. Its columns are written as its first line is, each with what formats its
/// numbers: "device | runs {} | median ms {:.4g}". Columns with a format are aligned to the right.
class TextTable {
 public:
  TextTable() = default;
  explicit TextTable(std::string_view columns) { add_columns(columns); }

  /// More columns, which are there before the first row; one whose title is only known now.
  void add_columns(std::string_view columns);
  void add_column(std::string title, std::string format = {});

  /// The next row, from its first cell on. Texts stand as they are, numbers as their column formats
  /// them; an optional number that is not there is "-".
  template <class... Cells>
  void add(const Cells&... cells) {
    rows_.emplace_back();
    (append(cells), ...);
  }

  /// One more cell of the last row.
  template <class Cell>
  void append(const Cell& cell) {
    auto& row = rows_.back();
    row.push_back(text_of(cell, columns_[row.size()].format));
  }

  std::string text() const;

 private:
  struct Column {
    std::string title;
    std::string format;  ///< "": of texts
  };

  template <class Cell>
  static std::string text_of(const Cell& cell, const std::string& format) {
    if constexpr (std::is_convertible_v<const Cell&, std::string_view>) {
      return std::string(std::string_view(cell));
    } else if constexpr (requires { cell.has_value(); }) {
      return cell ? text_of(*cell, format) : "-";
    } else {
      return fmt::format(fmt::runtime(format), cell);
    }
  }

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// "3.50 MB", "710 B", without a unit "3.50 M": three digits and a prefix of thousands.
std::string with_prefix(double value, std::string_view unit = {});
template <std::integral Count>
std::string with_prefix(Count count, std::string_view unit = {}) {
  return with_prefix(static_cast<double>(count), unit);
}

}  // namespace fleetfit::cli
