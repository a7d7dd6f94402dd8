#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fleetfit/core/field_types.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"

/// A record is described once: each field's name, its member, what may be in it and whether it may
/// be missing. JSON in and out, YAML (yaml/fields.h), checks and columns of SQL come from that.
///
/// The header of a record declares its description, the source defines it:
///
///     struct Limits {
///       double seconds = 600;
///       std::optional<std::int64_t> memory_bytes = std::nullopt;
///     };
///     core::Fields fields_of(const Limits*);
///
///     core::Fields fields_of(const Limits*) {
///       static constexpr core::Field kAll[] = {
///           core::field<&Limits::seconds>("seconds", "after which the job is stopped")
///               .above(0).up_to(3600).may_be_missing(),
///           core::field<&Limits::memory_bytes>("memory_bytes").from(1)};
///       return {.what = "limits", .all = kAll, .others = core::OtherKeys::refused};
///     }
///
/// Then `core::to_json(limits)`, `core::read<Limits>(view)` and `core::check(limits)` work, and so
/// they do for records with a member of type `Limits`, `std::optional<Limits>` or
/// `std::vector<Limits>`. A member is a text, boolean, number, enum with names (names.h), Time,
/// Interval, another described record, or an optional or a list of these; for other types see
/// `OwnJson` and `field_by` below. A record that is written in two ways has two functions that give
/// Fields, of which one is called `fields_of`.
namespace fleetfit::core {

struct Field;

enum class OtherKeys : std::uint8_t { ignored, refused };

/// A description. Lives as long as the program.
struct Fields {
  std::string_view what = {};       ///< one such record in messages: "device"
  std::span<const Field> all = {};  ///< in the order in which they are written
  OtherKeys others = OtherKeys::ignored;
  /// What several fields have to keep together: `rule_by` makes it.
  Status (*rule)(const void* record) = nullptr;
};

/// What a number may be.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool without_low = false;  ///< `low` itself is not in it

  bool contains(double value) const {
    return (without_low ? value > low : value >= low) && value <= high;
  }
  IntegerRange integers() const;
  /// What a value outside is: "below zero", "not above 0", "not from 0 to 1".
  std::string problem() const;
};

/// A field of a record, and what may be in it. Made by `field` and its like; each function below
/// gives a field with one more rule, and the rules of a list or optional are those of its elements.
struct Field {
  enum class Text : std::uint8_t { any, key, hash, json_object, json_list };
  enum class IfDefault : std::uint8_t { written, left_out, null };

  std::string_view name;
  std::string_view sentence = {};   ///< for people
  std::string_view column = {};     ///< in SQL and in messages of `check`; empty: the name
  const FieldType* type = nullptr;  ///< null if functions of its own read and write it
  const void* (*member)(const void* record) = nullptr;
  bool (*is_default)(const void* record) = nullptr;
  Status (*parse)(std::string_view, void* record) = nullptr;
  Status (*read)(const JsonView&, void* record) = nullptr;
  void (*write)(const void* record, nlohmann::ordered_json&) = nullptr;
  Status (*text_check)(std::string_view) = nullptr;
  std::span<const std::string_view> words = {};
  NumberRange range = {};
  std::size_t least = 0;
  std::size_t most = std::numeric_limits<std::size_t>::max();
  Text text = Text::any;
  IfDefault if_default = IfDefault::written;
  bool is_optional = false;
  bool is_inlined = false;
  bool is_stored = true;
  bool is_constant = false;

  /// The member keeps its value where the document has none. Optionals may always be missing. A
  /// text that may be missing may also be empty.
  constexpr Field may_be_missing() const { return with(&Field::is_optional, true); }
  /// Not written while it is nothing, or has the value of a new record.
  constexpr Field omit_default() const { return with(&Field::if_default, IfDefault::left_out); }
  /// Written as null then, in SQL, too.
  constexpr Field null_default() const { return with(&Field::if_default, IfDefault::null); }

  /// Of numbers.
  constexpr Field from(double low) const { return in({low, range.high, false}); }
  constexpr Field above(double low) const { return in({low, range.high, true}); }
  constexpr Field up_to(double high) const { return in({range.low, high, range.without_low}); }
  constexpr Field between(double low, double high) const { return in({low, high, false}); }

  /// Bytes of a text, elements of a list.
  constexpr Field at_most(std::size_t count) const { return with(&Field::most, count); }
  constexpr Field at_least(std::size_t count) const { return with(&Field::least, count); }

  /// A text that is not empty.
  constexpr Field key() const { return with(&Field::text, Text::key); }
  /// SHA-256 in 64 small hexadecimal digits.
  constexpr Field hash() const { return with(&Field::text, Text::hash); }
  /// A text that holds a JSON object or list: documents have the value itself.
  constexpr Field json_object() const { return with(&Field::text, Text::json_object); }
  constexpr Field json_list() const { return with(&Field::text, Text::json_list); }
  constexpr Field one_of(std::span<const std::string_view> all) const {
    return with(&Field::words, all);
  }
  /// A text that `check` does not refuse; its message says what was expected.
  constexpr Field checked(Status (*check)(std::string_view)) const {
    return with(&Field::text_check, check);
  }

  /// Of a record, or an optional one: its fields stand among those of this record, without a name
  /// of its own. An optional one is there if one of its fields is.
  constexpr Field inlined() const { return with(&Field::is_inlined, true); }

  constexpr Field in_column(std::string_view other) const { return with(&Field::column, other); }
  constexpr Field not_stored() const { return with(&Field::is_stored, false); }
  /// Never changes once it is stored.
  constexpr Field constant() const { return with(&Field::is_constant, true); }

  bool holds_json() const { return text == Text::json_object || text == Text::json_list; }
  std::string_view column_name() const { return column.empty() ? name : column; }

 private:
  template <class T>
  constexpr Field with(T Field::* rule, std::type_identity_t<T> value) const {
    Field changed = *this;
    changed.*rule = value;
    return changed;
  }
  constexpr Field in(NumberRange other) const { return with(&Field::range, other); }
};

/// The keys in the order of the description, those of inlined records in their place.
std::vector<std::string_view> keys_of(const Fields& fields);

nlohmann::ordered_json to_json(const Fields& fields, const void* record);
/// Leaves `record` half read where it fails, with `invalid_input` and the place of the first field
/// that is wrong: "a.json: devices[2].threads: expected a whole number from 1, found 0".
Status read(const JsonView& view, const Fields& fields, void* record);
/// Fails with `invalid_input`, naming `what` and the first field that breaks its rule: "job 3:
/// attempt is -1, below zero". Texts must be UTF-8 without NUL, and numbers finite.
Status check(const Fields& fields, const void* record, std::string_view what);

/// Keys as described; `to_json<nlohmann::json>` sorts them.
template <class Json = nlohmann::ordered_json, Described T>
Json to_json(const T& record) {
  return to_json(fields_of(&record), &record);
}

template <class Json = nlohmann::ordered_json, Described T>
Json to_json(const std::vector<T>& records);

template <Described T>
Status read(const JsonView& view, T& record) {
  return read(view, fields_of(&record), &record);
}

template <Described T>
Result<T> read(const JsonView& view) {
  T record{};
  FLEETFIT_TRY(read(view, record));
  return record;
}

template <Described T>
Status check(const T& record, std::string_view what) {
  return check(fields_of(&record), &record, what);
}

template <Described T>
Status check(const T& record) {
  const auto fields = fields_of(&record);
  return check(fields, &record, fields.what);
}

// For readers and writers of other formats.

/// The description of an inlined record, and the record; null if it is an optional that is absent.
Fields inlined_fields(const Field& field);
const void* inlined_record(const Field& field, const void* record);
/// Where a field's value is in a record that is to be changed, and where a list's next element is.
void* member_of(const Field& field, void* record);
void* new_element(const FieldType& list, void* value, std::size_t index);
/// The rule of a field for a value that is in no record: "claim: worker is empty".
Status check_text(std::string_view what, const Field& field, std::string_view text);
Status check_number(std::string_view what, const Field& field, double number);
/// What is wrong with a text by the field's rules, if anything.
std::optional<std::string> problem_with(const Field& field, std::string_view text);
/// A value of that type as JSON; texts that hold JSON as what they hold.
nlohmann::ordered_json value_json(const FieldType& type, const Field& field, const void* value);

// What follows makes descriptions.

/// A member, or a member of a member.
template <auto... path>
struct MemberOf;
template <class R, class T, T R::* member>
struct MemberOf<member> {
  using Record = R;
  using Type = T;

  static const T& of(const void* record) { return static_cast<const R*>(record)->*member; }
  static T& of(void* record) { return static_cast<R*>(record)->*member; }
};
template <class R, class T, T R::* member, auto next, auto... rest>
struct MemberOf<member, next, rest...> {
  using Inside = MemberOf<next, rest...>;
  using Record = R;
  using Type = typename Inside::Type;

  static const Type& of(const void* record) {
    return Inside::of(static_cast<const void*>(&MemberOf<member>::of(record)));
  }
  static Type& of(void* record) {
    return Inside::of(static_cast<void*>(&MemberOf<member>::of(record)));
  }
};

/// A field that is a member of its record, or a member of one: `field<&Job::limits, &Limits::ms>`.
template <auto... member>
constexpr Field field(std::string_view name, std::string_view sentence = {}) {
  using Place = MemberOf<member...>;
  using Type = typename Place::Type;
  using Record = typename Place::Record;
  Field field{.name = name, .sentence = sentence, .type = &kFieldType<Type>};
  field.member = [](const void* record) -> const void* { return &Place::of(record); };
  field.is_optional = kFieldType<Type>.shape == FieldType::Shape::optional;
  if constexpr (kFieldType<Type>.shape < FieldType::Shape::record ||
                kFieldType<Type>.fixed_size > 0) {
    field.is_default = [](const void* record) {
      static const Record kNew{};
      return Place::of(record) == Place::of(static_cast<const void*>(&kNew));
    };
  }
  return field;
}

/// A rule about a whole record: `Status check(const Record&)`, whose message follows the place.
template <class Record, Status (*check)(const Record&)>
Status rule_by(const void* record) {
  return check(*static_cast<const Record*>(record));
}

/// A member that documents have as a text: `Result<Type> parse(std::string_view)` reads it. It is
/// not written.
template <auto member, auto parse>
constexpr Field parsed_field(std::string_view name, std::string_view sentence = {}) {
  using Place = MemberOf<member>;
  Field field{.name = name, .sentence = sentence};
  field.parse = [](std::string_view text, void* record) -> Status {
    FLEETFIT_ASSIGN(Place::of(record), parse(text));
    return {};
  };
  return field;
}

/// A field that is written only: what `value(const Record&)` gives, JSON or any type of a member.
template <class Record, auto value>
constexpr Field written_field(std::string_view name, std::string_view sentence = {}) {
  Field field{.name = name, .sentence = sentence};
  field.write = [](const void* record, nlohmann::ordered_json& json) {
    using Value = std::remove_cvref_t<decltype(value(*static_cast<const Record*>(record)))>;
    const Value written = value(*static_cast<const Record*>(record));
    if constexpr (std::is_same_v<Value, nlohmann::ordered_json>)
      json = written;
    else
      json = value_json(kFieldType<Value>, Field{.name = {}}, &written);
  };
  return field;
}

/// A field that is read only, by a function.
template <class Record, auto read>
constexpr Field read_field(std::string_view name, std::string_view sentence = {}) {
  Field field{.name = name, .sentence = sentence};
  field.read = [](const JsonView& view, void* record) -> Status {
    return read(view, *static_cast<Record*>(record));
  };
  return field;
}

/// A field that functions read and write, which see the record as it is read so far:
/// `Status read(const JsonView&, Record&)` and `nlohmann::ordered_json write(const Record&)`.
template <class Record, auto read, auto write>
constexpr Field field_by(std::string_view name, std::string_view sentence = {}) {
  Field field = read_field<Record, read>(name, sentence);
  field.write = written_field<Record, write>(name).write;
  return field;
}

/// A key that is known, but read and written by somebody else.
constexpr Field other_field(std::string_view name, std::string_view sentence = {}) {
  return {.name = name, .sentence = sentence, .is_optional = true};
}

template <class Json, Described T>
Json to_json(const std::vector<T>& records) {
  return value_json(kFieldType<std::vector<T>>, Field{.name = {}}, &records);
}

}  // namespace fleetfit::core

/// The fields of a table whose keys are the names of members, up to sixty-four.
#define FLEETFIT_MEMBERS(Record, ...) FLEETFIT_64_TIMES_(FLEETFIT_MEMBER_(Record, __VA_ARGS__))

// A macro does not expand itself, so each step leaves the next one to another reading of the text.
#define FLEETFIT_MEMBER_(Record, member, ...)       \
  ::fleetfit::core::field<&Record::member>(#member) \
      __VA_OPT__(, FLEETFIT_NEXT_MEMBER_ FLEETFIT_PARENTHESES_(Record, __VA_ARGS__))
#define FLEETFIT_NEXT_MEMBER_() FLEETFIT_MEMBER_
#define FLEETFIT_PARENTHESES_ ()
#define FLEETFIT_64_TIMES_(...) \
  FLEETFIT_16_TIMES_(FLEETFIT_16_TIMES_(FLEETFIT_16_TIMES_(FLEETFIT_16_TIMES_(__VA_ARGS__))))
#define FLEETFIT_16_TIMES_(...) \
  FLEETFIT_4_TIMES_(FLEETFIT_4_TIMES_(FLEETFIT_4_TIMES_(FLEETFIT_4_TIMES_(__VA_ARGS__))))
#define FLEETFIT_4_TIMES_(...) \
  FLEETFIT_ONCE_(FLEETFIT_ONCE_(FLEETFIT_ONCE_(FLEETFIT_ONCE_(__VA_ARGS__))))
#define FLEETFIT_ONCE_(...) __VA_ARGS__
