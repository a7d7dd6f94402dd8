#include "fleetfit/core/base64.h"

#include <gtest/gtest.h>

#include <utility>

namespace fleetfit::core {
namespace {

TEST(Base64, IsThatOfTheStandard) {
  const std::pair<const char*, const char*> published[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"}};  // RFC 4648, section 10
  for (const auto& [bytes, text] : published) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
}

TEST(Base64, KeepsEveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes);
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg= =", "Z===", "====", "Zm9v\n", "Zm-v",
                           "Zh==", "=Zg=", "Zm9=", "Zg==Zg=="})
    EXPECT_FALSE(decode_base64(text)) << text;
}

}  // namespace
}  // namespace fleetfit::core
