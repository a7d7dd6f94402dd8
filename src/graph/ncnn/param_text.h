#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"

namespace fleetfit::graph::ncnn {

/// One value of a layer: a number or a list of them. A double holds every 32-bit whole number.
struct Param {
  std::vector<double> numbers;
  bool is_array = false;
  bool is_integer = true;  ///< written without point and exponent
};

/// Where a whole number stands and what it may be.
struct IntegerKey {
  int id = 0;
  std::string_view name;  ///< for messages
  std::int64_t fallback = 0;
  std::int64_t low = 0;
  std::int64_t high = std::numeric_limits<std::int32_t>::max();
};

/// The numbered parameters of a layer. The first value that is not what was asked for is kept as
/// the error; the asker gets the fallback, so that converters need not check each number.
class Params {
 public:
  bool has(int id) const { return values_.contains(id); }
  bool insert(int id, Param param) { return values_.emplace(id, std::move(param)).second; }
  const std::map<int, Param>& all() const { return values_; }

  std::int64_t integer(const IntegerKey& key);

  /// Values for height and width (only width with one spatial dimension) of a parameter whose
  /// height is 10 further and falls back to the width.
  std::vector<std::int64_t> by_axis(int spatial, IntegerKey key);

  bool flag(int id, std::string_view name, std::int64_t fallback = 0);
  float number(int id, std::string_view name, float fallback);
  std::vector<std::int64_t> integers(int id, std::string_view name);
  std::vector<double> numbers(int id);

  const Status& status() const { return status_; }

 private:
  void keep(std::string message);

  std::map<int, Param> values_;
  Status status_;
};

/// One line of the file. Refers to the text that was read.
struct Layer {
  int line = 0;
  std::string_view type;
  std::string_view name;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  Params params;
};

/// "line 14: layer conv1"
std::string place(const Layer& layer);

/// Splits a text graph into its layers. Fails with `invalid_input`, naming the line, on a wrong
/// magic number, on counts that do not agree with what follows and on numbers that are none.
Result<std::vector<Layer>> parse_param_text(std::string_view text);

}  // namespace fleetfit::graph::ncnn
