#include "fleetfit/graph/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>

#include "fleetfit/core/file.h"

namespace fleetfit::graph {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they are");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionEnd = 8;             // magic, major and minor version
constexpr std::size_t kAlignment = 64;             // of the values in the file
constexpr std::size_t kMostHeaderBytes = 1 << 16;  // far more than sixteen dimensions take
constexpr std::uint64_t kMostFileBytes = std::uint64_t{8} << 30;

struct TypeName {
  std::string_view descr;
  DType dtype;
};

constexpr std::array<TypeName, 12> kTypes = {{{"<f2", DType::f16},
                                              {"<f4", DType::f32},
                                              {"<f8", DType::f64},
                                              {"|i1", DType::i8},
                                              {"|u1", DType::u8},
                                              {"<i2", DType::i16},
                                              {"<u2", DType::u16},
                                              {"<i4", DType::i32},
                                              {"<u4", DType::u32},
                                              {"<i8", DType::i64},
                                              {"<u8", DType::u64},
                                              {"|b1", DType::boolean}}};

/// What the header says, each part once.
struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

/// Reads the header: a Python dictionary such as
/// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : rest_(text) {}

  Result<Header> read() {
    Header header;
    if (!take('{')) return broken("does not begin with '{'");
    while (!take('}')) {
      FLEETFIT_TRY(read_entry(header));
      if (!take(',') && !peek('}')) return broken("lacks a comma between its entries");
    }
    skip_blanks();
    if (!rest_.empty()) return broken("goes on after '}'");
    if (!header.descr || !header.fortran_order || !header.shape) {
      return broken("lacks one of descr, fortran_order and shape");
    }
    return header;
  }

 private:
  Status read_entry(Header& header) {
    const auto key = read_text();
    if (!key) return broken("has an entry without a key");
    if (!take(':')) return broken(fmt::format("lacks ':' after {}", *key));
    if (*key == "descr") return keep(read_descr(), header.descr);
    if (*key == "fortran_order") return keep(read_truth(), header.fortran_order);
    if (*key == "shape") return keep(read_shape(), header.shape);
    return broken("has an entry that is none of descr, fortran_order and shape");
  }

  template <class T>
  Status keep(Result<T> value, std::optional<T>& place) {
    FLEETFIT_TRY(value);
    if (place) return broken("says one thing twice");
    place = std::move(*value);
    return {};
  }

  Result<std::string> read_descr() {
    if (peek('['))
      return fail(ErrorCode::unsupported, "records are not supported, plain types are");
    auto text = read_text();
    if (!text) return broken("has no text as descr");
    return std::move(*text);
  }

  Result<bool> read_truth() {
    if (take_word("True")) return true;
    if (take_word("False")) return false;
    return broken("has neither True nor False as fortran_order");
  }

  Result<Shape> read_shape() {
    Shape shape;
    if (!take('(')) return broken("has no list in parentheses as shape");
    while (!take(')')) {
      const auto extent = read_extent();
      if (!extent) return broken("has a dimension that is no whole number of up to 18 digits");
      shape.push_back(*extent);
      if (!take(',') && !peek(')')) return broken("lacks a comma in its shape");
    }
    return shape;
  }

  std::optional<std::int64_t> read_extent() {
    skip_blanks();
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
    if (error != std::errc{} || extent < 0) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return extent;
  }

  /// A text in quotes, without escapes, as numpy writes them.
  std::optional<std::string> read_text() {
    skip_blanks();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return std::nullopt;
    const auto end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool take_word(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  bool take(char c) {
    if (!peek(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool peek(char c) {
    skip_blanks();
    return !rest_.empty() && rest_[0] == c;
  }

  void skip_blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }

  static tl::unexpected<Error> broken(std::string_view problem) {
    return fail(ErrorCode::invalid_input, fmt::format("its header {}", problem));
  }

  std::string_view rest_;
};

/// Header and values of a file, still bytes.
struct Parts {
  std::string_view header;
  std::size_t values_begin = 0;
};

std::size_t little_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

Result<Parts> divide(std::string_view file) {
  if (!file.starts_with(kMagic)) return fail(ErrorCode::invalid_input, "it is no .npy file");
  if (file.size() < kVersionEnd) return fail(ErrorCode::invalid_input, "it is cut short");
  const int major = static_cast<unsigned char>(file[kMagic.size()]);
  const int minor = static_cast<unsigned char>(file[kMagic.size() + 1]);
  if ((major != 1 && major != 2) || minor != 0) {
    return fail(ErrorCode::unsupported,
                fmt::format("format {}.{} of .npy files, 1.0 and 2.0 are known", major, minor));
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t header_begin = kVersionEnd + length_bytes;
  if (file.size() < header_begin) return fail(ErrorCode::invalid_input, "it is cut short");
  const std::size_t length = little_endian(file.substr(kVersionEnd, length_bytes));
  if (length > kMostHeaderBytes || length > file.size() - header_begin) {
    return fail(ErrorCode::invalid_input,
                fmt::format("its header of {} bytes is longer than the file or absurd", length));
  }
  return Parts{file.substr(header_begin, length), header_begin + length};
}

/// A piece of the file as messages may show it.
std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string result(text.substr(0, kMost));
  std::ranges::replace_if(result, [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

Result<DType> type_of(std::string_view descr) {
  const auto* found = std::ranges::find_if(kTypes, [&](const TypeName& type) {
    return type.descr.substr(1) == descr.substr(std::min<std::size_t>(1, descr.size())) &&
           (descr[0] == type.descr[0] || (size_of(type.dtype) == 1 && descr[0] == '<'));
  });
  if (found == kTypes.end()) {
    return fail(ErrorCode::unsupported,
                fmt::format("values of type '{}' are not supported", printable(descr)));
  }
  return found->dtype;
}

/// Other bytes would be neither true nor false to who reads them as bool.
bool are_truths(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == 0 || c == 1; });
}

Result<Value> read_value(const std::shared_ptr<const std::string>& file) {
  FLEETFIT_ASSIGN(const auto parts, divide(*file));
  auto header = HeaderReader(parts.header).read();
  FLEETFIT_TRY(header);
  FLEETFIT_ASSIGN(const auto dtype, type_of(*header->descr));
  if (*header->fortran_order) {
    return fail(ErrorCode::unsupported,
                "Fortran order is not supported; numpy.ascontiguousarray gives C order");
  }
  FLEETFIT_ASSIGN(const auto count, element_count(*header->shape));

  const auto values = std::string_view(*file).substr(parts.values_begin);
  const auto expected = static_cast<std::size_t>(count) * size_of(dtype);
  if (values.size() != expected) {
    return fail(ErrorCode::invalid_input,
                fmt::format("it holds {} bytes of values, {} of {} take {}", values.size(),
                            to_string(*header->shape), to_string(dtype), expected));
  }
  if (dtype == DType::boolean && !are_truths(values)) {
    return fail(ErrorCode::invalid_input, "a bool is neither 0 nor 1");
  }
  return Value{.dtype = dtype,
               .shape = std::move(*header->shape),
               .data = TensorData::view(std::as_bytes(std::span(values)), file)};
}

Result<Value> read_named(std::string file, std::string_view name) {
  // Shared by all copies of the value: its bytes stay where they were read.
  FLEETFIT_ASSIGN(
      auto value,
      core::within(name, read_value(std::make_shared<const std::string>(std::move(file)))));
  return value;
}

/// "()", "(3,)", "(3, 4)".
std::string python_tuple(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

}  // namespace

Result<Value> read_npy(const std::filesystem::path& path) {
  FLEETFIT_ASSIGN(auto file, core::read_file(path, {.max_bytes = kMostFileBytes}));
  return read_named(std::move(file), path.string());
}

Result<Value> parse_npy(std::span<const std::byte> bytes, std::string_view name) {
  return read_named({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
}

Result<std::string> format_npy(const Value& value) {
  const auto* type = std::ranges::find(kTypes, value.dtype, &TypeName::dtype);
  if (type == kTypes.end()) {
    return fail(ErrorCode::unsupported,
                fmt::format(".npy files cannot hold {}", to_string(value.dtype)));
  }
  FLEETFIT_ASSIGN(const auto count, element_count(value.shape));
  const auto bytes = value.data.bytes();
  if (bytes.size() != static_cast<std::size_t>(count) * size_of(value.dtype)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} bytes are not {} of {}", bytes.size(), to_string(value.shape),
                            to_string(value.dtype)));
  }

  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                   type->descr, python_tuple(value.shape));
  const std::size_t before = kVersionEnd + 2;
  const std::size_t unpadded = before + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header.push_back('\n');

  std::string file(kMagic);
  for (const auto byte : {std::size_t{1}, std::size_t{0}, header.size() % 256, header.size() / 256})
    file.push_back(static_cast<char>(byte));
  file.reserve(before + header.size() + bytes.size());
  file += header;
  file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return file;
}

Status write_npy(const std::filesystem::path& path, const Value& value) {
  FLEETFIT_ASSIGN(const auto file, core::within(path.string(), format_npy(value)));
  return core::write_file(path, file);
}

}  // namespace fleetfit::graph
