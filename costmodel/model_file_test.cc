#include "costmodel/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/status_testing.h"

namespace kiln::costmodel {
namespace {

using testing::HasSubstr;

ModelFile SmallFile() {
  const ModelTask task = {.workload_id = "ab12",
                          .workload_key = R"(["key", [1, 2]])",
                          .target = "llvm -mcpu=znver4",
                          .device = "AMD EPYC",
                          .description = "matmul 1,2",
                          .programs = 40,
                          .failed = 3,
                          .best_s = 1.25e-4};
  ModelFile file;
  file.info = {.calibration = "clock_hz=1.7e+09",
               .feature_version = 5,
               .columns = "0123456789abcdef",
               .parameters = {{"eta", 0.1}, {"max_depth", 6}},
               .seed = std::numeric_limits<uint64_t>::max(),
               .records = 77,
               .tasks = {task, {.workload_key = "k", .target = "cuda"}},
               .sources = {"kiln.db", "a \"log\"\nof somebody.json"},
               .trained_s = 1'700'000'000,
               .held_out = HeldOut{.by_computation = true,
                                   .share = 0.2,
                                   .k = 10,
                                   .tasks = {{task, {0.5, 0.75, 0.1, 1.0 / 3}}}}};
  file.model = std::string("bytes\0of\nthe model", 18);
  return file;
}

TEST(ModelFileTest, ParsesWhatItPrints) {
  const ModelFile file = SmallFile();
  ASSERT_OK_AND_ASSIGN(const ModelFile parsed, ParseModelFile(PrintModelFile(file)));
  EXPECT_EQ(parsed, file);
  EXPECT_EQ(parsed.info.programs(), 40);
  EXPECT_EQ(parsed.info.failed(), 3);
}

TEST(ModelFileTest, AModelWithoutTasksOrFiguresIsAFileToo) {
  const std::string bytes = PrintModelFile({});
  ASSERT_OK_AND_ASSIGN(const ModelFile parsed, ParseModelFile(bytes));
  EXPECT_FALSE(parsed.info.held_out.has_value());
  EXPECT_TRUE(parsed.info.tasks.empty());
  EXPECT_EQ(PrintModelFile(parsed), bytes);
}

TEST(ModelFileTest, WhatIsNoModelIsRefusedInASentence) {
  for (const char* bytes : {"", "\n", "kiln-model 2 xgb 5 3 abc\nx", "{\"i\": []}\n", "\x7f ELF"}) {
    EXPECT_THAT(ParseModelFile(bytes),
                StatusIs(StatusCode::kDataLoss, HasSubstr("are no cost model: expected what `kiln "
                                                          "model train` writes")))
        << bytes;
  }
  EXPECT_THAT(ParseModelFile("kiln-cost-model 2 new things\n..."),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("of format 2, expected 1")));
}

TEST(ModelFileTest, ADamagedFileIsRefusedWhereverTheDamageIs) {
  const std::string bytes = PrintModelFile(SmallFile());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x11);
    EXPECT_FALSE(ParseModelFile(damaged).ok()) << i;
    EXPECT_FALSE(ParseModelFile(bytes.substr(0, i)).ok()) << i;
  }
  EXPECT_THAT(ParseModelFile(bytes + "x"), StatusIs(StatusCode::kDataLoss, HasSubstr("damaged")));
}

TEST(ModelFileTest, AHeaderThatLacksSomethingSaysWhat) {
  EXPECT_THAT(ParseModelInfo("{"), StatusIs(StatusCode::kDataLoss, HasSubstr("no JSON")));
  EXPECT_THAT(ParseModelInfo("[]"), StatusIs(StatusCode::kDataLoss, HasSubstr("\"kind\"")));
  const std::string text = PrintModelInfo(SmallFile().info);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    return ParseModelInfo(changed);
  };
  EXPECT_THAT(with("\"programs\":40", "\"programs\":-1"),
              StatusIs(StatusCode::kDataLoss, HasSubstr("\"programs\": expected a whole number")));
  EXPECT_THAT(with("\"programs\":40", "\"programs\":1e99"),
              StatusIs(StatusCode::kDataLoss, HasSubstr("\"programs\"")));
  EXPECT_THAT(with("\"by\":\"computation\"", "\"by\":\"chance\""),
              StatusIs(StatusCode::kDataLoss, HasSubstr("computation or record")));
  EXPECT_THAT(with("\"eta\":0.1", "\"eta\":\"x\""),
              StatusIs(StatusCode::kDataLoss, HasSubstr("parameter \"eta\"")));
  EXPECT_THAT(
      with("\"columns\"", "\"rows\""),
      StatusIs(StatusCode::kDataLoss, HasSubstr("\"columns\": expected that there is one")));
}

TEST(ModelFileTest, OtherColumnsAreRefused) {
  const std::string_view columns[] = {"a", "b"}, swapped[] = {"b", "a"}, joined[] = {"ab"};
  EXPECT_NE(ColumnsDigest(columns), ColumnsDigest(swapped));
  EXPECT_NE(ColumnsDigest(columns), ColumnsDigest(joined));
  const ModelInfo info = {.feature_version = 5, .columns = ColumnsDigest(columns)};
  EXPECT_OK(CheckColumns(info, 5, columns));
  EXPECT_THAT(CheckColumns(info, 6, columns), StatusIs(StatusCode::kFailedPrecondition,
                                                       HasSubstr("version 5, those of this Kiln")));
  EXPECT_THAT(CheckColumns(info, 5, swapped),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("other feature columns")));
}

}  // namespace
}  // namespace kiln::costmodel
