#include "graph/tflite/attributes.h"

#include <flatbuffers/flexbuffers.h>
#include <flatbuffers/minireflect.h>

namespace fleetfit::graph::tflite {
namespace {

using Attributes = std::map<std::string, Attribute>;

constexpr std::size_t kMostOptionBytes = 16 * 1024;
constexpr std::size_t kMostElements = 64;

/// Collects the fields of one table that are present in the file.
class FieldCollector : public flatbuffers::IterationVisitor {
 public:
  explicit FieldCollector(Attributes& attributes) : attributes_(attributes) {}

  void Field(std::size_t, std::size_t, flatbuffers::ElementaryType, bool,
             const flatbuffers::TypeTable*, const char* name, const std::uint8_t*) override {
    field_ = name == nullptr ? "" : name;
  }
  void Bool(bool value) override { add(std::int64_t{value}); }
  void Char(std::int8_t value, const char* name) override { add_enum(value, name); }
  void UChar(std::uint8_t value, const char* name) override { add_enum(value, name); }
  void Int(std::int32_t value, const char* name) override { add_enum(value, name); }
  void UInt(std::uint32_t value, const char* name) override { add_enum(value, name); }
  void Float(float value) override { add(double{value}); }
  void String(const flatbuffers::String* value) override {
    add(std::string(value->string_view().substr(0, kMostOptionBytes)));
  }
  void StartVector() override { elements_.emplace(); }
  void EndVector() override {
    attributes_[field_] = std::move(*elements_);
    elements_.reset();
  }

 private:
  void add(Attribute value) { attributes_[field_] = std::move(value); }

  void add_enum(std::int64_t value, const char* name) {
    if (elements_) {
      if (elements_->size() < kMostElements) elements_->push_back(value);
    } else if (name != nullptr) {
      add(std::string(name));
    } else {
      add(value);
    }
  }

  Attributes& attributes_;
  std::string field_;
  std::optional<Ints> elements_;
};

void add_builtin_options(const file::Operator& source, Attributes& attributes) {
  const auto* table = static_cast<const std::uint8_t*>(source.builtin_options());
  const auto* types = file::BuiltinOptionsTypeTable();
  const auto type = static_cast<std::int64_t>(source.builtin_options_type());
  const auto index = flatbuffers::LookupEnum(type, types->values, types->num_elems);
  if (table == nullptr || index < 1) return;  // index 0 stands for no options
  const auto reference = types->type_codes[index].sequence_ref;
  FieldCollector collector(attributes);
  flatbuffers::IterateObject(table, types->type_refs[reference](), &collector);
}

std::optional<Attribute> attribute_of(const flexbuffers::Reference& value) {
  if (value.IsBool()) return std::int64_t{value.AsBool()};
  if (value.IsInt()) return std::int64_t{value.AsInt64()};
  if (value.IsUInt()) return static_cast<std::int64_t>(value.AsUInt64());
  if (value.IsFloat()) return value.AsDouble();
  if (value.IsString()) return value.AsString().str();
  return std::nullopt;
}

bool add_custom_map(const std::vector<std::uint8_t>& bytes, Attributes& attributes) {
  std::vector<std::uint8_t> seen;  // keeps the check linear where values are shared
  if (bytes.size() < 3 || !flexbuffers::VerifyBuffer(bytes.data(), bytes.size(), &seen))
    return false;
  const auto root = flexbuffers::GetRoot(bytes);
  if (!root.IsMap()) return false;
  const auto map = root.AsMap();
  const auto keys = map.Keys();
  const auto values = map.Values();
  for (std::size_t i = 0; i < std::min({keys.size(), values.size(), kMostElements}); ++i) {
    if (auto attribute = attribute_of(values[i]))
      attributes[keys[i].AsKey()] = std::move(*attribute);
  }
  return true;
}

}  // namespace

Attributes read_attributes(const file::Operator& source) {
  Attributes attributes;
  add_builtin_options(source, attributes);
  const auto* custom = source.custom_options();
  if (custom == nullptr || custom->size() == 0) return attributes;
  // Copied, since a FlexBuffer is to be aligned.
  const bool is_small = custom->size() <= kMostOptionBytes;
  if (!is_small || !add_custom_map({custom->begin(), custom->end()}, attributes))
    attributes["custom_options_bytes"] = std::int64_t{custom->size()};
  return attributes;
}

}  // namespace fleetfit::graph::tflite
