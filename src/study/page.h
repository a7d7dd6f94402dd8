#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "study/importance.h"
#include "study/sample.h"

/// A study as a page of HTML, and the drawings on it.
namespace fleetfit::study {

struct StudyPageInput {
  OpenedStudy opened = {};
  StudySample sample = {};
  std::optional<std::int64_t> best = std::nullopt;   ///< number of the best trial
  std::vector<store::InferenceRecord> tunings = {};  ///< that were done for the study
};

/// A page of HTML: what to deploy, how the search went, what the parameters did, what it cost.
std::string study_page(const StudyPageInput& input);

/// The values of a trial's parameters, for people: "layers 34, learning_rate 0.01".
std::string params_text(const tune::Study& study, const tune::Trial& trial);

/// Everything that is drawn of one study. Borrows.
struct StudyDrawing {
  const tune::Study& study;
  std::span<const SeenTrial> trials;
  std::optional<std::int64_t> best = std::nullopt;  ///< number of the best trial
};

// Each drawing is HTML, empty if there is nothing to draw.

/// The first objective of each trial by number, with the best so far.
std::string history_chart(const StudyDrawing& drawing);

/// Two numbers of each trial against each other, with those that no other beats in both.
struct PlanePoint {
  const SeenTrial* seen = nullptr;
  double x = 0;
  double y = 0;
};
struct Plane {
  std::string x_label = {};
  std::string y_label = {};
  bool x_is_better_low = true;
  bool y_is_better_low = false;
  std::vector<PlanePoint> points = {};
};
std::string plane_chart(const StudyDrawing& drawing, const Plane& plane);

/// One axis for each parameter and one for the objective, and a line for each trial; at most the
/// twelve most important parameters.
std::string parallel_coordinates(const StudyDrawing& drawing, const ImportanceReport& importance);

/// When which worker trained which trial.
std::string worker_timeline(const StudyDrawing& drawing);

}  // namespace fleetfit::study
