#include "fleetfit/app/workplace.h"
#include "fleetfit/app/inference_tuning.h"

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "binding.h"
#include "fleetfit/app/devices.h"
#include "fleetfit/app/measuring.h"
#include "fleetfit/app/predicting.h"
#include "fleetfit/app/running.h"
#include "fleetfit/app/searching.h"
#include "fleetfit/core/clock.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/study/dialogue.h"
#include "fleetfit/study/studies.h"

namespace fleetfit::python {
namespace {

using Path = std::filesystem::path;
using Paths = std::vector<Path>;
using Names = std::vector<std::string>;
using Dimensions = std::map<std::string, std::int64_t>;

class Workplace;

/// Whose search has called the function of Python's that runs in this thread; null: none.
thread_local const Workplace* searched_with = nullptr;

/// A store with the programs that help. One call at a time works with it.
class Workplace {
 public:
  Workplace(const std::string& store, const Path& program, bool progress)
      : opened_(value_of(app::open_workplace(store, clock_, {.self = program}))),
        progress_(progress ? core::make_terminal_progress(clock_) : core::make_silent_progress()) {}

  core::Progress& progress() { return *progress_; }

  /// Does short work on it.
  template <class Work>
  auto with(Work&& work) {
    refuse_own_search();
    return value_of(unlocked([&] {
      const std::scoped_lock lock(mutex_);
      return work(opened_);
    }));
  }

  /// Does long work: `work(workplace, stop)`.
  template <class Work>
  auto with_stop(Work&& work) {
    refuse_own_search();
    return interruptible([&](const std::stop_token& stop) {
      const std::scoped_lock lock(mutex_);
      return work(opened_, stop);
    });
  }

  template <class Work>
  py::object answer(Work&& work) {
    return document(with(std::forward<Work>(work)));
  }
  template <class Work>
  py::object long_answer(Work&& work) {
    return document(with_stop(std::forward<Work>(work)));
  }

 private:
  /// A source of a search that waits for the workplace would wait for ever.
  void refuse_own_search() const {
    if (searched_with != this) return;
    raise({ErrorCode::invalid_input,
           "a source cannot use the workplace that its own search works with; open another one"});
  }

  core::SystemClock clock_;
  std::mutex mutex_;
  app::Workplace opened_;  // guarded by mutex_
  std::unique_ptr<core::Progress> progress_;
};

using Bound = py::class_<Workplace, std::shared_ptr<Workplace>>;  // its studies share it

void add_devices(Bound& bound) {
  bound
      .def(
          "add_device",
          [](Workplace& self, const std::string& name, const std::string& runtime, int threads,
             const std::string& cores, const std::string& precision, std::optional<int> cpu_quota,
             const std::string& memory_limit, bool replace) {
            return self.answer([&](app::Workplace& place) {
              return app::add_device(place, {.name = name,
                                             .runtime = runtime,
                                             .threads = threads,
                                             .cores = cores,
                                             .precision = precision,
                                             .cpu_quota_percent = cpu_quota,
                                             .memory_limit = memory_limit,
                                             .existing = replace ? app::ExistingDevice::replace
                                                                 : app::ExistingDevice::keep});
            });
          },
          py::arg("name"), py::arg("runtime") = "auto", py::arg("threads") = 1,
          py::arg("cores") = "", py::arg("precision") = "fp32", py::arg("cpu_quota") = py::none(),
          py::arg("memory_limit") = "", py::arg("replace") = false,
          "Names a way to run models: a runtime with threads, cores, precision and limits.")
      .def(
          "devices",
          [](Workplace& self) {
            return self.answer([](app::Workplace& place) { return app::list_devices(place); });
          },
          "`local` and all devices that were added.")
      .def(
          "remove_device",
          [](Workplace& self, const std::string& name) {
            self.with([&](app::Workplace& place) -> Result<bool> {
              FLEETFIT_TRY(app::remove_device(place, name));
              return true;
            });
          },
          py::arg("name"), "Forgets a device; its measurements stay.");
}

measure::Protocol protocol_of(double max_time_s, double target_percent, bool ops) {
  auto protocol = measure::protocol_within(max_time_s);
  protocol.target = target_percent / 100;
  protocol.operators = ops;
  return protocol;
}

py::object measure_models(Workplace& self, const Paths& models, const Names& devices, bool ops,
                          double max_time_s, double target_percent, std::int64_t batch,
                          const Dimensions& dimensions, int threads) {
  const app::MeasureRequest request{.models = models,
                                    .options = {.dimensions = dimensions, .batch = batch},
                                    .devices = devices,
                                    .protocol = protocol_of(max_time_s, target_percent, ops),
                                    .threads = threads_or_all(threads)};
  return self.long_answer([&](app::Workplace& place, const std::stop_token& stop) {
    return app::measure_models(place, request, self.progress(), stop);
  });
}

py::object measure_designs(Workplace& self, const space::Space& space, const py::object& designs,
                           const Names& devices, bool ops, double max_time_s, int threads) {
  const app::DesignsRequest request{.space = space.name(),
                                    .devices = devices,
                                    .protocol = protocol_of(max_time_s, 2, ops),
                                    .threads = threads_or_all(threads),
                                    .designs = designs_from(space, designs)};
  return self.long_answer([&](app::Workplace& place, const std::stop_token& stop) {
    return app::measure_designs(place, request, self.progress(), stop);
  });
}

py::object export_table(Workplace& self, const Path& output, const std::string& space) {
  return self.answer([&](app::Workplace& place) {
    return space.empty() ? app::export_measurements(place, output)
                         : app::export_designs(place, space, output);
  });
}

py::object run_model(Workplace& self, const Path& model, const Path& folder,
                     const std::vector<std::pair<std::string, Path>>& inputs, bool random_inputs,
                     const std::string& device, std::int64_t batch, const Dimensions& dimensions,
                     std::uint64_t seed) {
  app::RunRequest request{
      .model = model,
      .options = {.dimensions = dimensions, .batch = batch},
      .device = device,
      .missing = random_inputs ? app::MissingInputs::random : app::MissingInputs::refuse,
      .folder = folder,
      .seed = seed};
  for (const auto& [name, file] : inputs) request.inputs.push_back({name, file});
  return self.answer([&](app::Workplace& place) { return app::run_model(place, request); });
}

void add_measuring(Bound& bound) {
  const Names local{std::string(app::kLocalDevice)};
  bound
      .def("measure", &measure_models, py::arg("models"), py::arg("devices") = local,
           py::arg("ops") = false, py::arg("max_time_s") = 30.0, py::arg("target_ci") = 2.0,
           py::arg("batch") = 1, py::arg("dimensions") = Dimensions(), py::arg("threads") = 0,
           "How long models take on devices: a record for each model and device. A measurement "
           "that fails is a record with its reason.")
      .def("measure_designs", &measure_designs, py::arg("space"), py::arg("designs"),
           py::arg("devices") = local, py::arg("ops") = false, py::arg("max_time_s") = 30.0,
           py::arg("threads") = 0,
           "The same for designs of a space. What was measured before is not measured again.")
      .def("export", &export_table, py::arg("output"), py::arg("space") = "",
           "Writes what was measured as CSV: a row for each model, a column for each device.")
      .def("run_model", &run_model, py::arg("model"), py::arg("folder"), py::arg("inputs"),
           py::arg("random_inputs"), py::arg("device"), py::arg("batch"), py::arg("dimensions"),
           py::arg("seed"), "Runs a model on .npy files and writes its outputs into a folder.");
}

app::NetworkChoice networks_of(const std::string& space, std::size_t samples, const Paths& models,
                               std::uint64_t seed) {
  return {.space = space, .samples = samples, .seed = seed, .models = models};
}

void add_predicting(Bound& bound) {
  bound
      .def(
          "train_predictor",
          [](Workplace& self, const std::string& device, const Path& output,
             const std::string& space, std::size_t samples, const Paths& models,
             const std::string& method, double max_time_s, std::uint64_t seed, int threads) {
            const app::TrainPredictorRequest request{
                .device = device,
                .method = value_of(core::parse_name<predict::Method>(method)),
                .networks = networks_of(space, samples, models, seed),
                .protocol = measure::protocol_within(max_time_s),
                .output = output,
                .seed = seed,
                .threads = threads_or_all(threads)};
            return self.long_answer([&](app::Workplace& place, const std::stop_token& stop) {
              return app::train_predictor(place, request, self.progress(), stop);
            });
          },
          py::arg("device"), py::arg("output"), py::arg("space") = "", py::arg("samples") = 0,
          py::arg("models") = Paths(), py::arg("method") = "auto", py::arg("max_time_s") = 30.0,
          py::arg("seed") = 1, py::arg("threads") = 0,
          "Learns a device's latency from networks; measures those that were not measured yet.")
      .def(
          "evaluate_predictor",
          [](Workplace& self, const Path& predictor, const std::string& space, std::size_t samples,
             const Paths& models, double max_time_s, std::uint64_t seed, int threads) {
            const app::EvaluatePredictorRequest request{
                .predictor = predictor,
                .networks = networks_of(space, samples, models, seed),
                .protocol = measure::protocol_within(max_time_s),
                .threads = threads_or_all(threads)};
            return self.long_answer([&](app::Workplace& place, const std::stop_token& stop) {
              return app::evaluate_predictor(place, request, self.progress(), stop);
            });
          },
          py::arg("predictor"), py::arg("space") = "", py::arg("samples") = 0,
          py::arg("models") = Paths(), py::arg("max_time_s") = 30.0, py::arg("seed") = 1,
          py::arg("threads") = 0, "Holds a predictor against its device.");
}

/// A function of Python's that gives designs their numbers.
class PythonSource final : public space::Source {
 public:
  PythonSource(py::function function, const Workplace& user)
      : function_(std::move(function)), user_(&user) {}

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    const py::gil_scoped_acquire acquire;
    const auto* const before = std::exchange(searched_with, user_);
    auto status = call(designs, out);
    searched_with = before;
    return status;
  }

  /// What the function has raised, as if nobody had been between.
  void raise_again() const {
    if (raised_) throw py::error_already_set(*raised_);
  }

 private:
  Status call(space::DesignBatch designs, std::span<double> out) const {
    try {
      space::Population population(designs.genes());
      for (std::size_t i = 0; i < designs.size(); ++i) population.add(designs[i]);
      const auto numbers = numbers_from(function_(designs_array(population)).cast<DoubleArray>(),
                                        designs.size(), "a source");
      std::ranges::copy(numbers, out.begin());
      return {};
    } catch (const py::error_already_set& error) {
      if (!raised_) raised_ = error;
    } catch (const py::cast_error&) {
      return fail(ErrorCode::invalid_input, "a source: expected an array of numbers");
    }
    return fail(ErrorCode::cancelled, "a source raised an exception");
  }

  py::function function_;
  const Workplace* user_;
  mutable std::optional<py::error_already_set> raised_;  // guarded by the interpreter's lock
};

/// Sources of a search: texts, or functions under names of their own.
class Sources {
 public:
  explicit Sources(const Workplace& user) : user_(user) {}

  /// The text of a source in requests; "" for none.
  std::string text_of(const py::object& source, const std::string& name) {
    if (source.is_none()) return "";
    if (py::isinstance<py::str>(source)) return source.cast<std::string>();
    if (!py::isinstance<py::function>(source) && PyCallable_Check(source.ptr()) == 0)
      raise({ErrorCode::invalid_input, name + ": expected a source's text or a function"});
    own_[name] = std::make_unique<PythonSource>(source.cast<py::function>(), user_);
    return "own:" + name;
  }

  app::SourceOptions options(double max_time_s, std::uint64_t seed, int threads) const {
    app::SourceOptions options{.protocol = measure::protocol_within(max_time_s),
                               .seed = seed,
                               .threads = threads_or_all(threads)};
    for (const auto& [name, source] : own_) options.own[name] = source.get();
    return options;
  }

  void raise_again() const {
    for (const auto& [name, source] : own_) source->raise_again();
  }

 private:
  const Workplace& user_;
  std::map<std::string, std::unique_ptr<PythonSource>> own_;
};

/// Does a search; an exception of a function of its own comes before the error that it has led to.
template <class Work>
py::object search_with(Workplace& self, const Sources& sources, Work&& work) {
  try {
    return self.long_answer(std::forward<Work>(work));
  } catch (const py::error_already_set&) {
    sources.raise_again();
    throw;
  }
}

py::object search(Workplace& self, const std::string& space, const py::object& latency,
                  const py::object& accuracy, const py::object& energy, const py::object& memory,
                  std::optional<double> budget_ms, std::optional<double> budget_mj,
                  std::optional<double> budget_mb, bool pareto, const std::string& strategy,
                  std::size_t population, std::size_t generations, double max_time_s,
                  std::uint64_t seed, int threads) {
  Sources sources(self);
  app::SearchRequest request{
      .space = space,
      .accuracy = sources.text_of(accuracy, "accuracy"),
      .latency = {.source = sources.text_of(latency, "latency"), .budget = budget_ms},
      .energy = {.source = sources.text_of(energy, "energy"), .budget = budget_mj},
      .memory = {.source = sources.text_of(memory, "memory"), .budget = budget_mb},
      .pareto = pareto,
      .strategy = strategy,
      .evolution = {.population = population, .generations = generations}};
  request.sources = sources.options(max_time_s, seed, threads);
  return search_with(self, sources, [&](app::Workplace& place, const std::stop_token& stop) {
    return app::search_designs(place, request, self.progress(), stop);
  });
}

py::object bisect(Workplace& self, const std::string& space, const py::object& proxy,
                  const py::object& target, const py::object& accuracy, double budget_ms,
                  std::size_t max_measurements, double max_time_s, std::uint64_t seed,
                  int threads) {
  Sources sources(self);
  app::BisectRequest request{
      .space = space,
      .accuracy = sources.text_of(accuracy, "accuracy"),
      .proxy = {.source = sources.text_of(proxy, "proxy")},
      .target = {.source = sources.text_of(target, "target"), .budget = budget_ms},
      .max_measurements = max_measurements};
  request.sources = sources.options(max_time_s, seed, threads);
  return search_with(self, sources, [&](app::Workplace& place, const std::stop_token& stop) {
    return app::bisect_on_device(place, request, self.progress(), stop);
  });
}

void add_searching(Bound& bound) {
  bound
      .def("search", &search, py::arg("space"), py::arg("latency"), py::arg("accuracy"),
           py::arg("energy") = py::none(), py::arg("memory") = py::none(),
           py::arg("budget_ms") = py::none(), py::arg("budget_mj") = py::none(),
           py::arg("budget_mb") = py::none(), py::arg("pareto") = false, py::arg("strategy") = "",
           py::arg("population") = 1000, py::arg("generations") = 50, py::arg("max_time_s") = 10.0,
           py::arg("seed") = 1, py::arg("threads") = 0,
           "The best designs of a space for a device. A source is a text, as in "
           "'table:F.csv#pixel3' "
           "or 'device:local', or a function that takes a matrix of designs and gives an array.")
      .def("bisect", &bisect, py::arg("space"), py::arg("proxy"), py::arg("target"),
           py::arg("accuracy"), py::arg("budget_ms"), py::arg("max_measurements") = 10,
           py::arg("max_time_s") = 10.0, py::arg("seed") = 1, py::arg("threads") = 0,
           "The best design for a new device by a few measurements on it.");
}

/// A conversation with a study. Shares the workplace with the code that opened it.
class Study {
 public:
  Study(std::shared_ptr<Workplace> workplace, std::string name,
        const study::DialogueOptions& options)
      : workplace_(std::move(workplace)),
        name_(std::move(name)),
        dialogue_(workplace_->with([&](app::Workplace& place) {
          return study::StudyDialogue::open(app::study_place(place), name_, options);
        })) {}

  py::object ask(std::size_t count) {
    return workplace_->answer([&](app::Workplace&) { return dialogue_.ask(count); });
  }

  py::object tell(std::int64_t trial, const std::string& values) {
    const auto document = value_of(core::parse_json(values, "values"));
    const auto told =
        value_of(study::told_values_from_json(trial, core::JsonView(document, "values")));
    return workplace_->answer([&](app::Workplace&) -> Result<std::vector<study::Told>> {
      auto answer = dialogue_.tell({&told, 1});
      if (!answer) return answer;
      FLEETFIT_TRY(dialogue_.settle());
      return answer;
    });
  }

  py::object best() {
    return workplace_->answer(
        [&](app::Workplace& place) { return study::best_of_study(place.store->studies(), name_); });
  }
  py::object show() {
    return workplace_->answer([&](app::Workplace& place) {
      return study::show_study(place.store->studies(), name_, {.all = true});
    });
  }
  py::object report(const Path& output) {
    return workplace_->answer([&](app::Workplace& place) {
      return study::report_study(place.store->studies(), name_, output);
    });
  }

  const std::string& name() const { return name_; }

 private:
  std::shared_ptr<Workplace> workplace_;
  std::string name_;
  study::StudyDialogue dialogue_;
};

void add_studies(py::module_& module, Bound& bound) {
  py::class_<Study>(module, "StudyDialogue", "Ask and tell: the package's Study is built on it.")
      .def("ask", &Study::ask, py::arg("count"))
      .def("tell", &Study::tell, py::arg("trial"), py::arg("values"))
      .def("best", &Study::best)
      .def("show", &Study::show)
      .def("report", &Study::report, py::arg("output"))
      .def_property_readonly("name", &Study::name);
  bound
      .def(
          "create_study",
          [](Workplace& self, const Path& file) {
            return self.answer([&](app::Workplace& place) {
              return study::create_study(app::study_place(place), file);
            });
          },
          py::arg("file"), "Puts a study into the store, to be driven by ask and tell.")
      .def(
          "studies",
          [](Workplace& self) {
            return self.answer(
                [](app::Workplace& place) { return study::list_studies(place.store->studies()); });
          },
          "Every study with how far it is.")
      .def(
          "open_study",
          [](std::shared_ptr<Workplace> self, const std::string& name, const std::string& worker,
             std::optional<double> lease_s) {
            return std::make_unique<Study>(std::move(self), name,
                                           study::DialogueOptions{worker, lease_s});
          },
          py::arg("name"), py::arg("worker") = "python", py::arg("lease_s") = py::none());
}

}  // namespace

void add_workplace(py::module_& module) {
  Bound bound(module, "Workplace", "Where results are kept, and the programs that help.");
  bound.def(py::init<const std::string&, const Path&, bool>(), py::arg("store"), py::arg("program"),
            py::arg("progress"));
  add_devices(bound);
  add_measuring(bound);
  add_predicting(bound);
  add_searching(bound);
  add_studies(module, bound);
}

}  // namespace fleetfit::python
