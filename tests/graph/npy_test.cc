#include "fleetfit/graph/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleetfit/core/file.h"
#include "fleetfit/core/process.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;

Result<Value> parse(const std::string& file) {
  return parse_npy(std::as_bytes(std::span(file)), "x.npy");
}

/// A file of format 1.0 with this header, as it is.
std::string file_with(const std::string& header, const std::string& values) {
  return "\x93NUMPY\x01\x00"s + static_cast<char>(header.size() % 256) +
         static_cast<char>(header.size() / 256) + header + values;
}

Error error_of(const std::string& header, const std::string& values = "") {
  const auto result = parse(file_with(header, values));
  return result ? Error{ErrorCode::internal, "no error"} : result.error();
}

TEST(Npy, WritesTheBytesThatTheFormatAsksFor) {
  const Value value{.dtype = DType::i16,
                    .shape = {2},
                    .data = TensorData::copy(std::vector<std::int16_t>{1, -2})};
  // 10 bytes, the dictionary and the line end make 128 with the blanks in between.
  const std::string dictionary = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
  const std::string header = dictionary + std::string(128 - 10 - dictionary.size() - 1, ' ') + "\n";
  EXPECT_EQ(format_npy(value).value(), "\x93NUMPY\x01\x00\x76\x00"s + header + "\x01\x00\xfe\xff"s);
}

TEST(Npy, ReadsBothFormats) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}\n";
  const std::string values = "\x00\x00\x80\x3f\x00\x00\x00\xc0"s;  // 1 and -2
  const auto first = parse(file_with(header, values)).value();
  const auto second =
      parse("\x93NUMPY\x02\x00"s + static_cast<char>(header.size()) + "\0\0\0"s + header + values)
          .value();
  for (const auto& value : {first, second}) {
    EXPECT_EQ(value.dtype, DType::f32);
    EXPECT_EQ(value.shape, (Shape{1, 2}));
    EXPECT_THAT(value.data.as<float>(), ElementsAre(1.0F, -2.0F));
  }
}

TEST(Npy, TakesTheHeaderInAnyOrderAndQuotes) {
  const auto value =
      parse(file_with(R"( {"shape": (), 'fortran_order':False,"descr":"|b1"} )", "\x01"s)).value();
  EXPECT_EQ(value.dtype, DType::boolean);
  EXPECT_EQ(value.shape, Shape{});
}

TEST(Npy, EveryTypeComesBackAsItWasWritten) {
  for (const auto type :
       {DType::f16, DType::f32, DType::f64, DType::i8, DType::u8, DType::i16, DType::u16,
        DType::i32, DType::u32, DType::i64, DType::u64, DType::boolean}) {
    std::vector<std::byte> bytes(6 * size_of(type));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 2);
    const Value value{.dtype = type, .shape = {2, 1, 3}, .data = TensorData::own(bytes)};
    const core::TemporaryFolder folder;
    ASSERT_TRUE(write_npy(folder.path() / "x.npy", value));
    const auto again = read_npy(folder.path() / "x.npy");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->dtype, type);
    EXPECT_EQ(again->shape, value.shape);
    EXPECT_EQ(again->data, value.data) << to_string(type);
  }
}

TEST(Npy, SaysWhatItDoesNotSupport) {
  const auto fortran = error_of("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1)}", "abcd");
  EXPECT_EQ(fortran.code, ErrorCode::unsupported);
  EXPECT_THAT(fortran.message, HasSubstr("x.npy: Fortran order is not supported"));
  for (const std::string descr : {"'>f4'", "'<c8'", "'<U3'", "'|O'", "''", "[('a', '<f4')]"}) {
    const auto error =
        error_of("{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,)}", "abcd");
    EXPECT_EQ(error.code, ErrorCode::unsupported) << descr << error.message;
  }
  EXPECT_EQ(parse("\x93NUMPY\x03\x00\x00\x00\x00\x00"s).error().code, ErrorCode::unsupported);
  const Value brain{
      .dtype = DType::bf16, .shape = {1}, .data = TensorData::own(std::vector<std::byte>(2))};
  EXPECT_EQ(format_npy(brain).error().code, ErrorCode::unsupported);
}

TEST(Npy, RefusesBrokenHeaders) {
  for (const std::string header :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4", "{'descr' '<f4'}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}"}) {
    const auto error = error_of(header, "abcd");
    EXPECT_EQ(error.code, ErrorCode::invalid_input) << header;
    EXPECT_THAT(error.message, ::testing::StartsWith("x.npy: ")) << header;
  }
}

TEST(Npy, RefusesSizesThatDoNotFit) {
  const auto error_for = [](const std::string& shape, std::size_t bytes) {
    return error_of("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}",
                    std::string(bytes, '\0'));
  };
  EXPECT_EQ(error_for("(2,)", 7).message, "x.npy: it holds 7 bytes of values, 2 of float32 take 8");
  EXPECT_EQ(error_for("(2,)", 9).code, ErrorCode::invalid_input);
  // 2^62 elements of four bytes would be zero bytes in 64 bits.
  EXPECT_EQ(error_for("(4611686018427387904,)", 0).code, ErrorCode::invalid_input);
  EXPECT_EQ(error_for("(4611686018427387904, 0)", 0).code, ErrorCode::invalid_input);
  EXPECT_EQ(error_for("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)", 4).code, ErrorCode::invalid_input);
}

TEST(Npy, RefusesFilesThatAreCutShort) {
  const auto whole = file_with("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", "a");
  ASSERT_TRUE(parse(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(parse(whole.substr(0, size)).error().code, ErrorCode::invalid_input) << size;
  }
  EXPECT_EQ(parse("\x93NUMPY\x02\x00\xff\xff\xff\xff{}"s).error().code, ErrorCode::invalid_input);
}

TEST(Npy, RefusesBoolsThatAreNeitherTrueNorFalse) {
  const auto error =
      error_of("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", "\x01\x02"s);
  EXPECT_EQ(error.message, "x.npy: a bool is neither 0 nor 1");
}

/// Runs Python with numpy in a folder; skips the test where there is none.
class NpyAndNumpy : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!python("import numpy")) GTEST_SKIP() << "Debian's package python3-numpy is not here";
  }

  bool python(const std::string& script) const {
    const auto result = core::run({"/usr/bin/python3", "-c", script},
                                  {.process = {.working_folder = folder_.path()}});
    if (result && !result->succeeded()) last_words_ = result->error_output;
    return result && result->succeeded();
  }

  core::TemporaryFolder folder_;
  mutable std::string last_words_;
};

TEST_F(NpyAndNumpy, NumpyReadsWhatWeWrite) {
  const Value value{.dtype = DType::f64,
                    .shape = {2, 3},
                    .data = TensorData::copy(std::vector<double>{0, 1, 2, 3, 4, 5.5})};
  ASSERT_TRUE(write_npy(folder_.path() / "x.npy", value));
  const Value scalar{
      .dtype = DType::u8, .shape = {}, .data = TensorData::copy(std::vector<std::uint8_t>{7})};
  ASSERT_TRUE(write_npy(folder_.path() / "s.npy", scalar));
  EXPECT_TRUE(
      python("import numpy as n; x = n.load('x.npy'); s = n.load('s.npy');"
             "assert x.dtype == n.float64 and x.tolist() == [[0, 1, 2], [3, 4, 5.5]], x;"
             "assert s.dtype == n.uint8 and s.shape == () and s == 7, s"))
      << last_words_;
}

TEST_F(NpyAndNumpy, WeReadWhatNumpyWrites) {
  ASSERT_TRUE(
      python("import numpy as n;"
             "n.save('h.npy', n.array([[1, -0.5]], 'f2'));"
             "n.save('q.npy', n.arange(-1, 3).reshape(2, 2, 1));"
             "n.save('e.npy', n.zeros((0, 3), 'i1'));"
             "n.save('f.npy', n.asfortranarray([[1, 2], [3, 4]]));"
             "n.lib.format.write_array(open('two.npy', 'wb'), n.array([True, False]), (2, 0))"))
      << last_words_;
  const auto half = read_npy(folder_.path() / "h.npy").value();
  EXPECT_EQ(half.dtype, DType::f16);
  EXPECT_THAT(half.data.as<std::uint16_t>(), ElementsAre(0x3c00, 0xb800));
  const auto whole = read_npy(folder_.path() / "q.npy").value();
  EXPECT_EQ(whole.shape, (Shape{2, 2, 1}));
  EXPECT_THAT(whole.data.as<std::int64_t>(), ElementsAre(-1, 0, 1, 2));
  EXPECT_EQ(read_npy(folder_.path() / "e.npy").value().shape, (Shape{0, 3}));
  EXPECT_EQ(read_npy(folder_.path() / "f.npy").error().code, ErrorCode::unsupported);
  const auto truths = read_npy(folder_.path() / "two.npy").value();
  EXPECT_EQ(truths.dtype, DType::boolean);
  EXPECT_THAT(truths.data.as<std::uint8_t>(), ElementsAre(1, 0));
}

TEST(Npy, AMissingFileIsNotFound) {
  EXPECT_EQ(read_npy("/no/such/file.npy").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace fleetfit::graph
