#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/app/searching.h"
#include "fleetfit/search/problem.h"

namespace fleetfit::app {

/// Where sources are opened, before the space is known.
struct SearchPlace {
  Workplace& workplace;
  core::Progress& progress;
  std::stop_token stop = {};
};

struct ProblemRequest {
  std::string space = {};
  std::string accuracy = {};
  std::vector<std::pair<Quantity, const CostRequest*>> costs = {};  ///< without source: left out
  SourceOptions sources = {};
};

/// A problem together with the sources that it borrows.
struct OpenedProblem {
  search::Problem problem = {};
  std::vector<std::pair<std::string, OpenedSource>> sources = {};  ///< by what they are of
  /// Where a source knows but some designs: those that all know.
  std::optional<space::Population> listed = std::nullopt;

  std::vector<SourceReport> reports() const;
  Spent spent() const;
};

/// Fails as `space::find_space` and `open_source` do, and with `not_found` if there is no design
/// that all sources know.
Result<OpenedProblem> open_problem(const SearchPlace& place, const ProblemRequest& request);

/// Takes the designs out of the list that the source does not know.
Status keep_known(const space::Space& space, const OpenedSource& source,
                  std::optional<space::Population>& listed);

SourceReport report_of(const std::string& quantity, const OpenedSource& source);

}  // namespace fleetfit::app
