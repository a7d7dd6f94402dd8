#include "graph/tflite/parts.h"

#include <flatbuffers/flexbuffers.h>
#include <flatbuffers/minireflect.h>

#include <algorithm>
#include <optional>

namespace fleetfit::graph::tflite {
namespace {

constexpr std::size_t kMostOptionBytes = 16'384;
constexpr std::size_t kMostElements = 64;
constexpr std::size_t kLongestText = 256;

class Attributes {
 public:
  explicit Attributes(CopyBudget& budget) : budget_(budget) {}

  void add(const std::string& name, Attribute value) {
    if (budget_.take(name.size() + sizeof(Attribute) + kMostElements))
      all_[name] = std::move(value);
  }
  void add_text(const std::string& name, std::string_view text) {
    if (budget_.take(std::min(text.size(), kLongestText)))
      add(name, std::string(text.substr(0, kLongestText)));
  }
  bool may_copy(std::size_t bytes) { return budget_.take(bytes); }
  std::map<std::string, Attribute> take() && { return std::move(all_); }

 private:
  CopyBudget& budget_;
  std::map<std::string, Attribute> all_;
};

/// Collects the fields of one table that are present in the file.
class FieldCollector : public flatbuffers::IterationVisitor {
 public:
  explicit FieldCollector(Attributes& attributes) : attributes_(attributes) {}

  void Field(std::size_t, std::size_t, flatbuffers::ElementaryType, bool,
             const flatbuffers::TypeTable*, const char* name, const std::uint8_t*) override {
    field_ = name == nullptr ? "" : name;
  }
  void Bool(bool value) override { attributes_.add(field_, std::int64_t{value}); }
  void Char(std::int8_t value, const char* name) override { add_number(value, name); }
  void UChar(std::uint8_t value, const char* name) override { add_number(value, name); }
  void Int(std::int32_t value, const char* name) override { add_number(value, name); }
  void UInt(std::uint32_t value, const char* name) override { add_number(value, name); }
  void Float(float value) override { attributes_.add(field_, double{value}); }
  void String(const flatbuffers::String* value) override {
    attributes_.add_text(field_, value->string_view());
  }
  void StartVector() override { elements_.emplace(); }
  void EndVector() override {
    attributes_.add(field_, std::move(*elements_));
    elements_.reset();
  }

 private:
  /// `name` is that of a value of an enum.
  void add_number(std::int64_t value, const char* name) {
    if (elements_) {
      elements_->push_back(value);
    } else if (name != nullptr) {
      attributes_.add(field_, std::string(name));
    } else {
      attributes_.add(field_, value);
    }
  }

  Attributes& attributes_;
  std::string field_;
  std::optional<Ints> elements_;
};

bool is_long(const flatbuffers::Vector<std::int32_t>* list) {
  return list != nullptr && list->size() > kMostElements;
}

/// Whether the options hold one of the two lists that there are, and that is absurd.
bool has_long_list(const file::Operator& source) {
  const auto* reshape = source.builtin_options_as_ReshapeOptions();
  const auto* squeeze = source.builtin_options_as_SqueezeOptions();
  return (reshape != nullptr && is_long(reshape->new_shape())) ||
         (squeeze != nullptr && is_long(squeeze->squeeze_dims()));
}

void add_builtin_options(const file::Operator& source, Attributes& attributes) {
  const auto* table = static_cast<const std::uint8_t*>(source.builtin_options());
  const auto* types = file::BuiltinOptionsTypeTable();
  const auto type = static_cast<std::int64_t>(source.builtin_options_type());
  const auto index = flatbuffers::LookupEnum(type, types->values, types->num_elems);
  // Index 0 stands for no options.
  if (table == nullptr || index < 1 || has_long_list(source)) return;
  const auto reference = types->type_codes[index].sequence_ref;
  FieldCollector collector(attributes);
  flatbuffers::IterateObject(table, types->type_refs[reference](), &collector);
}

void add_value(const std::string& name, const flexbuffers::Reference& value,
               Attributes& attributes) {
  if (value.IsBool()) return attributes.add(name, std::int64_t{value.AsBool()});
  if (value.IsInt()) return attributes.add(name, std::int64_t{value.AsInt64()});
  if (value.IsUInt()) return attributes.add(name, static_cast<std::int64_t>(value.AsUInt64()));
  if (value.IsFloat()) return attributes.add(name, value.AsDouble());
  if (value.IsString()) {
    const auto text = value.AsString();
    attributes.add_text(name, {text.c_str(), text.size()});
  }
}

/// Adds the entries of a map that are single values. False if the bytes are no map.
bool add_custom_map(const std::vector<std::uint8_t>& bytes, Attributes& attributes) {
  std::vector<std::uint8_t> seen;  // keeps the check linear where values are shared
  if (bytes.size() < 3 || !flexbuffers::VerifyBuffer(bytes.data(), bytes.size(), &seen))
    return false;
  const auto root = flexbuffers::GetRoot(bytes);
  if (!root.IsMap()) return false;
  const auto map = root.AsMap();
  const auto keys = map.Keys();
  const auto values = map.Values();
  for (std::size_t i = 0; i < std::min({keys.size(), values.size(), kMostElements}); ++i)
    add_value(std::string(keys[i].AsKey()).substr(0, kLongestText), values[i], attributes);
  return true;
}

}  // namespace

std::map<std::string, Attribute> read_attributes(const file::Operator& source, CopyBudget& budget) {
  Attributes attributes(budget);
  add_builtin_options(source, attributes);
  const auto* custom = source.custom_options();
  if (custom == nullptr || custom->size() == 0) return std::move(attributes).take();
  // Copied, since a FlexBuffer is to be aligned.
  const bool is_small = custom->size() <= kMostOptionBytes && attributes.may_copy(custom->size());
  if (!is_small || !add_custom_map({custom->begin(), custom->end()}, attributes))
    attributes.add("custom_options_bytes", std::int64_t{custom->size()});
  return std::move(attributes).take();
}

}  // namespace fleetfit::graph::tflite
