#include "graph/tflite/options.h"

#include <flatbuffers/minireflect.h>

#include <algorithm>
#include <cassert>

#include "graph/tflite/tensors.h"

namespace fleetfit::graph::tflite {

std::size_t Options::place(std::string_view field) const {
  const auto* end = type_->names + type_->num_elems;
  const auto* found = std::find(type_->names, end, field);
  assert(found != end);
  return static_cast<std::size_t>(found - type_->names);
}

std::int64_t Options::integer(std::string_view field, std::int64_t fallback) const {
  if (table_ == nullptr) return fallback;
  const auto i = place(field);
  const auto offset = flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(i));
  if (!table_->CheckField(offset)) return fallback;
  switch (type_->type_codes[i].base_type) {
    case flatbuffers::ET_INT:
      return table_->GetField<std::int32_t>(offset, 0);
    case flatbuffers::ET_CHAR:
      return table_->GetField<std::int8_t>(offset, 0);
    default:
      return table_->GetField<std::uint8_t>(offset, 0);
  }
}

float Options::number(std::string_view field) const {
  if (table_ == nullptr) return 0;
  const auto i = static_cast<flatbuffers::voffset_t>(place(field));
  return table_->GetField<float>(flatbuffers::FieldIndexToOffset(i), 0);
}

std::string_view Options::name(std::string_view field) const {
  if (table_ == nullptr) return {};
  const auto* names = type_->type_refs[type_->type_codes[place(field)].sequence_ref]();
  const auto value = integer(field);
  for (std::size_t i = 0; i < names->num_elems; ++i) {
    const auto known = names->values != nullptr ? names->values[i] : static_cast<std::int64_t>(i);
    if (known == value) return names->names[i];
  }
  return {};
}

DType Options::type(std::string_view field) const {
  return dtype_of(static_cast<file::TensorType>(integer(field)));
}

std::optional<Options::List> Options::list(std::string_view field, std::size_t most) const {
  if (table_ == nullptr) return std::nullopt;
  const auto i = static_cast<flatbuffers::voffset_t>(place(field));
  const auto* found = table_->GetPointer<const flatbuffers::Vector<std::int32_t>*>(
      flatbuffers::FieldIndexToOffset(i));
  if (found == nullptr) return std::nullopt;
  if (found->size() > most) return List{.is_long = true};
  return List{.values = {found->begin(), found->end()}};
}

}  // namespace fleetfit::graph::tflite
