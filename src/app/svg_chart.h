#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Charts as inline SVG in pages of plain HTML that open without a server and fetch nothing.
namespace fleetfit::app {

/// The text with &, <, > and " written so that HTML shows them.
std::string escape_html(std::string_view text);

/// A whole document around `body`, with a calm style in light and dark.
std::string html_page(std::string_view title, std::string_view body);

/// What is as wide as the page, and on a phone wider, to be moved sideways by itself: a chart or a
/// table.
std::string wide(std::string_view content);

/// One entry of a chart's legend, to be put into <ul class="legend">: a line or a point of a style.
std::string line_in_legend(std::string_view style, std::string_view words);
std::string point_in_legend(std::string_view style, std::string_view words);

struct ChartPoint {
  double x = 0;
  double y = 0;
};

enum class AxisScale : std::uint8_t { logarithmic, linear };

/// An axis; both ends of a logarithmic one are positive.
struct Axis {
  std::string label;
  double low = 1;
  double high = 10;
  AxisScale scale = AxisScale::logarithmic;
};

/// Values of the form 1, 2 or 5 times a power of ten from low to high.
std::vector<double> log_ticks(double low, double high);

/// At most ten multiples of 1, 2 or 5 times a power of ten from low to high.
std::vector<double> linear_ticks(double low, double high);

/// Of the whole chart, in units of which a page is about 960 wide.
struct ChartSize {
  double width = 960;
  double height = 560;
};

/// A chart, by default on logarithmic axes. What is added is drawn in that order and cut at the
/// frame; `style` is a CSS class of the page, `title` is shown while the pointer is over it.
class Chart {
 public:
  Chart(Axis x, Axis y, ChartSize size = {});

  void line(std::span<const ChartPoint> points, std::string_view style, std::string_view title);
  /// A line that stays at a value until the next point.
  void steps(std::span<const ChartPoint> points, std::string_view style, std::string_view title);
  /// `data` names the thing in the document: the attribute data-name.
  void point(const ChartPoint& at, std::string_view style, std::string_view title,
             std::string_view data);
  /// Words beside a place.
  void text(const ChartPoint& at, std::string_view words);

  /// The <svg> element.
  std::string svg() const;

 private:
  double column(double x) const;
  double row(double y) const;
  std::string axes() const;

  Axis x_;
  Axis y_;
  ChartSize size_;
  std::string marks_;   // cut at the frame
  std::string labels_;  // not cut
};

}  // namespace fleetfit::app
