#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Pages of plain HTML that open without a server and fetch nothing, and the parts they are made
/// of. Titles, names and words are text and are escaped here; contents and cells are HTML already.
namespace fleetfit::report {

/// The text with &, <, > and " written so that HTML shows them.
std::string escape_html(std::string_view text);

/// A whole document with its title as the heading, and a calm style in light and dark.
std::string html_page(std::string_view title, std::string_view body);

/// A heading, a paragraph of HTML that introduces the content (if there is one), and the content;
/// "" if there is no content.
std::string section(std::string_view title, std::string_view introduction,
                    std::string_view content);
std::string section(std::string_view title, std::string_view content);

/// A paragraph of HTML.
std::string paragraph(std::string_view content);

/// What is as wide as the page, and on a phone wider, to be moved sideways by itself: a chart.
std::string wide(std::string_view content);

/// Content that is seen when its summary is clicked on; "" if there is none.
std::string folded(std::string_view summary, std::string_view content);

/// A list of pieces of HTML; "" if there are none.
std::string list(std::span<const std::string> items);

/// A few numbers that say the most, side by side in large letters.
struct Fact {
  std::string name;
  std::string value;
};
std::string facts(std::span<const Fact> facts);

/// A bar for a share of 0 to 1; `style` is "" or "two".
std::string meter(double share, std::string_view style = "");

/// A bar for how much of a limit is used, with a mark where the limit ends; "" if that is unknown.
std::string gauge(double share);

/// Entries of a chart's legend: a line or a point of a CSS class of the page.
std::string line_in_legend(std::string_view style, std::string_view words);
std::string point_in_legend(std::string_view style, std::string_view words);
std::string legend(std::initializer_list<std::string> entries);

/// A column of numbers, unless it is said to be of words.
struct Column {
  // NOLINTNEXTLINE(google-explicit-constructor): tables list the names of their columns
  Column(const char* name) : title(name) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  Column(std::string name) : title(std::move(name)) {}
  std::string title;
  bool is_words = false;
};
Column words(std::string title);

/// A table that grows row by row.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  /// One cell of HTML for each column. If there are fewer, the last one takes the columns that are
  /// left.
  void add(const std::vector<std::string>& cells);

  bool empty() const { return rows_.empty(); }

  /// "" if no row was added.
  std::string html() const;

 private:
  std::vector<Column> columns_;
  std::string rows_;
};

}  // namespace fleetfit::report
