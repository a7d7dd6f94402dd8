#include "fleetfit/core/result.h"

#include <gtest/gtest.h>

namespace fleetfit {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(ErrorCode::invalid_input, "3 is odd");
  return value / 2;
}

TEST(Result, CarriesAValueOrAnError) {
  EXPECT_EQ(half(4).value(), 2);
  EXPECT_EQ(half(3).error(), (Error{ErrorCode::invalid_input, "3 is odd"}));
}

TEST(Result, WithinPutsThePlaceInFrontAndKeepsTheCode) {
  const auto outer = core::within("a.onnx", half(3).error());
  EXPECT_EQ(outer.value(), (Error{ErrorCode::invalid_input, "a.onnx: 3 is odd"}));
}

TEST(Result, EveryCodeHasItsOwnName) {
  EXPECT_EQ(core::to_string(ErrorCode::device_failed), "device_failed");
  EXPECT_EQ(core::to_string(ErrorCode::cancelled), "cancelled");
}

}  // namespace
}  // namespace fleetfit
