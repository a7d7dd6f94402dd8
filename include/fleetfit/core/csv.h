#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fleetfit/core/result.h"

/// Tables in CSV files (RFC 4180): quoted cells may hold commas, quotes and line ends; lines end in
/// LF or CRLF; a byte order mark is skipped, as are blank lines. The first row names the columns.
/// Errors in the content are `invalid_input` and start with their place, "latency.csv:14:3: …",
/// line and column of the text.
namespace fleetfit::core {

struct CsvLimits {
  std::uint64_t max_bytes = std::uint64_t{1} << 28;  ///< at most 2 GiB
  std::size_t max_columns = 65'536;
  /// Names of the columns of a file without a header row; empty: the first row has them.
  std::vector<std::string> columns = {};
};

/// A table that was read. Holds the text of the file and eight bytes for each cell. Immutable; safe
/// to use from many threads. Rows are counted from 0 without the header; a row or column that does
/// not exist must not be asked for.
class CsvTable {
 public:
  std::size_t rows() const { return cells_.size() / header_.size() - 1; }
  std::size_t columns() const { return header_.size(); }

  /// The names of the columns, all different.
  std::span<const std::string> header() const { return header_; }

  /// The column's number. Fails with `not_found`, naming the file.
  Result<std::size_t> column(std::string_view name) const;
  std::optional<std::size_t> find_column(std::string_view name) const;

  /// The cell's text, without quotes. Valid as long as the table.
  std::string_view cell(std::size_t row, std::size_t column) const;

  /// An empty cell means that the value is missing.
  bool is_missing(std::size_t row, std::size_t column) const { return cell(row, column).empty(); }

  /// The cell as a finite decimal number; spaces around it are ignored. Missing is an error.
  Result<double> number(std::size_t row, std::size_t column) const;

  /// Like `number`, but nothing for a missing cell.
  Result<std::optional<double>> optional_number(std::size_t row, std::size_t column) const;

  /// All numbers of a column, none missing.
  Result<std::vector<double>> numbers(std::string_view name) const;

  /// An `invalid_input` error about a cell, with its place in front, for what only the caller can
  /// check.
  tl::unexpected<Error> error_at(std::size_t row, std::size_t column,
                                 std::string_view problem) const;

 private:
  friend class CsvParser;

  struct Cell {
    std::uint32_t offset;
    std::uint32_t length_and_escape;
  };

  CsvTable(std::string text, std::string name) : text_(std::move(text)), name_(std::move(name)) {}
  std::string_view text_of(const Cell& cell) const;

  std::string text_;
  std::string name_;
  std::vector<std::string> header_;
  std::vector<Cell> cells_;  // row by row, the header first
  std::unordered_map<std::uint32_t, std::string>
      unescaped_;  // cells with doubled quotes, by offset
};

/// `name` stands for the file in messages. Fails on a row that has not as many cells as the header,
/// on a quote out of place, on two columns of one name and on a text without a header. No bytes
/// make it crash.
Result<CsvTable> parse_csv(std::string text, std::string name, const CsvLimits& limits = {});

/// Also fails as `read_file` does.
Result<CsvTable> read_csv(const std::filesystem::path& path, const CsvLimits& limits = {});

/// One cell to write: a text, a number in the shortest form that reads back exactly, or nothing. A
/// NaN or infinite number is written as missing.
class CsvCell {
 public:
  CsvCell() = default;  ///< missing
  // NOLINTBEGIN(google-explicit-constructor): rows are written as lists of plain values
  CsvCell(std::string_view text) : text_(text) {}
  CsvCell(const std::string& text) : text_(text) {}
  CsvCell(const char* text) : text_(text) {}
  CsvCell(double number);
  CsvCell(std::integral auto number) : text_(std::to_string(number)) {}
  // NOLINTEND(google-explicit-constructor)

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Builds the text of a table, quoted where necessary, with LF at the end of each line.
class CsvWriter {
 public:
  explicit CsvWriter(std::span<const std::string> header);

  /// Adds a row, which must have as many cells as the header.
  void add_row(std::span<const CsvCell> cells);
  void add_row(std::initializer_list<CsvCell> cells) {
    add_row(std::span(cells.begin(), cells.size()));
  }

  const std::string& text() const { return text_; }

 private:
  void add_line(std::span<const CsvCell> cells);

  std::size_t columns_;
  std::string text_;
};

}  // namespace fleetfit::core
