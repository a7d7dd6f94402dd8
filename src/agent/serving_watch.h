#pragma once

#include <filesystem>
#include <fstream>
#include <stop_token>
#include <thread>

#include "agent/job_place.h"
#include "fleetfit/app/serving.h"

namespace fleetfit::agent {

/// While it lives, reports on a bundle that is being served: switches as they happen, the latency
/// every second. Borrows all.
class ServingWatch {
 public:
  ServingWatch(app::Serving& serving, const std::filesystem::path& events, Reporter& reporter);
  ServingWatch(const ServingWatch&) = delete;
  ServingWatch& operator=(const ServingWatch&) = delete;
  ~ServingWatch();

 private:
  void watch(const std::stop_token& end);
  void pass_on_events();
  void tell_latency();

  app::Serving& serving_;
  Reporter& reporter_;
  std::ifstream events_;
  std::string line_ = {};  // what was read of a line that is not complete
  std::size_t requests_ = 0;
  std::jthread thread_;
};

}  // namespace fleetfit::agent
