#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "fleetfit/app/probing.h"
#include "fleetfit/report/chart.h"
#include "fleetfit/report/html.h"
#include "fleetfit/report/words.h"

namespace fleetfit::app {
namespace {

double shown_speed(const RooflineNetwork& network) {
  return network.reached ? network.reached->gflop_per_s : network.bound_gflop_per_s;
}

report::Chart empty_chart(const Roofline& roofline) {
  constexpr double kMargin = 1.6;
  report::Extent intensity;
  report::Extent speed;
  for (const auto& network : roofline.networks) {
    intensity.hold(network.intensity());
    speed.hold(shown_speed(network));
  }
  speed.hold(roofline.peak_gflop_per_s);
  speed.hold(roofline.peak_int8_gop_per_s);
  for (const auto& slope : roofline.slopes)
    intensity.hold(roofline.peak_gflop_per_s / slope.gb_per_s);
  return report::Chart({"arithmetic intensity: FLOPs for each byte moved", intensity.low / kMargin,
                        intensity.high * kMargin},
                       {"GFLOP/s", speed.low / kMargin, speed.high * kMargin});
}

constexpr double kFarLeft = 1e-6;
constexpr double kFarRight = 1e9;

void draw_slopes(report::Chart& chart, const Roofline& roofline) {
  const double top = std::max(roofline.peak_gflop_per_s, roofline.peak_int8_gop_per_s);
  for (const auto& slope : roofline.slopes) {
    const std::vector<report::ChartPoint> line = {{kFarLeft, kFarLeft * slope.gb_per_s},
                                                  {top / slope.gb_per_s, top}};
    chart.line(line, "line", fmt::format("{}: {:.1f} GB/s, measured", slope.name, slope.gb_per_s));
    const double ridge = roofline.peak_gflop_per_s / slope.gb_per_s;
    chart.text({ridge, roofline.peak_gflop_per_s}, slope.name);
  }
}

void draw_peak(report::Chart& chart, double peak, double steepest, std::string_view style,
               std::string_view title) {
  const std::vector<report::ChartPoint> line = {{peak / steepest, peak}, {kFarRight, peak}};
  chart.line(line, style, title);
}

void draw_roof(report::Chart& chart, const Roofline& roofline) {
  double steepest = 0;
  for (const auto& slope : roofline.slopes) steepest = std::max(steepest, slope.gb_per_s);
  draw_slopes(chart, roofline);
  draw_peak(chart, roofline.peak_gflop_per_s, steepest, "roof",
            fmt::format("peak in float: {:.1f} GFLOP/s, measured", roofline.peak_gflop_per_s));
  draw_peak(chart, roofline.peak_int8_gop_per_s, steepest, "roof-two",
            fmt::format("peak in int8: {:.1f} GOP/s, measured", roofline.peak_int8_gop_per_s));
}

std::string reached_text(const RooflineNetwork& network) {
  const auto& reached = *network.reached;
  return fmt::format("{:.1f} GFLOP/s measured on {} ({}, {:.4g} ms)", reached.gflop_per_s,
                     reached.device, report::counted(reached.threads, "thread"),
                     reached.latency_ms);
}

void draw_network(report::Chart& chart, const RooflineNetwork& network) {
  const auto about = fmt::format("{}: {:.3g} GFLOP, {:.3g} FLOPs for each byte", network.name,
                                 network.gflop, network.intensity());
  const auto speed = network.reached ? reached_text(network)
                                     : fmt::format(
                                           "not measured; at most {:.1f} GFLOP/s if all bytes come "
                                           "from memory",
                                           network.bound_gflop_per_s);
  chart.point({network.intensity(), shown_speed(network)}, network.reached ? "filled" : "hollow",
              about + "\n" + speed, network.name);
}

std::string legend_of(const Roofline& roofline) {
  return report::legend(
      {report::line_in_legend(
           "roof", fmt::format("peak in float, {:.1f} GFLOP/s", roofline.peak_gflop_per_s)),
       report::line_in_legend(
           "roof-two", fmt::format("peak in int8, {:.1f} GOP/s", roofline.peak_int8_gop_per_s)),
       report::line_in_legend("line", "bandwidth of caches and memory"),
       report::point_in_legend("filled", "network, speed measured"),
       report::point_in_legend("hollow", "network, not measured: the most that it could reach")});
}

std::string networks_table(const Roofline& roofline) {
  report::Table table(
      {"network", "GFLOP", "MB moved", "FLOPs/byte", "bound GFLOP/s", report::words("measured")});
  for (const auto& n : roofline.networks)
    table.add({report::escape_html(n.name), fmt::format("{:.3f}", n.gflop),
               fmt::format("{:.1f}", n.gbytes * 1e3), fmt::format("{:.1f}", n.intensity()),
               fmt::format("{:.1f}", n.bound_gflop_per_s),
               n.reached ? report::escape_html(reached_text(n)) : ""});
  return report::folded("All networks as a table", table.html());
}

}  // namespace

std::string roofline_page(const measure::ProbeReport& probe, const Roofline& roofline) {
  auto chart = empty_chart(roofline);
  draw_roof(chart, roofline);
  // Those that were measured lie on top, where the pointer finds them.
  for (const auto& network : roofline.networks) {
    if (!network.reached) draw_network(chart, network);
  }
  for (const auto& network : roofline.networks) {
    if (network.reached) draw_network(chart, network);
  }
  const auto title = fmt::format("Roofline of {}", probe.hardware.cpu_model);
  const auto about = fmt::format(
      "{}; {}. Peaks and bandwidths are measured. Hollow points are not: they show what the "
      "machine "
      "could reach at most if every operator read its tensors from memory. Networks that stay in "
      "the caches may be faster than that, and convolutions by Winograd's method count more FLOPs "
      "than they execute.",
      report::counted(probe.threads, "thread"), report::escape_html(probe.kernels));
  return report::html_page(title, report::paragraph(about) + report::wide(chart.svg()) +
                                      legend_of(roofline) + networks_table(roofline));
}

}  // namespace fleetfit::app
