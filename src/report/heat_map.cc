#include "fleetfit/report/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fleetfit/report/html.h"

namespace fleetfit::report {
namespace {

constexpr double kCell = 30;
constexpr double kLeastForNames = 130;
constexpr double kWidthOfLetter = 6.6;

double room_for(std::span<const std::string> names) {
  std::size_t longest = 0;
  for (const auto& name : names) longest = std::max(longest, name.size());
  return std::max(kLeastForNames, kWidthOfLetter * static_cast<double>(longest) + 12);
}

std::string cell_svg(const HeatCell& cell, double x, double y) {
  const double strength = std::isfinite(cell.strength) ? std::clamp(cell.strength, 0.0, 1.0) : 0;
  return fmt::format(
      "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
      "style=\"fill:var(--{});fill-opacity:{:.3f}\" stroke=\"var(--page)\"/>"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" style=\"font-size:10px;fill:var(--ink)\">"
      "{}</text></g>\n",
      escape_html(cell.title), x, y, kCell, kCell, cell.stands_out ? "three" : "one",
      0.06 + 0.8 * strength * strength, x + kCell / 2, y + kCell / 2 + 4, escape_html(cell.words));
}

std::string names_svg(std::span<const std::string> names, double room) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double middle = room + (static_cast<double>(i) + 0.5) * kCell;
    const auto name = escape_html(names[i]);
    text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", room - 6,
                        middle + 4, name);
    text += fmt::format("<text transform=\"translate({} {}) rotate(-60)\">{}</text>\n", middle + 4,
                        room - 6, name);
  }
  return text;
}

}  // namespace

std::string heat_map(std::span<const std::string> names,
                     const std::function<HeatCell(std::size_t, std::size_t)>& cell) {
  const double room = room_for(names);
  const double side = room + kCell * static_cast<double>(names.size());
  const auto place = [room](std::size_t i) { return room + kCell * static_cast<double>(i); };
  std::string marks = names_svg(names, room);
  for (std::size_t row = 0; row < names.size(); ++row)
    for (std::size_t column = 0; column < names.size(); ++column)
      marks += cell_svg(cell(row, column), place(column), place(row));
  return wide(
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"heat map\">\n{}</svg>\n",
                  side + 40, side, marks));
}

}  // namespace fleetfit::report
