#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/app/learning.h"
#include "fleetfit/learned/samples.h"
#include "fleetfit/space/table.h"

/// Reading what is learned from, and having fleetfit-train learn.
namespace fleetfit::app {

/// Sources of all that is measured.
struct LearnSources {
  const space::Space* space = nullptr;
  std::vector<std::string> devices = {};
  learned::KnownFeatures features = {};
  std::vector<OpenedSource> latency = {};  ///< of each device
  std::vector<OpenedSource> energy = {};   ///< of each device, or none
  OpenedSource accuracy = {};
  space::Population candidates = space::Population(1);  ///< designs that can be measured
};

/// Opens everything; `place` must outlive it. Errors name file, column or device.
Result<LearnSources> open_learn_sources(const LearnData& data, const SourcePlace& place);

/// Measures designs on all devices and adds them.
Status add_measured(const LearnSources& sources, space::DesignBatch designs,
                    learned::Samples& samples);

/// Samples without any design.
learned::Samples no_samples(const LearnSources& sources);

/// Runs fleetfit-train on samples and reads the model that it wrote.
Result<learned::Model> run_learning(const learned::Samples& samples, const LearnTraining& training,
                                    const std::filesystem::path& output,
                                    const std::stop_token& stop);

}  // namespace fleetfit::app
