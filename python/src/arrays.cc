#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "binding.h"
#include "fleetfit/app/spaces.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/predict/design_predictor.h"
#include "fleetfit/space/table.h"
#include "fleetfit/transfer/adaproxy.h"
#include "fleetfit/transfer/few_shot.h"

namespace fleetfit::python {
namespace {

using space::Choice;
using space::Population;
using space::Space;
using WholeArray = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

[[noreturn]] void refuse(std::string message) {
  raise({ErrorCode::invalid_input, std::move(message)});
}

Population designs_from_texts(const Space& space, const std::vector<std::string>& texts) {
  Population designs(space.genes().size());
  for (const auto& text : texts) designs.add(value_of(space.parse(text)));
  return designs;
}

Population designs_from_matrix(const Space& space, const py::array& matrix) {
  const auto kind = matrix.dtype().kind();
  if (matrix.size() > 0 && kind != 'i' && kind != 'u')
    refuse("designs: expected whole numbers or texts");
  const auto whole = WholeArray::ensure(matrix);
  const std::size_t genes = space.genes().size();
  const auto axes = whole.ndim();
  if ((axes != 1 && axes != 2) || static_cast<std::size_t>(whole.shape(axes - 1)) != genes) {
    refuse(fmt::format("designs: expected a matrix with {} columns, one for each gene of {}", genes,
                       space.name()));
  }
  const std::span<const std::int64_t> cells(whole.data(), static_cast<std::size_t>(whole.size()));
  Population designs(genes, cells.size() / genes);
  for (std::size_t row = 0; row < designs.size(); ++row) {
    for (std::size_t gene = 0; gene < genes; ++gene) {
      const auto cell = cells[row * genes + gene];
      if (cell < 0 || static_cast<std::size_t>(cell) >= space.genes()[gene].choices.size())
        refuse(fmt::format("designs: row {}, {}: there is no choice {}", row,
                           space.genes()[gene].name, cell));
      designs[row][gene] = static_cast<Choice>(cell);
    }
    if (const auto ok = space.check(designs[row]); !ok)
      refuse(fmt::format("designs: row {}: {}", row, ok.error().message));
  }
  return designs;
}

py::object count_of(const Space& space) { return py::int_(py::str(space.size().decimal())); }

py::list genes_of(const Space& space) {
  py::list genes;
  for (const auto& gene : space.genes()) {
    py::dict one;
    one["name"] = gene.name;
    one["choices"] = gene.choices;
    genes.append(one);
  }
  return genes;
}

py::dict encodings_of(const Space& space) {
  py::dict encodings;
  for (const auto& encoding : space.encodings())
    encodings[py::str(encoding.name)] = encoding.features;
  return encodings;
}

DoubleArray encode(const Space& space, const py::object& designs, const std::string& encoding) {
  const auto number = value_of(space.find_encoding(encoding));
  const auto population = designs_from(space, designs);
  const auto features = space.encodings()[number].features.size();
  DoubleArray out({population.size(), features});
  const std::span<double> rows(out.mutable_data(), population.size() * features);
  unlocked([&] { space.encode(population, number, rows); });
  return out;
}

std::vector<std::string> texts_of(const Space& space, const Population& designs) {
  std::vector<std::string> texts;
  for (std::size_t row = 0; row < designs.size(); ++row)
    texts.push_back(space.format(designs[row]));
  return texts;
}

void add_spaces(py::module_& module) {
  // Spaces live as long as the program.
  py::class_<Space, std::unique_ptr<Space, py::nodelete>>(
      module, "Space", "A set of networks. A design is a row of choices, one for each gene.")
      .def_property_readonly("name", &Space::name)
      .def_property_readonly("description", &Space::description, "One line on what is in it.")
      .def_property_readonly("size", &count_of, "How many designs there are, exactly.")
      .def_property_readonly("genes", &genes_of, "Name and choices of each gene.")
      .def_property_readonly("encodings", &encodings_of,
                             "Ways to write designs as numbers: names of the features of each.")
      .def(
          "sample",
          [](const Space& self, std::size_t count, std::uint64_t seed, std::size_t first) {
            return designs_array(value_of(unlocked([&] {
              return sample_designs(self, {.seed = seed, .first = first, .count = count});
            })));
          },
          py::arg("count"), py::arg("seed") = 1, py::arg("first") = 0,
          "Random designs, all different; design i depends on the seed alone.")
      .def("encode", &encode, py::arg("designs"), py::arg("encoding") = "one-hot",
           "A row of features for each design.")
      .def(
          "format",
          [](const Space& self, const py::object& designs) {
            return texts_of(self, designs_from(self, designs));
          },
          py::arg("designs"), "The text of each design.")
      .def(
          "parse",
          [](const Space& self, const std::vector<std::string>& texts) {
            return designs_array(designs_from_texts(self, texts));
          },
          py::arg("texts"), "Designs from their texts.")
      .def(
          "describe",
          [](const Space& self, const std::string& design,
             const std::optional<std::filesystem::path>& onnx) {
            return document(
                value_of(unlocked([&] { return app::show_design(self.name(), design, onnx); })));
          },
          py::arg("design"), py::arg("onnx") = py::none(),
          "FLOPs, parameters, bytes and operators of one design, given by its text; writes its "
          "network to the file `onnx` if one is named.")
      .def("__repr__",
           [](const Space& self) { return fmt::format("fleetfit.space('{}')", self.name()); });

  module.def("spaces", [] { return document(app::list_spaces()); }, "Every space, with its size.");
  module.def(
      "space",
      [](const std::string& name) {
        // Only const functions are bound.
        return const_cast<Space*>(  // NOLINT(cppcoreguidelines-pro-type-const-cast)
            value_of(space::find_space(name)));
      },
      py::arg("name"), py::return_value_policy::reference, "A space by its name.");
}

DoubleArray matrix_of(const space::DesignTable& table) {
  DoubleArray out({table.designs.size(), table.columns.size()});
  auto cells = out.mutable_unchecked<2>();
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    for (std::size_t row = 0; row < table.designs.size(); ++row)
      cells(static_cast<py::ssize_t>(row), static_cast<py::ssize_t>(column)) =
          table.values[column][row];
  }
  return out;
}

py::tuple read_table(const std::filesystem::path& file, const Space& space,
                     const std::vector<std::string>& columns, bool accuracies) {
  const auto rule = accuracies ? space::CellRule::accuracy : space::CellRule::latency;
  const auto table = value_of(unlocked(
      [&] { return read_design_table(file, space, {.columns = columns, .cells = rule}); }));
  return py::make_tuple(designs_array(table.designs), table.columns, matrix_of(table));
}

/// Columns of a matrix as a table of designs.
space::DesignTable table_from(const Space& space, const py::object& designs,
                              const DoubleArray& latency_ms, std::vector<std::string> names) {
  space::DesignTable table{
      .name = "latency_ms", .space = &space, .designs = designs_from(space, designs)};
  if (latency_ms.ndim() != 2 ||
      static_cast<std::size_t>(latency_ms.shape(0)) != table.designs.size()) {
    refuse(fmt::format("latency_ms: expected a matrix with {} rows, one for each design",
                       table.designs.size()));
  }
  const auto devices = static_cast<std::size_t>(latency_ms.shape(1));
  if (names.empty())
    for (std::size_t i = 0; i < devices; ++i) names.push_back(fmt::format("device {}", i));
  if (names.size() != devices)
    refuse(fmt::format("names: expected {}, found {}", devices, names.size()));
  const auto cells = latency_ms.unchecked<2>();
  table.columns = std::move(names);
  table.values.assign(devices, std::vector<double>(table.designs.size()));
  for (std::size_t d = 0; d < devices; ++d)
    for (std::size_t row = 0; row < table.designs.size(); ++row)
      table.values[d][row] = cells(static_cast<py::ssize_t>(row), static_cast<py::ssize_t>(d));
  return table;
}

/// Keeps its space, of which designs are read.
struct FewShot {
  const Space* space;
  std::unique_ptr<const transfer::FewShotModel> model;
};
struct Known {
  const Space* space;
  transfer::KnownDevices devices;
};

py::tuple predict_few_shot(const FewShot& self, const py::object& designs) {
  const auto population = designs_from(*self.space, designs);
  std::vector<transfer::PredictedLatency> predicted(population.size());
  unlocked([&] { self.model->predict(population, predicted); });
  DoubleArray ms(static_cast<py::ssize_t>(predicted.size()));
  DoubleArray low(ms.size());
  DoubleArray high(ms.size());
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    ms.mutable_data()[i] = predicted[i].ms;
    low.mutable_data()[i] = predicted[i].low_ms;
    high.mutable_data()[i] = predicted[i].high_ms;
  }
  return py::make_tuple(ms, low, high);
}

py::array_t<std::int64_t> places_array(const std::vector<std::size_t>& places) {
  py::array_t<std::int64_t> out(static_cast<py::ssize_t>(places.size()));
  std::ranges::copy(places, out.mutable_data());
  return out;
}

void add_few_shot(py::module_& module) {
  py::class_<FewShot>(module, "FewShotModel",
                      "Latencies of all designs of a space on a device that was measured a few "
                      "times.")
      .def("predict", &predict_few_shot, py::arg("designs"),
           "Milliseconds, and the ends of 90 % intervals: three arrays.")
      .def(
          "next",
          [](const FewShot& self, const py::object& candidates, std::size_t count) {
            const auto population = designs_from(*self.space, candidates);
            return places_array(unlocked([&] { return self.model->next(population, count); }));
          },
          py::arg("candidates"), py::arg("count") = 1,
          "Rows of the candidates that are worth measuring next, the most useful first.")
      .def_property_readonly(
          "verdict",
          [](const FewShot& self) {
            const auto& verdict = self.model->verdict();
            py::dict answer;
            answer["expected_srcc"] = verdict.expected_srcc;
            answer["ceiling"] = verdict.ceiling;
            answer["noise_ms"] = verdict.noise_ms;
            answer["enough"] = verdict.enough;
            return answer;
          },
          "How good the model thinks it is, and whether further measurements would help.");

  py::class_<Known>(module, "KnownDevices",
                    "What devices whose latencies are known teach about any other device.")
      .def(py::init([](const Space& space, const py::object& designs, const DoubleArray& latency_ms,
                       std::vector<std::string> names, std::uint64_t seed) {
             const auto table = table_from(space, designs, latency_ms, std::move(names));
             std::vector<std::size_t> references(table.columns.size());
             std::iota(references.begin(), references.end(), std::size_t{0});
             return Known{&space, interruptible([&](const std::stop_token&) {
                            return transfer::KnownDevices::learn(table, references, {.seed = seed});
                          })};
           }),
           py::arg("space"), py::arg("designs"), py::arg("latency_ms"),
           py::arg("names") = std::vector<std::string>(), py::arg("seed") = 1)
      .def(
          "choose",
          [](const Known& self, const py::object& candidates, std::size_t count) {
            const auto population = designs_from(*self.space, candidates);
            return places_array(unlocked([&] { return self.devices.choose(population, count); }));
          },
          py::arg("candidates"), py::arg("count") = 10,
          "Rows of the candidates to measure on a new device, the most useful first.")
      .def(
          "fit",
          [](const Known& self, const py::object& designs, const DoubleArray& latency_ms) {
            const auto population = designs_from(*self.space, designs);
            const auto times = numbers_from(latency_ms, population.size(), "latency_ms");
            return FewShot{self.space, interruptible([&](const std::stop_token&) {
                             return self.devices.fit(population, times);
                           })};
          },
          py::arg("designs"), py::arg("latency_ms"),
          "A model of the device on which these designs took these milliseconds.");
}

DoubleArray predict_adapted(const transfer::AdaptedProxy& self, const py::object& designs) {
  const auto population = designs_from(self.space(), designs);
  DoubleArray out(static_cast<py::ssize_t>(population.size()));
  const std::span<double> numbers(out.mutable_data(), population.size());
  unlocked([&] { self.predict_ms(population, numbers); });
  return out;
}

transfer::AdaptedProxy adapt(const Space& space, const py::tuple& proxy, const py::tuple& target,
                             int validation) {
  if (proxy.size() != 2 || target.size() != 2)
    refuse("proxy, target: expected designs and milliseconds each");
  const auto known = designs_from(space, proxy[0]);
  const auto known_ms = numbers_from(proxy[1].cast<DoubleArray>(), known.size(), "proxy");
  const auto measured = designs_from(space, target[0]);
  const auto measured_ms = numbers_from(target[1].cast<DoubleArray>(), measured.size(), "target");
  const space::DesignTable table{.name = "proxy",
                                 .space = &space,
                                 .designs = known,
                                 .columns = {"proxy"},
                                 .values = {known_ms}};
  return interruptible([&](const std::stop_token&) -> Result<transfer::AdaptedProxy> {
    FLEETFIT_ASSIGN(const auto linear, transfer::LinearProxy::fit(table, 0));
    return transfer::adapt(linear, {.designs = measured, .latency_ms = measured_ms},
                           {.validation = validation});
  });
}

void add_adapted(py::module_& module) {
  using transfer::AdaptedProxy;
  py::class_<AdaptedProxy>(module, "AdaptedProxy",
                           "A known device adapted to another one by a few measurements there.")
      .def("predict", &predict_adapted, py::arg("designs"),
           "Latencies that keep the order of designs, not their exact milliseconds.")
      .def_property_readonly("scale", &AdaptedProxy::scale,
                             "Common slow-down of all operators on the target.")
      .def_property_readonly(
          "kept_proxy", [](const AdaptedProxy& self) { return self.report().keeps_proxy; },
          "The measurements do not speak for any change.")
      .def_property_readonly(
          "changed_operators",
          [](const AdaptedProxy& self) {
            py::list changes;
            for (const auto& change : self.changed_operators())
              changes.append(py::make_tuple(change.name, change.change_ms));
            return changes;
          },
          "Names and milliseconds of what costs more or less than the common slow-down says.")
      .def(
          "save",
          [](const AdaptedProxy& self, const std::filesystem::path& file) {
            expect(write_adapted(self, file));
          },
          py::arg("file"), "Writes a file for sources `adapted:FILE`.");
  module.def("adapt", &adapt, py::arg("space"), py::arg("proxy"), py::arg("target"),
             py::arg("validation") = 20,
             "Bends a proxy device to a target. Both are pairs of designs and milliseconds.");
  module.def(
      "load_adapted",
      [](const std::filesystem::path& file, const Space& space) {
        return value_of(transfer::load_adapted(file, space));
      },
      py::arg("file"), py::arg("space"));
}

using Predictor = predict::DesignPredictor;

py::tuple predict_prices(const Predictor& self, const py::object& designs) {
  const auto population = designs_from(self.space(), designs);
  DoubleArray ms(static_cast<py::ssize_t>(population.size()));
  DoubleArray low(ms.size());
  DoubleArray high(ms.size());
  const std::span<double> prices(ms.mutable_data(), population.size());
  expect(unlocked([&] { return self.evaluate(population, prices); }));
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const auto interval = self.interval90(prices[i]);
    low.mutable_data()[i] = interval.low;
    high.mutable_data()[i] = interval.high;
  }
  return py::make_tuple(ms, low, high);
}

std::unique_ptr<const Predictor> train(const Space& space, const py::object& designs,
                                       const DoubleArray& latency_ms, const std::string& device,
                                       const std::string& method, const std::string& encoding,
                                       std::uint64_t seed, int threads) {
  const auto population = designs_from(space, designs);
  const auto times = numbers_from(latency_ms, population.size(), "latency_ms");
  const auto parsed = value_of(core::parse_name<predict::DesignMethod>(method));
  core::ThreadPool pool(threads_or_all(threads));
  return interruptible([&](const std::stop_token& stop) {
    predict::DesignTrainOptions options{
        .method = parsed, .encoding = encoding, .seed = seed, .stop = stop};
    options.identity.device = device;
    return train_design_predictor(space, population, times, options, pool);
  });
}

void add_predictors(py::module_& module) {
  py::class_<Predictor, std::unique_ptr<Predictor>>(module, "DesignPredictor",
                                                    "Prices designs of a space as wholes.")
      .def("predict", &predict_prices, py::arg("designs"),
           "Milliseconds, and the ends of 90 % intervals: three arrays.")
      .def_property_readonly(
          "space", [](const Predictor& self) { return self.space().name(); },
          "The name of its space.")
      .def_property_readonly(
          "device", [](const Predictor& self) { return self.identity().device; },
          "The name of its device.")
      .def_property_readonly("mape", &Predictor::mape,
                             "Mean error in percent, of designs that it did not see.")
      .def_property_readonly("settings",
                             [](const Predictor& self) { return std::string(self.settings()); })
      .def(
          "save",
          [](const Predictor& self, const std::filesystem::path& file) {
            expect(core::write_json(file, self.to_json()));
          },
          py::arg("file"), "Writes a file for sources `predictor:FILE`.");
  module.def(
      "train_design_predictor",
      [](const Space& space, const py::object& designs, const DoubleArray& latency_ms,
         const std::string& device, const std::string& method, const std::string& encoding,
         std::uint64_t seed, int threads) {
        auto trained = train(space, designs, latency_ms, device, method, encoding, seed, threads);
        // Only const functions are bound.
        return std::unique_ptr<Predictor>(
            const_cast<Predictor*>(  // NOLINT(cppcoreguidelines-pro-type-const-cast)
                trained.release()));
      },
      py::arg("space"), py::arg("designs"), py::arg("latency_ms"), py::arg("device") = "",
      py::arg("method") = "auto", py::arg("encoding") = "auto", py::arg("seed") = 1,
      py::arg("threads") = 0, "Learns a device's latency from designs and their milliseconds.");
  module.def(
      "load_design_predictor",
      [](const std::filesystem::path& file) {
        auto read = value_of(unlocked([&] { return predict::read_design_predictor(file); }));
        return std::unique_ptr<Predictor>(
            const_cast<Predictor*>(  // NOLINT(cppcoreguidelines-pro-type-const-cast)
                read.release()));
      },
      py::arg("file"),
      "Reads a file that `DesignPredictor.save` or `fleetfit predict train "
      "--table` wrote.");
}

}  // namespace

space::Population designs_from(const Space& space, const py::object& designs) {
  if (py::isinstance<py::str>(designs))
    return designs_from_texts(space, {designs.cast<std::string>()});
  if (py::isinstance<py::sequence>(designs) && !py::isinstance<py::array>(designs)) {
    const auto items = designs.cast<py::sequence>();
    if (items.size() > 0 && py::isinstance<py::str>(items[0]))
      return designs_from_texts(space, designs.cast<std::vector<std::string>>());
  }
  const auto matrix = py::array::ensure(designs);
  if (!matrix) {
    PyErr_Clear();
    refuse("designs: expected a matrix of whole numbers, or texts");
  }
  return designs_from_matrix(space, matrix);
}

py::array_t<Choice> designs_array(const Population& designs) {
  py::array_t<Choice> out({designs.size(), designs.genes()});
  std::ranges::copy(designs.batch().choices(), out.mutable_data());
  return out;
}

DoubleArray numbers_array(std::span<const double> numbers) {
  DoubleArray out(static_cast<py::ssize_t>(numbers.size()));
  std::ranges::copy(numbers, out.mutable_data());
  return out;
}

std::vector<double> numbers_from(const DoubleArray& array, std::size_t count, const char* name) {
  if (array.ndim() != 1 || static_cast<std::size_t>(array.size()) != count)
    refuse(fmt::format("{}: expected {} numbers, one for each design", name, count));
  return {array.data(), array.data() + array.size()};
}

void add_arrays(py::module_& module) {
  add_spaces(module);
  module.def("read_table", &read_table, py::arg("file"), py::arg("space"),
             py::arg("columns") = std::vector<std::string>(), py::arg("accuracies") = false,
             "Designs, names of the columns, and their numbers (NaN: an empty cell) of a table.");
  add_few_shot(module);
  add_adapted(module);
  add_predictors(module);
}

}  // namespace fleetfit::python
