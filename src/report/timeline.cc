#include "fleetfit/report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fleetfit/report/chart.h"
#include "fleetfit/report/html.h"

namespace fleetfit::report {
namespace {

constexpr double kWholeWidth = 960;
constexpr double kRow = 18;
constexpr double kForNames = 150;
constexpr double kForBars = kWholeWidth - kForNames - 20;
constexpr std::size_t kMostLetters = 20;

/// The unit in which a span of time reads well.
std::pair<double, std::string> unit_for(double seconds) {
  if (seconds > 3 * 86400) return {86400, "days"};
  if (seconds > 3 * 3600) return {3600, "hours"};
  if (seconds > 180) return {60, "minutes"};
  return {1, "seconds"};
}

std::string time_axis(double seconds, double bottom) {
  const auto [unit, name] = unit_for(seconds);
  std::string text;
  for (const double tick : linear_ticks(0, seconds / unit))
    text += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1}\"/>"
        "<text x=\"{0:.1f}\" y=\"{2}\" text-anchor=\"middle\">{3:g}</text>\n",
        kForNames + kForBars * tick * unit / seconds, bottom, bottom + 16, tick);
  return text + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                            kForNames + kForBars / 2, bottom + 34, name);
}

std::string name_svg(const std::string& name, std::size_t row) {
  const auto shown = name.size() > kMostLetters ? name.substr(0, kMostLetters - 1) + "…" : name;
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kForNames - 8,
                     kRow * static_cast<double>(row) + 14, escape_html(shown));
}

std::string bar_svg(const TimelineBar& bar, double seconds) {
  const auto share = [seconds](double of) {
    return std::isfinite(of / seconds) ? std::clamp(of / seconds, 0.0, 1.0) : 0;
  };
  const double x = kForNames + kForBars * share(bar.start_s);
  const double width = kForBars * share(bar.length_s);
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"1.5\">"
      "<title>{}</title></rect>\n",
      bar.style, x, kRow * static_cast<double>(bar.row) + 3, std::max(0.8, width - 0.6), kRow - 5,
      escape_html(bar.title));
}

}  // namespace

std::string timeline(std::span<const std::string> names, std::span<const TimelineBar> bars,
                     double seconds) {
  const double bottom = kRow * static_cast<double>(names.size()) + 6;
  auto marks = time_axis(seconds, bottom);
  for (std::size_t row = 0; row < names.size(); ++row) marks += name_svg(names[row], row);
  for (const auto& bar : bars) marks += bar_svg(bar, seconds);
  return wide(fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">\n{}</svg>", kWholeWidth,
                          bottom + 42, marks));
}

}  // namespace fleetfit::report
