#include "app/search/search_problem.h"

#include <fmt/format.h>

#include "fleetfit/space/design_index.h"

namespace fleetfit::app {

SourceReport report_of(const std::string& quantity, const OpenedSource& source) {
  return {.quantity = quantity,
          .text = source.text,
          .about = source.about,
          .is_measured = source.is_measured,
          .rank_correlation = source.rank_correlation};
}

std::vector<SourceReport> OpenedProblem::reports() const {
  std::vector<SourceReport> reports;
  for (const auto& [quantity, source] : sources) reports.push_back(report_of(quantity, source));
  return reports;
}

Spent OpenedProblem::spent() const {
  Spent sum;
  for (const auto& [quantity, source] : sources) {
    if (!source.spent) continue;
    const Spent one = source.spent();
    sum.measurements += one.measurements;
    sum.machine_s += one.machine_s;
  }
  return sum;
}

Status keep_known(const space::Space& space, const OpenedSource& source,
                  std::optional<space::Population>& listed) {
  if (!source.designs) return {};
  if (!listed) {
    listed = *source.designs;
  } else {
    space::DesignIndex known(space);
    for (std::size_t i = 0; i < source.designs->size(); ++i) known.add((*source.designs)[i]);
    space::Population left(listed->genes());
    for (std::size_t i = 0; i < listed->size(); ++i)
      if (known.find(std::as_const(*listed)[i])) left.add(std::as_const(*listed)[i]);
    listed = std::move(left);
  }
  if (listed->size() > 0) return {};
  return fail(ErrorCode::not_found,
              fmt::format("{}: it has no design in common with the other sources", source.text));
}

Result<OpenedProblem> open_problem(const SearchPlace& place, const ProblemRequest& request) {
  FLEETFIT_ASSIGN(const auto space, space::find_space(request.space));
  const SourcePlace source_place{.space = *space,
                                 .workplace = place.workplace,
                                 .progress = place.progress,
                                 .stop = place.stop};
  OpenedProblem opened;
  opened.problem.space = space;
  const auto open = [&](const std::string& text, Quantity quantity) -> Status {
    FLEETFIT_ASSIGN(auto source, open_source(source_place, text, quantity, request.sources));
    FLEETFIT_TRY(keep_known(*space, source, opened.listed));
    opened.sources.emplace_back(to_string(quantity), std::move(source));
    return {};
  };
  for (const auto& [quantity, cost] : request.costs) {
    if (cost->source.empty()) continue;
    FLEETFIT_TRY(open(cost->source, quantity));
    search::Cost term{.name = std::string(to_string(quantity)),
                      .source = opened.sources.back().second.source.get(),
                      .weight = cost->weight};
    if (cost->budget) term.limit = *cost->budget;
    opened.problem.costs.push_back(std::move(term));
  }
  FLEETFIT_TRY(open(request.accuracy, Quantity::accuracy));
  opened.problem.accuracy = opened.sources.back().second.source.get();
  FLEETFIT_TRY(check(opened.problem));
  return opened;
}

}  // namespace fleetfit::app
