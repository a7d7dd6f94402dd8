#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <chrono>
#include <future>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/result.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/space.h"

/// What the parts of the Python module share.
namespace fleetfit::python {

namespace py = pybind11;

/// Throws the error as the Python exception of its kind, with the line that the command line would
/// print.
[[noreturn]] void raise(const Error& error);

template <class T>
T value_of(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}
inline void expect(const Status& status) {
  if (!status) raise(status.error());
}

/// Dictionaries, lists, numbers and texts.
py::object to_python(const nlohmann::ordered_json& value);

/// A report as its verb prints it with --json.
template <class Report>
py::object document(const Report& report) {
  using core::to_json;  // of records that are described
  return to_python(to_json(report));
}

/// 0 stands for all that there are.
int threads_or_all(int threads);

/// Does work without the interpreter's lock.
template <class Work>
auto unlocked(Work&& work) {
  const py::gil_scoped_release release;
  return std::forward<Work>(work)();
}

/// Waits for work that is done without the interpreter's lock. When the user asks to stop (Ctrl-C),
/// so is the work; throws what Python raised for it after the work has ended.
template <class Value>
Value wait_or_stop(std::future<Value> work, std::stop_source& stop) {
  using namespace std::chrono_literals;
  while (true) {
    {
      const py::gil_scoped_release release;
      if (work.wait_for(50ms) == std::future_status::ready) return work.get();
    }
    if (PyErr_CheckSignals() == 0) continue;
    const py::error_already_set raised;
    stop.request_stop();
    {
      const py::gil_scoped_release release;
      work.wait();
    }
    throw raised;
  }
}

/// Does long work: `work(stop)` gives a Result. Throws what it fails with.
template <class Work>
auto interruptible(Work&& work) {
  std::stop_source stop;
  const auto token = stop.get_token();
  auto running = std::async(std::launch::async, [&work, &token] { return work(token); });
  return value_of(wait_or_stop(std::move(running), stop));
}

using DoubleArray = py::array_t<double, py::array::c_style | py::array::forcecast>;

/// Designs as Python has them: a matrix of whole numbers with a row for each design, a row alone,
/// or texts. Raises `InvalidInput`, naming the row, on what is no design of the space.
space::Population designs_from(const space::Space& space, const py::object& designs);

py::array_t<space::Choice> designs_array(const space::Population& designs);

DoubleArray numbers_array(std::span<const double> numbers);

/// The numbers of an array with one axis; raises `InvalidInput` if there are not `count`.
std::vector<double> numbers_from(const DoubleArray& array, std::size_t count, const char* name);

void add_arrays(py::module_& module);     // spaces, tables, predictors, transfer
void add_models(py::module_& module);     // what needs no store
void add_workplace(py::module_& module);  // what does

}  // namespace fleetfit::python
