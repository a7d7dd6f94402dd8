#pragma once

#include <string>
#include <vector>

#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/study/dialogue.h"
#include "fleetfit/study/studies.h"

/// Studies as tables for people.
namespace fleetfit::cli {

std::string studies_text(const std::vector<study::StudySummary>& studies);
std::string study_text(const study::StudyView& view);
std::string best_text(const study::BestOfStudy& best);
std::string report_text(const study::WrittenReport& written);
std::string asked_text(const study::Asked& asked);
std::string told_text(const std::vector<study::Told>& told);

/// A real run beside what was expected.
std::string confirmed_text(const app::ConfirmedInference& confirmed);

}  // namespace fleetfit::cli
