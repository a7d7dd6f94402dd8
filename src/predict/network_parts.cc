#include "fleetfit/predict/network_parts.h"

#include <bit>
#include <cstdint>
#include <string>

#include "fleetfit/core/base64.h"
#include "fleetfit/core/fields.h"

namespace fleetfit::predict {
namespace {

constexpr double kMaxWidth = 1 << 16;

// The bytes of the numbers, the lowest first, whatever the machine's order.
std::string bytes_of(std::span<const float> values) {
  std::string bytes;
  bytes.reserve(values.size() * 4);
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<char>((bits >> shift) & 0xff));
  }
  return bytes;
}

std::vector<float> numbers_of(std::string_view bytes) {
  std::vector<float> values(bytes.size() / 4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t bits = 0;
    for (std::size_t byte = 0; byte < 4; ++byte)
      bits |= std::uint32_t{static_cast<unsigned char>(bytes[4 * i + byte])} << (8 * byte);
    values[i] = std::bit_cast<float>(bits);
  }
  return values;
}

template <std::vector<float> DenseLayer::* member>
Status read_floats(const core::JsonView& json, DenseLayer& layer) {
  FLEETFIT_ASSIGN(const auto text, json.as_text());
  const auto bytes = core::decode_base64(text);
  if (!bytes || bytes->size() % 4 != 0) return json.error("expected 32-bit floats in base64");
  layer.*member = numbers_of(*bytes);
  return {};
}

template <std::vector<float> DenseLayer::* member>
std::string write_floats(const DenseLayer& layer) {
  return core::encode_base64(bytes_of(layer.*member));
}

template <std::vector<float> DenseLayer::* member>
constexpr core::Field floats_field(std::string_view name) {
  return core::field_by<DenseLayer, read_floats<member>, write_floats<member>>(name);
}

}  // namespace

core::Names names_of(Transform) {
  static constexpr core::Name kAll[] = {{Transform::plain, "plain"}, {Transform::logarithm, "log"}};
  return {.what = "transform", .all = kAll};
}

core::Fields fields_of(const InputScaling*) {
  static constexpr core::Field kAll[] = {core::field<&InputScaling::transform>("transform"),
                                         core::field<&InputScaling::mean>("mean"),
                                         core::field<&InputScaling::scale>("scale")};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Fields fields_of(const DenseLayer*) {
  static constexpr core::Field kAll[] = {
      core::field<&DenseLayer::inputs>("inputs").between(1, kMaxWidth),
      core::field<&DenseLayer::outputs>("outputs").between(1, kMaxWidth),
      floats_field<&DenseLayer::weights>("weights"), floats_field<&DenseLayer::bias>("bias")};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Fields fields_of(const OutputScaling*) {
  static constexpr core::Field kAll[] = {
      core::field<&OutputScaling::transform>("transform"),
      core::field<&OutputScaling::offset>("offset"), core::field<&OutputScaling::scale>("scale"),
      core::field<&OutputScaling::min>("min"), core::field<&OutputScaling::max>("max")};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

}  // namespace fleetfit::predict
