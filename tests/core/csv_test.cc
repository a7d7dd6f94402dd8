#include "fleetfit/core/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "fleetfit/core/random.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CsvTable table_of(std::string text) { return parse_csv(std::move(text), "t.csv").value(); }

std::string error_of(std::string text) {
  return parse_csv(std::move(text), "t.csv").error().message;
}

TEST(Csv, ReadsCellsByRowAndColumnName) {
  const auto table = table_of("device,ms\npixel,1.5\nnano,2\n");
  EXPECT_THAT(table.header(), ElementsAre("device", "ms"));
  EXPECT_EQ(table.rows(), 2u);
  EXPECT_EQ(table.cell(1, table.column("device").value()), "nano");
  EXPECT_EQ(table.number(0, 1).value(), 1.5);
  EXPECT_THAT(table.numbers("ms").value(), ElementsAre(1.5, 2.0));
}

TEST(Csv, ColumnsOfAFileWithoutAHeaderAreNamedByTheCaller) {
  const auto table = parse_csv("x,1\ny,2\n", "t.csv", {.columns = {"name", "value"}}).value();
  EXPECT_EQ(table.rows(), 2u);
  EXPECT_THAT(table.numbers("value").value(), ElementsAre(1.0, 2.0));
  EXPECT_THAT(parse_csv("x,1\ny\n", "t.csv", {.columns = {"name", "value"}}).error().message,
              HasSubstr("t.csv:2:1"));
}

TEST(Csv, QuotedCellsHoldCommasQuotesAndLineEnds) {
  const auto table = table_of("a,b\n\"x,y\",\"say \"\"hi\"\"\"\n\"two\r\nlines\",\"\"\"\"\n");
  EXPECT_EQ(table.cell(0, 0), "x,y");
  EXPECT_EQ(table.cell(0, 1), "say \"hi\"");
  EXPECT_EQ(table.cell(1, 0), "two\r\nlines");
  EXPECT_EQ(table.cell(1, 1), "\"");
}

TEST(Csv, TakesCrlfAByteOrderMarkBlankLinesAndNoFinalLineEnd) {
  const auto table = table_of("\xef\xbb\xbf\r\nname,n\r\n\r\n\xc3\xa4,1\r\n\nb,2");
  EXPECT_THAT(table.header(), ElementsAre("name", "n"));
  EXPECT_EQ(table.rows(), 2u);
  EXPECT_EQ(table.cell(0, 0), "\xc3\xa4");
  EXPECT_EQ(table.cell(1, 1), "2");
}

TEST(Csv, ATableMayHaveNoRows) { EXPECT_EQ(table_of("a,b\n").rows(), 0u); }

TEST(Csv, AnEmptyCellIsMissing) {
  const auto table = table_of("a,b\n,\"\"\n");
  EXPECT_TRUE(table.is_missing(0, 0));
  EXPECT_TRUE(table.is_missing(0, 1));
  EXPECT_EQ(table.optional_number(0, 0).value(), std::nullopt);
  EXPECT_EQ(table.number(0, 1).error().message,
            "t.csv:2:3: column 'b': expected a number, found nothing");
}

TEST(Csv, SyntaxErrorsNameLineAndColumn) {
  EXPECT_EQ(error_of(""), "t.csv:1:1: there is no header row");
  EXPECT_EQ(error_of("\n\n"), "t.csv:1:1: there is no header row");
  EXPECT_EQ(error_of("a,b\n1,2\n1\n"), "t.csv:3:1: the row has 1 cells, the header has 2");
  EXPECT_EQ(error_of("a,b\n1,2,3\n"), "t.csv:2:5: the row has more than 2 cells");
  EXPECT_EQ(error_of("a,b\n1,\"x\ny\n"), "t.csv:2:3: a quote that is never closed");
  EXPECT_EQ(error_of("a,b\n\"1\"2,3\n"), "t.csv:2:4: text after the closing quote of a cell");
  EXPECT_EQ(error_of("a,b\n\xc3\xa4\"x,3\n"),
            "t.csv:2:2: a quote inside a cell that does not start with one");
  EXPECT_EQ(error_of("a,a\n"), "t.csv:1:3: there are two columns 'a'");
}

TEST(Csv, LinesInsideQuotesCountForThePlaceOfLaterErrors) {
  const auto table = table_of(
      "\xef\xbb\xbf"
      "a,b\n\"1\n2\n3\",x\ny,\"q\"\n");
  EXPECT_EQ(table.number(0, 1).error().message,
            "t.csv:4:4: column 'b': expected a number, found 'x'");
  EXPECT_EQ(table.numbers("a").error().message,
            "t.csv:2:2: column 'a': expected a number, found '1\\n2\\n3'");
}

TEST(Csv, NumbersAreFiniteDecimalsAndNothingElse) {
  const auto table = table_of("n\n 1e3 \n+2\n-0.5\nnan\ninf\n1e999\n0x10\n1 2\n+-3\n");
  EXPECT_EQ(table.number(0, 0).value(), 1000);
  EXPECT_EQ(table.number(1, 0).value(), 2);
  EXPECT_EQ(table.number(2, 0).value(), -0.5);
  for (std::size_t row = 3; row < table.rows(); ++row) EXPECT_FALSE(table.number(row, 0)) << row;
}

TEST(Csv, NamesAMissingColumn) {
  const auto error = table_of("a\n1\n").numbers("ms").error();
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_EQ(error.message, "t.csv: there is no column 'ms'");
}

TEST(Csv, KeepsItsLimits) {
  EXPECT_THAT(parse_csv("a,b,c\n", "t.csv", {.max_columns = 2}).error().message,
              HasSubstr("more than 2 cells"));
  EXPECT_THAT(parse_csv("a,b,c\n", "t.csv", {.max_bytes = 5}).error().message, HasSubstr("limit"));
}

TEST(Csv, StaysValidWhenTheTableIsMoved) {
  auto table = table_of("a\n\"x\"\"y\"\nz\n");
  const auto moved = std::move(table);
  EXPECT_EQ(moved.cell(0, 0), "x\"y");
  EXPECT_EQ(moved.cell(1, 0), "z");
}

TEST(Csv, ReadsAFileAndNamesItInErrors) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_csv(folder.file("ok.csv", "a\n1\n")).value().rows(), 1u);
  EXPECT_THAT(read_csv(folder.file("bad.csv", "a\n1,2\n")).error().message,
              HasSubstr("bad.csv:2:3: "));
  EXPECT_EQ(read_csv(folder.path() / "none.csv").error().code, ErrorCode::not_found);
}

TEST(Csv, RandomBytesNeverCrashIt) {
  Random random(1);
  const std::string alphabet("a,\"\n\r\xef\xbb\xbf\0 1", 11);
  for (int round = 0; round < 20'000; ++round) {
    std::string text(random.below(24), ' ');
    for (char& c : text) c = alphabet[random.below(alphabet.size())];
    const auto table = parse_csv(text, "t.csv");
    if (!table) continue;
    for (std::size_t row = 0; row < table->rows(); ++row) {
      for (std::size_t column = 0; column < table->columns(); ++column) {
        (void)table->number(row, column);
      }
    }
  }
}

TEST(CsvWriter, QuotesWhereNecessary) {
  CsvWriter writer(std::vector<std::string>{"name", "value"});
  writer.add_row({"plain", 1.5});
  writer.add_row({"a,b", std::size_t{7}});
  writer.add_row({"say \"hi\"", -3});
  writer.add_row({CsvCell(), std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(writer.text(), "name,value\nplain,1.5\n\"a,b\",7\n\"say \"\"hi\"\"\",-3\n,\n");
}

TEST(CsvWriter, WhatItWritesIsReadBack) {
  Random random(2);
  constexpr std::string_view kAlphabet = ",\"\r\n a\xef\xbb\xbf";
  for (const std::size_t columns : {1u, 3u}) {
    std::vector<std::string> header;
    for (std::size_t c = 0; c < columns; ++c) header.push_back("\xef\xbb\xbf" + std::to_string(c));
    CsvWriter writer(header);
    std::vector<std::string> written;
    for (int row = 0; row < 200; ++row) {
      std::vector<CsvCell> cells;
      for (std::size_t c = 0; c < columns; ++c) {
        std::string text(random.below(5), ' ');
        for (char& letter : text) letter = kAlphabet[random.below(kAlphabet.size())];
        written.push_back(text);
        cells.emplace_back(text);
      }
      writer.add_row(cells);
    }
    const auto table = table_of(writer.text());
    ASSERT_EQ(table.rows(), 200u);
    EXPECT_TRUE(std::ranges::equal(table.header(), header));
    for (std::size_t i = 0; i < written.size(); ++i)
      EXPECT_EQ(table.cell(i / columns, i % columns), written[i]);
  }
}

TEST(CsvWriter, NumbersReadBackExactly) {
  CsvWriter writer(std::vector<std::string>{"x"});
  const std::vector<double> values = {0.1, 1.0 / 3, 1e-300, -123456789.123456789, 5e22};
  for (const double value : values) writer.add_row({value});
  EXPECT_EQ(table_of(writer.text()).numbers("x").value(), values);
}

}  // namespace
}  // namespace fleetfit::core
