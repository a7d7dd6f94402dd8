#include "fleetfit/report/parallel_coordinates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fleetfit/report/html.h"

namespace fleetfit::report {
namespace {

constexpr double kPlotWidth = 960;
constexpr double kPlotHeight = 380;
constexpr double kPlotTop = 44;
constexpr double kPlotBottom = 340;
constexpr double kPlotSide = 60;

// What is no number, or far off, is beside its axis.
double height_at(double share) {
  constexpr double kOff = 0.25;
  const double shown = std::isfinite(share) ? std::clamp(share, -kOff, 1 + kOff) : -kOff;
  return kPlotBottom - shown * (kPlotBottom - kPlotTop);
}

double column_of(std::size_t axis, std::size_t axes) {
  return kPlotSide +
         static_cast<double>(axis) * (kPlotWidth - 2 * kPlotSide) / static_cast<double>(axes - 1);
}

std::string line_svg(const AcrossLine& line) {
  std::string points;
  for (std::size_t i = 0; i < line.places.size(); ++i)
    points += fmt::format("{}{:.0f},{:.1f}", i == 0 ? "" : " ", column_of(i, line.places.size()),
                          height_at(line.places[i]));
  return fmt::format("<polyline class=\"{}\" points=\"{}\"><title>{}</title></polyline>\n",
                     line.style, points, escape_html(line.title));
}

std::string axis_svg(const VerticalAxis& axis, double x) {
  auto text = fmt::format(
      "<line class=\"frame\" x1=\"{0:.0f}\" x2=\"{0:.0f}\" y1=\"{1}\" y2=\"{2}\"/>"
      "<text class=\"name\" x=\"{0:.0f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
      x, kPlotTop, kPlotBottom, kPlotTop - 22, escape_html(axis.title));
  for (const auto& [share, label] : axis.labels)
    text += fmt::format("<text class=\"tick\" x=\"{:.0f}\" y=\"{:.1f}\">{}</text>\n", x + 5,
                        height_at(share) + 4, escape_html(label));
  return text;
}

}  // namespace

std::string parallel_coordinates(std::span<const VerticalAxis> axes,
                                 std::span<const AcrossLine> lines) {
  std::string marks;
  for (const auto& line : lines) marks += line_svg(line);
  for (std::size_t i = 0; i < axes.size(); ++i)
    marks += axis_svg(axes[i], column_of(i, axes.size()));
  return wide(fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" class=\"parallel\">\n{}</svg>",
                          kPlotWidth, kPlotHeight, marks));
}

}  // namespace fleetfit::report
