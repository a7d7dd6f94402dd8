#include "fleetfit/app/spaces.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/cost/cost.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/space/space.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;
using space::Space;

SpaceSummary summarize(const Space& space) {
  const auto size = space.size();
  return {.name = space.name(),
          .description = space.description(),
          .designs = size.decimal(),
          .designs_log10 = size.log10(),
          .columns = space.columns()};
}

DesignText text_of(const Space& space, space::Design design) {
  DesignText text{.design = space.format(design), .cells = {}};
  const auto cells = space.cells(design);
  for (std::size_t i = 0; i < cells.size(); ++i)
    text.cells.emplace_back(space.columns()[i], cells[i]);
  return text;
}

std::vector<std::string_view> at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

Result<std::vector<space::Choice>> read_design(const Space& space, std::string_view text) {
  const bool has_cells = space.columns().size() > 1 && text.find(',') != std::string_view::npos;
  auto design = has_cells ? space.parse_cells(at_commas(text)) : space.parse(text);
  if (!design) return core::within(fmt::format("{} '{}'", space.name(), text), design.error());
  return design;
}

std::vector<std::pair<std::string, double>> counts_of(const Space& space, space::Design design) {
  // Every space has it.
  const std::size_t encoding = space.find_encoding("counts").value();
  const auto& names = space.encodings()[encoding].features;
  std::vector<double> values(names.size());
  space.encode(space::DesignBatch(design, design.size()), encoding, values);
  std::vector<std::pair<std::string, double>> counts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (values[i] != 0) counts.emplace_back(names[i], values[i]);
  }
  return counts;
}

Json cells_json(const DesignText& text) {
  Json cells = Json::object();
  for (const auto& [column, cell] : text.cells) cells[column] = cell;
  return cells;
}

Json summary_json(const SpaceSummary& space) {
  return {{"name", space.name},
          {"description", space.description},
          {"designs", space.designs},
          {"designs_log10", space.designs_log10},
          {"columns", space.columns}};
}

}  // namespace

std::vector<SpaceSummary> list_spaces() {
  std::vector<SpaceSummary> list;
  for (const auto& space : space::spaces()) list.push_back(summarize(*space));
  return list;
}

Result<SpaceDetails> show_space(std::string_view space) {
  FLEETFIT_ASSIGN(const auto found, space::find_space(space));
  const Space& known = *found;
  SpaceDetails details{.space = summarize(known), .version = known.version()};
  for (const auto& gene : known.genes()) details.genes.push_back({gene.name, gene.choices});
  for (const auto& encoding : known.encodings())
    details.encodings.push_back({encoding.name, encoding.features.size()});
  FLEETFIT_ASSIGN(const auto example, space::sample_designs(known, {.count = 1}));
  details.example = known.format(example[0]);
  return details;
}

Result<DesignSummary> show_design(std::string_view space, std::string_view design,
                                  const std::optional<std::filesystem::path>& file) {
  FLEETFIT_ASSIGN(const auto found, space::find_space(space));
  const Space& known = *found;
  FLEETFIT_ASSIGN(const auto choices, read_design(known, design));
  FLEETFIT_ASSIGN(const auto graph, known.lower(choices));
  FLEETFIT_ASSIGN(const auto cost, cost::count_cost(graph));
  if (file) {
    FLEETFIT_TRY(graph::export_onnx_file(graph, *file));
  }
  return DesignSummary{.text = text_of(known, choices),
                       .flops = cost.total.flops,
                       .params = cost.total.params,
                       .weight_bytes = cost.total.weight_bytes,
                       .peak_activation_bytes = cost::peak_activation_memory(graph).bytes,
                       .operators = graph.nodes.size(),
                       .input = graph.tensor(graph.inputs[0]).shape.value_or(graph::Shape{}),
                       .counts = counts_of(known, choices),
                       .slots = known.active_slots(choices).count(),
                       .live_slots = known.live_slots(choices).count()};
}

Result<std::vector<DesignText>> sample_space(const DesignSampleRequest& request) {
  FLEETFIT_ASSIGN(const auto found, space::find_space(request.space));
  FLEETFIT_ASSIGN(const auto designs, space::sample_designs(*found, {.seed = request.seed,
                                                                     .first = request.first,
                                                                     .count = request.samples}));
  std::vector<DesignText> texts;
  for (std::size_t i = 0; i < designs.size(); ++i) texts.push_back(text_of(*found, designs[i]));
  return texts;
}

Status write_designs(const std::vector<DesignText>& designs, const std::filesystem::path& file) {
  if (designs.empty()) return fail(ErrorCode::invalid_input, "there are no designs to write");
  std::vector<std::string> header;
  for (const auto& [column, cell] : designs.front().cells) header.push_back(column);
  core::CsvWriter table(header);
  for (const auto& design : designs) {
    std::vector<core::CsvCell> row;
    for (const auto& [column, cell] : design.cells) row.emplace_back(cell);
    table.add_row(row);
  }
  return core::write_file(file, table.text());
}

Json to_json(const std::vector<SpaceSummary>& spaces) {
  return core::json_list(spaces, summary_json);
}

Json to_json(const SpaceDetails& details) {
  Json document = summary_json(details.space);
  document["version"] = details.version;
  document["genes"] = Json::array();
  for (const auto& [name, choices] : details.genes)
    document["genes"].push_back({{"name", name}, {"choices", choices}});
  document["encodings"] = Json::array();
  for (const auto& [name, features] : details.encodings)
    document["encodings"].push_back({{"name", name}, {"features", features}});
  document["example"] = details.example;
  return document;
}

Json to_json(const DesignSummary& design) {
  Json counts = Json::object();
  for (const auto& [kind, count] : design.counts) counts[kind] = count;
  return {{"design", design.text.design},
          {"cells", cells_json(design.text)},
          {"input", design.input},
          {"flops", design.flops},
          {"params", design.params},
          {"weight_bytes", design.weight_bytes},
          {"peak_activation_bytes", design.peak_activation_bytes},
          {"operators", design.operators},
          {"slots", design.slots},
          {"live_slots", design.live_slots},
          {"counts", std::move(counts)}};
}

Json to_json(const std::vector<DesignText>& designs) {
  Json list = Json::array();
  for (const auto& text : designs)
    list.push_back({{"design", text.design}, {"cells", cells_json(text)}});
  return list;
}

}  // namespace fleetfit::app
