#include "fleetfit/space/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/space/design_index.h"
#include "small_space.h"
#include "tests/shared_data.h"

namespace fleetfit::space {
namespace {

class DesignTableFile : public ::testing::Test {
 protected:
  std::filesystem::path write(std::string_view text) const {
    const auto path = folder_.path() / "t.csv";
    EXPECT_TRUE(core::write_file(path, text));
    return path;
  }

  Result<DesignTable> read(std::string_view text, const TableOptions& options = {}) const {
    return read_design_table(write(text), space_, options);
  }

  /// The message without the folder.
  std::string error(std::string_view text, const TableOptions& options = {}) const {
    const auto table = read(text, options);
    if (table) return "";
    const auto& message = table.error().message;
    return message.substr(message.find("t.csv"));
  }

  const SmallSpace space_;

 private:
  core::ScratchFolder folder_ = core::ScratchFolder::create().value();
};

TEST_F(DesignTableFile, HoldsNumbersByDeviceAndDesign) {
  const auto table = read("arch_index,design,note,a,b\n0,none-4,old,1.5,2\n1,conv-k3-8,new,3,\n");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->columns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(table->values[0], (std::vector<double>{1.5, 3}));
  EXPECT_EQ(table->values[1][0], 2);
  EXPECT_TRUE(std::isnan(table->values[1][1]));
  ASSERT_EQ(table->designs.size(), 2U);
  EXPECT_EQ(space_.format(table->designs[1]), "conv-k3-8");
  EXPECT_EQ(table->find_column("b").value(), 1U);
}

TEST_F(DesignTableFile, NamesTheColumnsThatThereAre) {
  const auto table = read("design,a,b\nnone-4,1,2\n").value();
  const auto missing = table.find_column("c");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_TRUE(missing.error().message.ends_with("t.csv: there is no column 'c'; there are a, b"));
}

TEST_F(DesignTableFile, ReadsTheColumnsThatAreAskedForInTheirOrder) {
  const auto table = read("design,a,b\nnone-4,x,2\n", {.columns = {"b"}});
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->columns, (std::vector<std::string>{"b"}));
  EXPECT_EQ(error("design,a\nnone-4,1\n", {.columns = {"c"}}), "t.csv: there is no column 'c'");
}

TEST_F(DesignTableFile, NamesThePlaceOfWhatIsWrong) {
  EXPECT_EQ(error("a,b\n1,2\n"),
            "t.csv: there is no column 'design'; a table of the space small gives its designs in "
            "design");
  EXPECT_EQ(error("a,design\n1,none-4\n2,dense-4\n"),
            "t.csv:3:3: no design of the space small: kind: found 'dense-4', not none, conv");
  EXPECT_EQ(error("a,design\n1,none-4\n2,none-4\n"),
            "t.csv:3:3: the design none-4 stands here for the second time");
  EXPECT_EQ(error("design,a\nnone-4,1\nnone-8,0\n"), "t.csv:3:8: column 'a': 0 is not positive");
  EXPECT_EQ(error("design,a\nnone-4,1\nnone-8,nan\n"),
            "t.csv:3:8: column 'a': expected a number, found 'nan'");
}

TEST_F(DesignTableFile, TakesAnyFiniteNumberIfToldSo) {
  const auto table = read("design,a\nnone-4,-1\nnone-8,0\n", {.cells = CellRule::any});
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->values[0], (std::vector<double>{-1, 0}));
}

TEST_F(DesignTableFile, RefusesWhatIsBeyondReasonForItsQuantity) {
  const auto error_of = [&](const std::string& cell, CellRule rule) {
    return error("design,a\nnone-4,1\nnone-8," + cell + "\n", {.cells = rule});
  };
  EXPECT_EQ(error_of("1e20", CellRule::accuracy),
            "t.csv:3:8: column 'a': 1e20 is no accuracy: it is larger than 1,000,000");
  EXPECT_EQ(error_of("1e20", CellRule::latency),
            "t.csv:3:8: column 'a': 1e20 is no latency: it is longer than a day");
  for (const auto rule :
       {CellRule::accuracy, CellRule::latency, CellRule::energy, CellRule::memory}) {
    EXPECT_NE(error_of("1e308", rule), "");
    EXPECT_NE(error_of("-1e20", rule), "");
    EXPECT_EQ(error_of("99.5", rule), "");
  }
  for (const auto rule : {CellRule::latency, CellRule::energy, CellRule::memory})
    EXPECT_NE(error_of("-1", rule), "");
}

TEST_F(DesignTableFile, IsASourceThatKnowsItsDesignsAlone) {
  const auto table = read("design,a,b\nconv-k3-8,1,5\nnone-4,2,\n").value();
  const auto source = table_source(table, 1);
  Population asked(3);
  for (const auto* text : {"none-4", "conv-k3-8", "conv-k1-8"})
    asked.add(space_.parse(text).value());
  std::vector<double> values(3);
  ASSERT_TRUE(source->evaluate(asked, values));
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], 5);
  EXPECT_TRUE(std::isnan(values[2]));
}

TEST(DesignIndex, FindsDesignsOfLargeSpacesAgain) {
  const Space& space = *find_space("fbnet").value();
  const auto designs = sample_designs(space, {.count = 2000}).value();
  DesignIndex index(space);
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_TRUE(index.add(designs[i]));
  EXPECT_FALSE(index.add(designs[7]));
  EXPECT_EQ(index.size(), 1000U);
  for (std::size_t i = 0; i < 2000; ++i)
    EXPECT_EQ(index.find(designs[i]), i < 1000 ? std::optional(i) : std::nullopt);
}

/// The text with the first choice in the place of layers past the depth of their stage.
std::string without_inactive(std::string text, const std::string& depths) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i % 4 >= static_cast<std::size_t>(depths[i / 4] - '0')) text[i] = '3';
  }
  return text;
}

TEST(PublishedTables, EveryRowReadsBack) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "there is no folder of shared data";
  const std::vector<std::pair<std::string, std::string>> files = {
      {"nasbench201", "nasbench201.csv"}, {"fbnet", "fbnet.csv"}, {"ofa-mbv3", "ofa.csv"}};
  for (const auto& [name, file] : files) {
    const Space& space = *find_space(name).value();
    const auto path = *data / "latency" / file;
    const auto csv = core::read_csv(path).value();
    const auto table = read_design_table(path, space);
    ASSERT_TRUE(table) << table.error().message;
    EXPECT_EQ(table->designs.size(), csv.rows());
    EXPECT_EQ(table->columns.size(), csv.columns() - 1 - space.columns().size());
    for (std::size_t row = 0; row < csv.rows(); ++row) {
      std::vector<std::string> expected;
      for (const auto& column : space.columns())
        expected.emplace_back(csv.cell(row, csv.find_column(column).value()));
      if (name == "ofa-mbv3") {
        for (const std::size_t i : {0U, 1U})
          expected[i] = without_inactive(expected[i], expected[2]);
      }
      ASSERT_EQ(space.cells(table->designs[row]), expected);
    }
  }
}

}  // namespace
}  // namespace fleetfit::space
