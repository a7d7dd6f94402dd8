#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Charts as inline SVG, in the style of `html_page`.
namespace fleetfit::report {

struct ChartPoint {
  double x = 0;
  double y = 0;
};

enum class AxisScale : std::uint8_t { logarithmic, linear };

/// An axis; both ends of a logarithmic one are positive. Any finite ends will do, also equal ones
/// and those whose difference is no finite number.
struct Axis {
  std::string label;
  double low = 1;
  double high = 10;
  AxisScale scale = AxisScale::logarithmic;

  /// Where a value lies: 0 at the low end, 1 at the high one, finite for finite values.
  double share(double value) const;
  /// Values to be marked.
  std::vector<double> ticks() const;
  bool holds(double value) const;
};

/// An axis that holds the values, without the few that lie so far off that they would press the
/// others together; logarithmic if they differ by more than a factor of a hundred.
Axis axis_for(std::string label, std::vector<double> values);

/// The least and the greatest of some values; what is not finite is passed over.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void hold(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// Values of the form 1, 2 or 5 times a power of ten from low to high, of many decades only powers
/// of ten: never more than 24.
std::vector<double> log_ticks(double low, double high);

/// At most twelve multiples of 1, 2 or 5 times a power of ten from low to high; numbers so close
/// that there are none get `low`.
std::vector<double> linear_ticks(double low, double high);

/// Of the whole chart, in units of which a page is about 960 wide.
struct ChartSize {
  double width = 960;
  double height = 560;
};

/// A chart, by default on logarithmic axes. What is added is drawn in that order and cut at the
/// frame; points that are not finite are left out. `style` is a CSS class of the page, `title` is
/// shown while the pointer is over it.
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

}  // namespace fleetfit::report
