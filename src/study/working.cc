#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "fleetfit/study/tuning.h"
#include "fleetfit/tune/worker.h"
#include "study/crew.h"

namespace fleetfit::study {
namespace {

/// Asks to stop when `stop` does, or when the input `parent` ends.
class ParentWatch {
 public:
  ParentWatch(int parent, const std::stop_token& stop)
      : passed_on_(stop, PassOn{&source_}),
        thread_([this, parent](const std::stop_token& end) { watch(parent, end); }) {}

  std::stop_token token() const { return source_.get_token(); }

 private:
  struct PassOn {
    std::stop_source* source;
    void operator()() const { source->request_stop(); }
  };

  void watch(int parent, const std::stop_token& end) {
    constexpr int kTickMs = 200;  // how long this object's end may take
    while (parent >= 0 && !end.stop_requested()) {
      pollfd polled{parent, POLLIN, 0};
      if (::poll(&polled, 1, kTickMs) <= 0) continue;
      std::array<char, 256> ignored;
      if (::read(parent, ignored.data(), ignored.size()) > 0) continue;
      source_.request_stop();
      return;
    }
  }

  std::stop_source source_;
  std::stop_callback<PassOn> passed_on_;
  std::jthread thread_;
};

void say(std::string_view text) { fmt::print(stderr, "fleetfit: {}\n", text); }

}  // namespace

Status work_on_study(const StudyPlace& place, const WorkRequest& request,
                     const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto record, place.studies.find_study(request.study));
  if (!record)
    return fail(ErrorCode::not_found, fmt::format("there is no study '{}'", request.study));
  FLEETFIT_ASSIGN(auto study, tune::parse_study(record->definition, request.study));
  study.seed = record->seed;
  FLEETFIT_ASSIGN(auto command, trial_command(study.workload));

  tune::WorkerHooks hooks{.say = say};
  const auto tuner = place.inference ? place.inference(study) : nullptr;
  if (tuner)
    hooks.structure_of = [&tuner](const auto& model) { return tuner->structure_of(model); };
  const ParentWatch watch(request.parent, stop);
  return tune::work_on_study(place.studies, study, place.clock,
                             {.name = name_of_this_worker(request.as),
                              .command = std::move(command),
                              .folder = folder_of_study(request.folder, *record),
                              .lease = request.lease,
                              .idle_limit = request.idle_limit},
                             hooks, watch.token());
}

}  // namespace fleetfit::study
