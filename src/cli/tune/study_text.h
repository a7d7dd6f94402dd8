#pragma once

#include <string>
#include <vector>

#include "fleetfit/app/studies.h"
#include "fleetfit/app/study_dialogue.h"

/// Studies as tables for people.
namespace fleetfit::cli {

std::string studies_text(const std::vector<app::StudySummary>& studies);
std::string study_text(const app::StudyView& view);
std::string best_text(const app::BestOfStudy& best);
std::string report_text(const app::WrittenReport& written);
std::string asked_text(const app::Asked& asked);
std::string told_text(const std::vector<app::Told>& told);

}  // namespace fleetfit::cli
