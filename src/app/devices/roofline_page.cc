#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "app/svg_chart.h"
#include "fleetfit/app/probing.h"

namespace fleetfit::app {
namespace {

struct Extent {
  double low = std::numeric_limits<double>::max();
  double high = 0;

  void hold(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

double shown_speed(const RooflineNetwork& network) {
  return network.reached ? network.reached->gflop_per_s : network.bound_gflop_per_s;
}

Chart empty_chart(const Roofline& roofline) {
  constexpr double kMargin = 1.6;
  Extent intensity;
  Extent speed;
  for (const auto& network : roofline.networks) {
    intensity.hold(network.intensity());
    speed.hold(shown_speed(network));
  }
  speed.hold(roofline.peak_gflop_per_s);
  speed.hold(roofline.peak_int8_gop_per_s);
  for (const auto& slope : roofline.slopes)
    intensity.hold(roofline.peak_gflop_per_s / slope.gb_per_s);
  return Chart({"arithmetic intensity: FLOPs for each byte moved", intensity.low / kMargin,
                intensity.high * kMargin},
               {"GFLOP/s", speed.low / kMargin, speed.high * kMargin});
}

constexpr double kFarLeft = 1e-6;
constexpr double kFarRight = 1e9;

void draw_slopes(Chart& chart, const Roofline& roofline) {
  const double top = std::max(roofline.peak_gflop_per_s, roofline.peak_int8_gop_per_s);
  for (const auto& slope : roofline.slopes) {
    const std::vector<ChartPoint> line = {{kFarLeft, kFarLeft * slope.gb_per_s},
                                          {top / slope.gb_per_s, top}};
    chart.line(line, "line", fmt::format("{}: {:.1f} GB/s, measured", slope.name, slope.gb_per_s));
    const double ridge = roofline.peak_gflop_per_s / slope.gb_per_s;
    chart.text({ridge, roofline.peak_gflop_per_s}, slope.name);
  }
}

void draw_peak(Chart& chart, double peak, double steepest, std::string_view style,
               std::string_view title) {
  const std::vector<ChartPoint> line = {{peak / steepest, peak}, {kFarRight, peak}};
  chart.line(line, style, title);
}

void draw_roof(Chart& chart, const Roofline& roofline) {
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
  return fmt::format("{:.1f} GFLOP/s measured on {} ({} thread{}, {:.4g} ms)", reached.gflop_per_s,
                     reached.device, reached.threads, reached.threads == 1 ? "" : "s",
                     reached.latency_ms);
}

void draw_network(Chart& chart, const RooflineNetwork& network) {
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

std::string legend(const Roofline& roofline) {
  return "<ul class=\"legend\">\n" +
         line_in_legend("roof",
                        fmt::format("peak in float, {:.1f} GFLOP/s", roofline.peak_gflop_per_s)) +
         line_in_legend("roof-two",
                        fmt::format("peak in int8, {:.1f} GOP/s", roofline.peak_int8_gop_per_s)) +
         line_in_legend("line", "bandwidth of caches and memory") +
         point_in_legend("filled", "network, speed measured") +
         point_in_legend("hollow", "network, not measured: the most that it could reach") +
         "</ul>\n";
}

std::string table(const Roofline& roofline) {
  std::string rows;
  for (const auto& n : roofline.networks) {
    rows += fmt::format(
        "<tr><td>{}</td><td>{:.3f}</td><td>{:.1f}</td><td>{:.1f}</td><td>{:.1f}</td><td>{}</td>"
        "</tr>\n",
        escape_html(n.name), n.gflop, n.gbytes * 1e3, n.intensity(), n.bound_gflop_per_s,
        n.reached ? escape_html(reached_text(n)) : "");
  }
  return fmt::format(
      "<details><summary>All networks as a table</summary>\n<figure><table>\n<tr><th>network</th>"
      "<th>GFLOP</th><th>MB moved</th><th>FLOPs/byte</th><th>bound GFLOP/s</th><th>measured</th>"
      "</tr>\n{}</table></figure>\n</details>\n",
      rows);
}

}  // namespace

std::string roofline_page(const measure::ProbeReport& report, const Roofline& roofline) {
  auto chart = empty_chart(roofline);
  draw_roof(chart, roofline);
  // Those that were measured lie on top, where the pointer finds them.
  for (const auto& network : roofline.networks) {
    if (!network.reached) draw_network(chart, network);
  }
  for (const auto& network : roofline.networks) {
    if (network.reached) draw_network(chart, network);
  }
  const auto title = fmt::format("Roofline of {}", report.hardware.cpu_model);
  const auto body = fmt::format(
      "<h1>{}</h1>\n<p>{} thread{}; {}. Peaks and bandwidths are measured. Hollow points are not: "
      "they show what the machine could reach at most if every operator read its tensors from "
      "memory. Networks that stay in the caches may be faster than that, and convolutions by "
      "Winograd's method count more FLOPs than they execute.</p>\n{}{}{}",
      escape_html(title), report.threads, report.threads == 1 ? "" : "s",
      escape_html(report.kernels), wide(chart.svg()), legend(roofline), table(roofline));
  return html_page(title, body);
}

}  // namespace fleetfit::app
