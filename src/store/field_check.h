#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fleetfit/core/result.h"

namespace fleetfit::store {

/// Looks at one field of a record after another and keeps the first that is wrong.
class FieldCheck {
 public:
  explicit FieldCheck(std::string record) : record_(std::move(record)) {}

  void text(std::string_view field, std::string_view value);
  void key(std::string_view field, std::string_view value);  ///< a text that is not empty
  void json(std::string_view field, std::string_view value);
  void json_array(std::string_view field, std::string_view value);
  void hash(std::string_view field, std::string_view value);  ///< 64 small hexadecimal digits
  void number(std::string_view field, double value);
  void amount(std::string_view field, std::optional<double> value);
  void count(std::string_view field, std::int64_t value);
  void refuse(std::string_view field, std::string_view problem);

  bool passed() const { return problem_.empty(); }

  /// `invalid_input` that names record and field if anything was wrong.
  Status result() const;

 private:
  void keep(std::string problem);

  std::string record_;
  std::string problem_;
};

}  // namespace fleetfit::store
