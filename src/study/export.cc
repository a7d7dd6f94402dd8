#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/report/words.h"
#include "fleetfit/study/studies.h"
#include "study/sample.h"

namespace fleetfit::study {
namespace {

using core::CsvCell;

constexpr std::size_t kPage = 10'000;

std::vector<std::string> header_of(const tune::Study& study) {
  std::vector<std::string> header = {"trial", "status", "bracket",
                                     "level", "epochs", "data_fraction"};
  for (const auto& parameter : study.parameters.all()) header.push_back(parameter.name);
  header.insert(header.end(), {"accuracy", "loss", "training_s", "training_j"});
  // A goal may be the accuracy itself, or called like a parameter.
  for (const auto& label : objective_labels(study)) header.push_back("objective: " + label);
  header.emplace_back("limits_kept");
  if (study.inference)
    for (const auto& device : study.inference->devices)
      for (const auto* what : {"latency_ms", "throughput", "energy_mj"})
        header.push_back(fmt::format("{} on {}", what, device));
  header.insert(header.end(), {"structure", "model_file", "worker", "ended", "reason"});
  return header;
}

CsvCell cell_of(const std::optional<double>& number) {
  return number ? CsvCell(*number) : CsvCell();
}

/// A parameter's value as it is written in study files.
CsvCell cell_of(const nlohmann::ordered_json& params, const std::string& name) {
  const auto at = params.find(name);
  if (at == params.end()) return {};
  if (at->is_string()) return at->get<std::string>();
  return at->dump();
}

void add_result(const SeenTrial& seen, std::vector<CsvCell>& row) {
  if (const auto& result = seen.view.result) {
    row.insert(row.end(), {result->accuracy, cell_of(result->loss), result->training_s,
                           cell_of(result->training_j)});
  } else {
    row.insert(row.end(), 4, CsvCell());
  }
}

void add_inference(const tune::Study& study, const SeenTrial& seen, std::vector<CsvCell>& row) {
  if (!study.inference) return;
  for (std::size_t i = 0; i < study.inference->devices.size(); ++i) {
    if (seen.trial.inference) {
      const auto& known = (*seen.trial.inference)[i];
      row.insert(row.end(), {known.latency_ms, known.throughput, cell_of(known.energy_mj)});
    } else {
      row.insert(row.end(), 3, CsvCell());
    }
  }
}

std::vector<CsvCell> row_of(const tune::Study& study, const SeenTrial& seen) {
  const auto& view = seen.view;
  const auto& record = view.record;
  std::vector<CsvCell> row = {record.number, std::string(status_name(record.state)), record.bracket,
                              record.level};
  if (view.budget) {
    row.insert(row.end(), {view.budget->epochs, view.budget->data_fraction});
  } else {
    row.insert(row.end(), 2, CsvCell());
  }
  const auto params = study.parameters.to_json(seen.trial.point);
  for (const auto& parameter : study.parameters.all())
    row.push_back(cell_of(params, parameter.name));
  add_result(seen, row);
  for (std::size_t i = 0; i < study.objective.count(); ++i)
    row.push_back(i < view.values.size() ? CsvCell(view.values[i]) : CsvCell());
  row.push_back(!view.result ? CsvCell() : CsvCell(view.violation > 0 ? "no" : "yes"));
  add_inference(study, seen, row);
  row.insert(row.end(), {record.structure, record.model_file, record.worker});
  row.push_back(record.levels.empty() ? CsvCell()
                                      : CsvCell(report::date_text(record.levels.back().ended)));
  row.emplace_back(record.reason);
  return row;
}

}  // namespace

Result<ExportedStudy> export_study(store::StudyStore& store, std::string_view name,
                                   const std::filesystem::path& output) {
  FLEETFIT_ASSIGN(const auto opened, open_study(store, name));
  FLEETFIT_ASSIGN(auto file, core::FileWriter::open(output));
  const auto header = header_of(opened.study);
  const auto title = core::CsvWriter(header).text();
  FLEETFIT_TRY(file.write(title));
  ExportedStudy exported{.file = output.string()};
  for (;;) {
    FLEETFIT_ASSIGN(auto page,
                    store.list_trials(name, exported.trials, kPage, store::LevelDetail::all));
    if (page.empty()) break;
    exported.trials += static_cast<std::int64_t>(page.size());
    FLEETFIT_ASSIGN(const auto trials, see_trials(opened, std::move(page)));
    core::CsvWriter rows(header);
    for (const auto& seen : trials) rows.add_row(row_of(opened.study, seen));
    const auto text = std::string_view(rows.text()).substr(title.size());
    FLEETFIT_TRY(file.write(text));
  }
  FLEETFIT_TRY(file.commit());
  return exported;
}

}  // namespace fleetfit::study
