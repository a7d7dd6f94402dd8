#include <nlohmann/json.hpp>

#include "binding.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/core/version.h"

namespace fleetfit::python {

void raise(const Error& error) {
  const auto kinds = py::module_::import("fleetfit.errors");
  const py::object exception =
      kinds.attr("from_code")(std::string(to_string(error.code)), core::one_line(error.message));
  PyErr_SetObject(py::type::of(exception).ptr(), exception.ptr());
  throw py::error_already_set();
}

py::object to_python(const nlohmann::ordered_json& value) {
  switch (value.type()) {
    case nlohmann::json::value_t::object: {
      py::dict fields;
      for (const auto& [key, field] : value.items()) fields[py::str(key)] = to_python(field);
      return fields;
    }
    case nlohmann::json::value_t::array: {
      py::list items;
      for (const auto& item : value) items.append(to_python(item));
      return items;
    }
    case nlohmann::json::value_t::string: {
      const auto& text = value.get_ref<const std::string&>();
      // Names in model files may hold any bytes.
      return py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
          text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
    }
    case nlohmann::json::value_t::boolean:
      return py::bool_(value.get<bool>());
    case nlohmann::json::value_t::number_integer:
      return py::int_(value.get<std::int64_t>());
    case nlohmann::json::value_t::number_unsigned:
      return py::int_(value.get<std::uint64_t>());
    case nlohmann::json::value_t::number_float:
      return py::float_(value.get<double>());
    default:
      return py::none();
  }
}

int threads_or_all(int threads) {
  if (threads < 0) raise({ErrorCode::invalid_input, "threads: expected 0 or a positive number"});
  return threads > 0 ? threads : core::ThreadPool::available_cpus();
}

}  // namespace fleetfit::python

PYBIND11_MODULE(_native, module) {
  module.doc() = "The compiled part of fleetfit; use the package fleetfit.";
  module.attr("version") = std::string(fleetfit::core::version());
  fleetfit::python::add_arrays(module);
  fleetfit::python::add_models(module);
  fleetfit::python::add_workplace(module);
}
