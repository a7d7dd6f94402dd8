#include "fleetfit/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fleetfit/report/html.h"

namespace fleetfit::report {
namespace {

constexpr double kLeft = 72;
constexpr double kRight = 24;
constexpr double kTop = 16;
constexpr double kBottom = 56;

constexpr int kMostTicks = 12;

double finite(double value) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  return std::clamp(value, -kLargest, kLargest);
}

/// A step of 1, 2 or 5 times a power of ten, of which at most ten fit between the two; 0 if they
/// are too close for that.
double step_between(double low, double high) {
  constexpr double kMost = 10;
  const double range = high - low;
  const double part = std::isfinite(range) ? range / kMost : high / kMost - low / kMost;
  if (part < std::numeric_limits<double>::min()) return 0;
  double step = std::pow(10.0, std::floor(std::log10(part)));
  for (const double factor : {2.0, 2.5, 2.0})
    if (part / step > 1 + 1e-12) step *= factor;
  return step;
}

/// What lies far outside of the frame is cut there; how far it is makes no difference.
double near_the_frame(double share) {
  constexpr double kFar = 100;
  return std::clamp(share, -kFar, kFar);
}

bool can_be_drawn(const ChartPoint& p) { return std::isfinite(p.x) && std::isfinite(p.y); }

}  // namespace

std::vector<double> log_ticks(double low, double high) {
  constexpr int kMostDecadesInDetail = 7;
  std::vector<double> ticks;
  if (!(low > 0 && low <= high && std::isfinite(high))) return ticks;
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  const int decades = last - first;
  const int every = decades / kMostTicks + 1;
  for (int power = first; power <= last; power += every) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (digit > 1 && decades > kMostDecadesInDetail) break;
      const double tick =
          power < 0 ? digit / std::pow(10.0, -power) : digit * std::pow(10.0, power);
      if (tick >= low && tick <= high) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::vector<double> linear_ticks(double low, double high) {
  std::vector<double> ticks;
  if (!(low <= high && std::isfinite(low) && std::isfinite(high))) return ticks;
  const double step = step_between(low, high);
  const double first = std::ceil(low / step);
  // Numbers so close to each other have no multiples between them.
  constexpr double kWholeNumbers = 0x1p52;
  if (step == 0 || std::abs(first) > kWholeNumbers) return {low + 0.0};
  for (int i = 0; i < kMostTicks; ++i) {
    const double tick = std::max(low, (first + i) * step) + 0.0;  // no -0
    if (tick > high) break;
    ticks.push_back(tick);
  }
  return ticks;
}

double Axis::share(double value) const {
  if (!(low < high)) return 0.5;
  if (scale == AxisScale::logarithmic) {
    const double logs =
        std::isfinite(high / low) ? std::log(high / low) : std::log(high) - std::log(low);
    if (!(logs > 0)) return 0.5;
    const double least = std::numeric_limits<double>::denorm_min();
    const double from_low = std::max(value, least) / low;
    return near_the_frame((std::isfinite(from_low) && from_low > 0
                               ? std::log(from_low)
                               : std::log(std::max(value, least)) - std::log(low)) /
                          logs);
  }
  const double range = high - low;
  return near_the_frame(std::isfinite(range) ? (value - low) / range
                                             : (value / 2 - low / 2) / (high / 2 - low / 2));
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
    axis.high = finite(high * 1.2);
    return axis;
  }
  const double margin =
      high > low ? 0.06 * high - 0.06 * low : std::max(0.05 * std::abs(low), 0.05);
  axis.low = low >= 0 ? std::max(0.0, low - margin) : finite(low - margin);
  axis.high = finite(high + margin);
  return axis;
}

Chart::Chart(Axis x, Axis y, ChartSize size) : x_(std::move(x)), y_(std::move(y)), size_(size) {
  for (auto* axis : {&x_, &y_}) {
    axis->low = finite(axis->low);
    axis->high = finite(axis->high);
    if (!(axis->low > 0)) axis->scale = AxisScale::linear;
  }
}

double Chart::column(double x) const {
  return kLeft + x_.share(x) * (size_.width - kLeft - kRight);
}

double Chart::row(double y) const {
  return size_.height - kBottom - y_.share(y) * (size_.height - kTop - kBottom);
}

void Chart::line(std::span<const ChartPoint> points, std::string_view style,
                 std::string_view title) {
  std::string places;
  for (const auto& p : points)
    if (can_be_drawn(p)) places += fmt::format("{:.1f},{:.1f} ", column(p.x), row(p.y));
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
  if (!can_be_drawn(at)) return;
  marks_ += fmt::format(
      "<circle class=\"{}\" data-name=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}</title>"
      "</circle>\n",
      style, escape_html(data), column(at.x), row(at.y), escape_html(title));
}

void Chart::text(const ChartPoint& at, std::string_view words) {
  if (!can_be_drawn(at)) return;
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
