#include "fleetfit/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fleetfit/report/html.h"

namespace fleetfit::report {
namespace {

constexpr double kLeft = 72;
constexpr double kRight = 24;
constexpr double kTop = 16;
constexpr double kBottom = 56;

}  // namespace

std::vector<double> log_ticks(double low, double high) {
  std::vector<double> ticks;
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  for (int power = first; power <= last; ++power) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick =
          power < 0 ? digit / std::pow(10.0, -power) : digit * std::pow(10.0, power);
      if (tick >= low && tick <= high) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::vector<double> linear_ticks(double low, double high) {
  constexpr double kMost = 10;
  const double range = high - low;
  double step = std::pow(10.0, std::floor(std::log10(range / kMost)));
  for (const double factor : {2.0, 2.5, 2.0})
    if (range / step > kMost) step *= factor;
  std::vector<double> ticks;
  const auto first = static_cast<long>(std::ceil(low / step));
  for (long i = first; static_cast<double>(i) * step <= high; ++i)
    ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

double Axis::share(double value) const {
  if (scale == AxisScale::linear) return (value - low) / (high - low);
  return std::log(value / low) / std::log(high / low);
}

std::vector<double> Axis::ticks() const {
  return scale == AxisScale::linear ? linear_ticks(low, high) : log_ticks(low, high);
}

bool Axis::holds(double value) const {
  return std::isfinite(value) && value >= low && value <= high;
}

Axis axis_for(std::string label, std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  Axis axis{std::move(label), 0, 1, AxisScale::linear};
  if (values.empty()) return axis;
  std::ranges::sort(values);
  const auto at = [&values](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  double low = values.front();
  double high = values.back();
  const double middle = at(0.95) - at(0.05);
  if (values.size() >= 20 && middle > 0) {
    if (at(0.05) - low > 2 * middle) low = at(0.05);
    if (high - at(0.95) > 2 * middle) high = at(0.95);
  }
  if (low > 0 && high / low > 100) {
    axis.scale = AxisScale::logarithmic;
    axis.low = low / 1.2;
    axis.high = high * 1.2;
    return axis;
  }
  const double margin = high > low ? 0.06 * (high - low) : std::max(0.05 * std::abs(low), 0.05);
  axis.low = low >= 0 ? std::max(0.0, low - margin) : low - margin;
  axis.high = high + margin;
  return axis;
}

Chart::Chart(Axis x, Axis y, ChartSize size) : x_(std::move(x)), y_(std::move(y)), size_(size) {}

double Chart::column(double x) const {
  return kLeft + x_.share(x) * (size_.width - kLeft - kRight);
}

double Chart::row(double y) const {
  return size_.height - kBottom - y_.share(y) * (size_.height - kTop - kBottom);
}

void Chart::line(std::span<const ChartPoint> points, std::string_view style,
                 std::string_view title) {
  std::string places;
  for (const auto& p : points) places += fmt::format("{:.1f},{:.1f} ", column(p.x), row(p.y));
  marks_ += fmt::format("<polyline class=\"{}\" points=\"{}\"><title>{}</title></polyline>\n",
                        style, places, escape_html(title));
}

void Chart::steps(std::span<const ChartPoint> points, std::string_view style,
                  std::string_view title) {
  std::vector<ChartPoint> corners;
  for (const auto& p : points) {
    if (!corners.empty()) corners.push_back({p.x, corners.back().y});
    corners.push_back(p);
  }
  line(corners, style, title);
}

void Chart::point(const ChartPoint& at, std::string_view style, std::string_view title,
                  std::string_view data) {
  marks_ += fmt::format(
      "<circle class=\"{}\" data-name=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}</title>"
      "</circle>\n",
      style, escape_html(data), column(at.x), row(at.y), escape_html(title));
}

void Chart::text(const ChartPoint& at, std::string_view words) {
  labels_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", column(at.x) + 6,
                         row(at.y) - 6, escape_html(words));
}

std::string Chart::axes() const {
  std::string text;
  for (const double tick : x_.ticks()) {
    text += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
        column(tick), kTop, size_.height - kBottom, size_.height - kBottom + 18, tick);
  }
  for (const double tick : y_.ticks()) {
    text += fmt::format(
        "<line class=\"grid\" y1=\"{0:.1f}\" y2=\"{0:.1f}\" x1=\"{1}\" x2=\"{2}\"/>"
        "<text y=\"{3:.1f}\" x=\"{4}\" text-anchor=\"end\">{5:g}</text>\n",
        row(tick), kLeft, size_.width - kRight, row(tick) + 4, kLeft - 8, tick);
  }
  text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                      (kLeft + size_.width - kRight) / 2, size_.height - 12, escape_html(x_.label));
  text += fmt::format(
      "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      (kTop + size_.height - kBottom) / 2, escape_html(y_.label));
  return text;
}

std::string Chart::svg() const {
  const auto frame = fmt::format(R"(x="{}" y="{}" width="{}" height="{}")", kLeft, kTop,
                                 size_.width - kLeft - kRight, size_.height - kTop - kBottom);
  // Charts of one size on a page share their frame.
  const auto id = fmt::format("frame-{}-{}", size_.width, size_.height);
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\">\n<clipPath id=\"{}\"><rect {}/></clipPath>\n{}"
      "<rect class=\"frame\" {}/>\n<g clip-path=\"url(#{})\">\n{}</g>\n{}</svg>\n",
      size_.width, size_.height, id, frame, axes(), frame, id, marks_, labels_);
}

}  // namespace fleetfit::report
