#include "fleetfit/core/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <unordered_set>

#include "core/text_place.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/plausible.h"

namespace fleetfit::core {
namespace {

constexpr std::uint32_t kEscaped = 0x8000'0000u;
constexpr std::uint64_t kMostBytes = kEscaped - 1;

// The bytes that end an unquoted cell or are out of place in it.
constexpr auto kSpecial = [] {
  std::array<bool, 256> special{};
  for (const char c : {',', '"', '\n', '\r'}) special[static_cast<unsigned char>(c)] = true;
  return special;
}();

std::string_view without_spaces(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<double> parse_number(std::string_view text) {
  text = without_spaces(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !is_within_reason(value))
    return {};
  return value;
}

std::string without_doubled_quotes(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] == '"') ++i;
  }
  return result;
}

}  // namespace

class CsvParser {
 public:
  CsvParser(std::string text, std::string name, const CsvLimits& limits)
      : table_(std::move(text), std::move(name)), text_(table_.text_), limits_(limits) {}

  Result<CsvTable> parse() {
    if (text_.size() > std::min(limits_.max_bytes, kMostBytes)) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: the table has {} bytes, more than the limit", table_.name_,
                              text_.size()));
    }
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    auto read = take_header();
    while (read && skip_blank_lines()) read = parse_row();
    FLEETFIT_TRY(read);
    table_.cells_.shrink_to_fit();
    return std::move(table_);
  }

 private:
  Status error_at(std::size_t offset, std::string_view problem) const {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: {}", text_place(table_.name_, text_, offset), problem));
  }

  bool at_line_end() const {
    return text_[at_] == '\n' ||
           (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n');
  }

  void skip_line_end() { at_ += text_[at_] == '\r' ? 2 : 1; }

  bool skip_blank_lines() {
    while (at_ < text_.size() && at_line_end()) skip_line_end();
    return at_ < text_.size();
  }

  Status take_header() {
    if (limits_.columns.empty())
      return skip_blank_lines() ? parse_header() : error_at(0, "there is no header row");
    table_.header_ = limits_.columns;
    table_.cells_.resize(table_.columns());
    return {};
  }

  Status parse_header() {
    auto parsed = parse_cells(limits_.max_columns);
    if (!parsed) return parsed;
    std::unordered_set<std::string_view> seen;
    for (const auto& cell : table_.cells_) {
      const auto name = table_.text_of(cell);
      if (!seen.insert(name).second) {
        return error_at(cell.offset, fmt::format("there are two columns '{}'", excerpt(name)));
      }
      table_.header_.emplace_back(name);
    }
    const auto guess = (text_.size() / std::max<std::size_t>(at_, 1) + 1) * table_.header_.size();
    table_.cells_.reserve(std::min(guess, text_.size()));
    return parsed;
  }

  Status parse_row() {
    const std::size_t start = at_;
    const std::size_t before = table_.cells_.size();
    auto parsed = parse_cells(table_.columns());
    const std::size_t found = table_.cells_.size() - before;
    if (parsed && found != table_.columns()) {
      return error_at(
          start, fmt::format("the row has {} cells, the header has {}", found, table_.columns()));
    }
    return parsed;
  }

  // Reads cells to the end of the line and no more than `most`.
  Status parse_cells(std::size_t most) {
    for (std::size_t count = 1;; ++count) {
      if (count > most) return error_at(at_, fmt::format("the row has more than {} cells", most));
      const bool quoted = at_ < text_.size() && text_[at_] == '"';
      auto parsed = quoted ? parse_quoted_cell() : parse_plain_cell();
      if (!parsed || at_ == text_.size()) return parsed;
      if (text_[at_] != ',') {
        skip_line_end();
        return {};
      }
      ++at_;
    }
  }

  Status parse_plain_cell() {
    const std::size_t start = at_;
    for (;; ++at_) {
      while (at_ < text_.size() && !kSpecial[static_cast<unsigned char>(text_[at_])]) ++at_;
      if (at_ == text_.size() || text_[at_] == ',' || at_line_end()) break;
      if (text_[at_] == '"')
        return error_at(at_, "a quote inside a cell that does not start with one");
    }
    add_cell(start, at_ - start);
    return {};
  }

  Status parse_quoted_cell() {
    const std::size_t open = at_++;
    bool has_quotes = false;
    for (;;) {
      const auto quote = text_.find('"', at_);
      if (quote == std::string_view::npos) return error_at(open, "a quote that is never closed");
      at_ = quote + 1;
      if (at_ == text_.size() || text_[at_] != '"') break;
      has_quotes = true;
      ++at_;
    }
    if (at_ < text_.size() && text_[at_] != ',' && !at_line_end()) {
      return error_at(at_, "text after the closing quote of a cell");
    }
    add_cell(open + 1, at_ - open - 2);
    if (has_quotes) unescape_last_cell();
    return {};
  }

  void add_cell(std::size_t offset, std::size_t length) {
    table_.cells_.push_back(
        {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(length)});
  }

  void unescape_last_cell() {
    auto& cell = table_.cells_.back();
    table_.unescaped_.emplace(cell.offset, without_doubled_quotes(table_.text_of(cell)));
    cell.length_and_escape |= kEscaped;
  }

  CsvTable table_;
  std::string_view text_;
  CsvLimits limits_;
  std::size_t at_ = 0;
};

Result<CsvTable> parse_csv(std::string text, std::string name, const CsvLimits& limits) {
  return CsvParser(std::move(text), std::move(name), limits).parse();
}

Result<CsvTable> read_csv(const std::filesystem::path& path, const CsvLimits& limits) {
  FLEETFIT_ASSIGN(auto text, read_file(path, {.max_bytes = limits.max_bytes}));
  return parse_csv(std::move(text), path.string(), limits);
}

std::optional<std::size_t> CsvTable::find_column(std::string_view name) const {
  const auto found = std::ranges::find(header_, name);
  if (found == header_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header_.begin());
}

Result<std::size_t> CsvTable::column(std::string_view name) const {
  if (const auto found = find_column(name)) return *found;
  return fail(ErrorCode::not_found,
              fmt::format("{}: there is no column '{}'", name_, excerpt(name)));
}

std::string_view CsvTable::text_of(const Cell& cell) const {
  if ((cell.length_and_escape & kEscaped) != 0) return unescaped_.at(cell.offset);
  return std::string_view(text_).substr(cell.offset, cell.length_and_escape);
}

std::string_view CsvTable::cell(std::size_t row, std::size_t column) const {
  assert(row < rows() && column < columns());
  return text_of(cells_[(row + 1) * header_.size() + column]);
}

tl::unexpected<Error> CsvTable::error_at(std::size_t row, std::size_t column,
                                         std::string_view problem) const {
  assert(row < rows() && column < columns());
  const auto offset = cells_[(row + 1) * header_.size() + column].offset;
  return fail(ErrorCode::invalid_input,
              fmt::format("{}: {}", text_place(name_, text_, offset), problem));
}

Result<double> CsvTable::number(std::size_t row, std::size_t column) const {
  if (const auto value = parse_number(cell(row, column))) return *value;
  const auto found =
      is_missing(row, column) ? "nothing" : fmt::format("'{}'", excerpt(cell(row, column)));
  return error_at(
      row, column,
      fmt::format("column '{}': expected a number, found {}", excerpt(header_[column]), found));
}

Result<std::optional<double>> CsvTable::optional_number(std::size_t row, std::size_t column) const {
  if (is_missing(row, column)) return std::nullopt;
  return number(row, column).map([](double value) { return std::optional(value); });
}

Result<std::vector<double>> CsvTable::numbers(std::string_view name) const {
  FLEETFIT_ASSIGN(const auto index, column(name));
  std::vector<double> values;
  values.reserve(rows());
  for (std::size_t row = 0; row < rows(); ++row) {
    FLEETFIT_ASSIGN(auto value, number(row, index));
    values.push_back(value);
  }
  return values;
}

CsvCell::CsvCell(double number) {
  if (std::isfinite(number)) text_ = fmt::format("{}", number);
}

CsvWriter::CsvWriter(std::span<const std::string> header) : columns_(header.size()) {
  add_line(std::vector<CsvCell>(header.begin(), header.end()));
}

void CsvWriter::add_row(std::span<const CsvCell> cells) {
  assert(cells.size() == columns_);
  add_line(cells);
}

void CsvWriter::add_line(std::span<const CsvCell> cells) {
  // The only cell of a row is quoted if empty, or the line would be blank.
  const bool alone = cells.size() == 1;
  const char* separator = "";
  for (const auto& cell : cells) {
    text_ += separator;
    separator = ",";
    const auto& text = cell.text();
    const bool plain = text.find_first_of(",\"\r\n") == std::string::npos &&
                       !(alone && text.empty()) && !text.starts_with("\xef\xbb\xbf");
    if (plain) {
      text_ += text;
      continue;
    }
    text_ += '"';
    for (const char c : text) text_.append(c == '"' ? 2 : 1, c);
    text_ += '"';
  }
  text_ += '\n';
}

}  // namespace fleetfit::core
