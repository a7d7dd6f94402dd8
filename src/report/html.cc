#include "fleetfit/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fleetfit/core/text.h"

namespace fleetfit::report {
namespace {

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

std::string legend_entry(std::string_view mark, std::string_view words) {
  return fmt::format("<li><svg viewBox=\"0 0 28 12\">{}</svg>{}</li>\n", mark, escape_html(words));
}

std::string_view class_of(const Column& column) {
  return column.is_words ? " class=\"words\"" : "";
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : core::visible(text)) {
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
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}</body>\n</"
      "html>\n",
      escape_html(title), kStyle, body);
}

std::string section(std::string_view title, std::string_view introduction,
                    std::string_view content) {
  if (content.empty()) return "";
  return fmt::format("<h2>{}</h2>\n{}{}", escape_html(title),
                     introduction.empty() ? "" : paragraph(introduction), content);
}

std::string section(std::string_view title, std::string_view content) {
  return section(title, "", content);
}

std::string paragraph(std::string_view content) { return fmt::format("<p>{}</p>\n", content); }

std::string wide(std::string_view content) { return fmt::format("<figure>{}</figure>\n", content); }

std::string folded(std::string_view summary, std::string_view content) {
  if (content.empty()) return "";
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape_html(summary),
                     content);
}

std::string list(std::span<const std::string> items) {
  if (items.empty()) return "";
  std::string entries;
  for (const auto& item : items) entries += fmt::format("<li>{}</li>\n", item);
  return fmt::format("<ul>\n{}</ul>\n", entries);
}

std::string facts(std::span<const Fact> facts) {
  std::string entries;
  for (const auto& [name, value] : facts)
    entries +=
        fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape_html(name), escape_html(value));
  return fmt::format("<dl class=\"facts\">\n{}</dl>\n", entries);
}

std::string meter(double share, std::string_view style) {
  return fmt::format(R"(<span class="meter {}" style="width:{:.2f}em"></span>)", style,
                     std::isfinite(share) ? 10 * std::clamp(share, 0.0, 1.0) : 0);
}

std::string gauge(double share) {
  if (!std::isfinite(share)) return "";
  constexpr double kShown = 1.25;  // of the limit; what is more looks the same
  constexpr double kManyTimes = 1000;
  constexpr double kMost = 1e300;  // a hundred times that is a number
  return fmt::format(
      R"(<span class="gauge"><span class="{}" style="width:{:.1f}%"></span></span> {} %)",
      share <= 1 ? "fill" : "fill over", 100 * std::clamp(share, 0.0, kShown) / kShown,
      std::abs(share) < kManyTimes ? fmt::format("{:.1f}", 100 * share)
                                   : fmt::format("{:.3g}", std::clamp(share, -kMost, kMost) * 100));
}

std::string line_in_legend(std::string_view style, std::string_view words) {
  return legend_entry(fmt::format(R"(<line class="{}" x1="0" x2="28" y1="6" y2="6"/>)", style),
                      words);
}

std::string point_in_legend(std::string_view style, std::string_view words) {
  return legend_entry(fmt::format(R"(<circle class="{}" cx="14" cy="6" r="4"/>)", style), words);
}

std::string legend(std::initializer_list<std::string> entries) {
  std::string all;
  for (const auto& entry : entries) all += entry;
  return fmt::format("<ul class=\"legend\">\n{}</ul>\n", all);
}

Column words(std::string title) {
  Column column(std::move(title));
  column.is_words = true;
  return column;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(const std::vector<std::string>& cells) {
  rows_ += "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t spans = i + 1 < cells.size() ? 1 : columns_.size() - i;
    rows_ += fmt::format("<td{}{}>{}</td>", class_of(columns_[i]),
                         spans == 1 ? "" : fmt::format(" colspan=\"{}\"", spans), cells[i]);
  }
  rows_ += "</tr>\n";
}

std::string Table::html() const {
  if (rows_.empty()) return "";
  std::string head;
  for (const auto& column : columns_)
    head += fmt::format("<th{}>{}</th>", class_of(column), escape_html(column.title));
  return wide(fmt::format("<table>\n<tr>{}</tr>\n{}</table>", head, rows_));
}

}  // namespace fleetfit::report
