#include "app/svg_chart.h"

#include <fmt/format.h>

#include <cmath>

namespace fleetfit::app {
namespace {

constexpr double kLeft = 72;
constexpr double kRight = 24;
constexpr double kTop = 16;
constexpr double kBottom = 56;

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #24292f; --soft: #6b7280; --grid: #e5e7eb; --page: #ffffff;
  --one: #2563a8; --two: #b45309; --three: #3f7d58; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #d7dce2; --soft: #9aa3ae; --grid: #2d333b; --page: #15181c;
    --one: #7ab0e8; --two: #e0a458; --three: #86c29d; } }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: var(--ink); background: var(--page);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; font-weight: 600; margin: 0 0 .3rem; }
h2 { font-size: 1.1rem; font-weight: 600; margin: 2.2rem 0 .3rem; }
h3 { font-size: .95rem; font-weight: 600; margin: 1.2rem 0 .2rem; }
p { color: var(--soft); margin: .4rem 0; max-width: 48rem; }
li { margin: .15rem 0; }
svg { width: 100%; height: auto; font-size: 12px; }
svg text { fill: var(--soft); }
figure { margin: .8rem 0; overflow-x: auto; }
.grid { stroke: var(--grid); }
.frame { fill: none; stroke: var(--soft); }
.line { fill: none; stroke: var(--soft); stroke-width: 1.5; }
.roof { fill: none; stroke: var(--one); stroke-width: 2; }
.roof-two { fill: none; stroke: var(--two); stroke-width: 2; stroke-dasharray: 6 4; }
.best-line { fill: none; stroke: var(--three); stroke-width: 2; }
.hollow { fill: var(--page); fill-opacity: .6; stroke: var(--one); opacity: .8; }
.faint { fill: var(--soft); fill-opacity: .4; }
.filled { fill: var(--three); stroke: var(--page); }
.before { fill: var(--ink); }
.star { fill: var(--two); stroke: var(--page); stroke-width: 1.5; }
.bar { fill: var(--one); opacity: .45; }
.bar-finished { fill: var(--one); }
.bar-best { fill: var(--two); }
.trial { fill: none; stroke: var(--soft); stroke-width: 1; opacity: .18; }
.trial.good { stroke: var(--three); stroke-width: 1.5; opacity: .7; }
.trial.first { stroke: var(--two); stroke-width: 2.5; opacity: 1; }
.trial:hover { stroke: var(--ink); stroke-width: 2.5; opacity: 1; }
.parallel text { paint-order: stroke; stroke: var(--page); stroke-width: 4px; stroke-linejoin: round; }
.parallel .name { fill: var(--ink); }
.facts { display: flex; flex-wrap: wrap; gap: .8rem 2.2rem; margin: 1rem 0; padding: 0; }
.facts div { min-width: 6rem; }
.facts dt { color: var(--soft); font-size: 12.5px; }
.facts dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.meter { display: inline-block; height: .7em; min-width: 1px; background: var(--one); border-radius: 2px; }
.meter.two { background: var(--three); }
.hollow:hover, .filled:hover, .faint:hover, .star:hover { stroke: var(--ink); stroke-width: 2; opacity: 1; }
ul.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; color: var(--soft); }
ul.legend svg { width: 28px; height: 12px; vertical-align: middle; margin-right: .4rem; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: .15rem .8rem .15rem 0; text-align: right; border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child { text-align: left; }
td { font-variant-numeric: tabular-nums; }
td.words, th.words { text-align: left; }
@media (max-width: 45rem) {
  body { margin: 1rem auto; }
  figure > svg { min-width: 44rem; font-size: 15px; } }
summary { cursor: pointer; color: var(--soft); margin: .6rem 0; }
a { color: var(--one); }
code { font-size: 12.5px; overflow-wrap: anywhere; }
p.lead { color: var(--ink); font-size: 1.1rem; }
.good { color: var(--three); font-weight: 600; }
.bad { color: var(--two); font-weight: 600; }
.gauge { display: inline-block; position: relative; width: 7em; height: .7em; background: var(--grid); border-radius: 2px; }
.gauge::after { content: ""; position: absolute; left: 80%; top: -.2em; bottom: -.2em; border-left: 1.5px solid var(--ink); }
.gauge .fill { display: block; height: 100%; background: var(--three); border-radius: 2px; }
.gauge .over { background: var(--two); }
details.device { border-top: 1px solid var(--grid); padding: .4rem 0; break-inside: avoid; }
details.device > summary { color: var(--ink); }
@media print {
  :root { --ink: #000; --soft: #444; --page: #fff; --grid: #ddd; }
  body { margin: 0; max-width: none; font-size: 11px; }
  figure { overflow: visible; } }
)";

double share(double value, const Axis& axis) {
  if (axis.scale == AxisScale::linear) return (value - axis.low) / (axis.high - axis.low);
  return std::log(value / axis.low) / std::log(axis.high / axis.low);
}

std::vector<double> ticks_of(const Axis& axis) {
  return axis.scale == AxisScale::linear ? linear_ticks(axis.low, axis.high)
                                         : log_ticks(axis.low, axis.high);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string html_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      escape_html(title), kStyle, body);
}

std::string wide(std::string_view content) { return fmt::format("<figure>{}</figure>\n", content); }

std::string line_in_legend(std::string_view style, std::string_view words) {
  return fmt::format(
      "<li><svg viewBox=\"0 0 28 12\"><line class=\"{}\" x1=\"0\" x2=\"28\" y1=\"6\" "
      "y2=\"6\"/></svg>"
      "{}</li>\n",
      style, escape_html(words));
}

std::string point_in_legend(std::string_view style, std::string_view words) {
  return fmt::format(
      "<li><svg viewBox=\"0 0 28 12\"><circle class=\"{}\" cx=\"14\" cy=\"6\" "
      "r=\"4\"/></svg>{}</li>\n",
      style, escape_html(words));
}

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

Chart::Chart(Axis x, Axis y, ChartSize size) : x_(std::move(x)), y_(std::move(y)), size_(size) {}

double Chart::column(double x) const {
  return kLeft + share(x, x_) * (size_.width - kLeft - kRight);
}

double Chart::row(double y) const {
  return size_.height - kBottom - share(y, y_) * (size_.height - kTop - kBottom);
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
  for (const double tick : ticks_of(x_)) {
    text += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
        column(tick), kTop, size_.height - kBottom, size_.height - kBottom + 18, tick);
  }
  for (const double tick : ticks_of(y_)) {
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

}  // namespace fleetfit::app
