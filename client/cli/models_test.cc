// kiln model by the real binary, on a database of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using Json = nlohmann::json;

// Has a database with the trials of two products, measured for no device.
class ModelsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir(*TempDir::Make("models-test"));
    for (const char* args : {"64,64,64", "32,64,32"}) {
      Kiln({"tune", "matmul", "--args", args, "--target", "null", "--trials", "64", "--policy",
            "sketch.random"});
    }
    Kiln({"model", "train", "-o", Path("model.kcm"), "--parameter", "max_rounds=20"});
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string Path(const std::string& name) { return folder_->Join(name); }
  static Words WithDb(Words words) {
    words.insert(words.end(), {"--db", Path("kiln.db")});
    return words;
  }
  static std::string Kiln(Words words) { return KilnPrints(WithDb(std::move(words))); }
  static std::string Error(Words words) {
    const RunResult result = RunKiln(WithDb(std::move(words)));
    EXPECT_EQ(result.exit.code, 1);
    return result.error;
  }
  static Json OneLine(Words words) {
    words.emplace_back("--json");
    const auto lines = JsonLines(Kiln(std::move(words)));
    EXPECT_THAT(lines, SizeIs(1));
    return lines.empty() ? Json() : lines[0];
  }

  static TempDir* folder_;
};
TempDir* ModelsTest::folder_ = nullptr;

TEST_F(ModelsTest, ShowSaysWhatItWasTrainedOnAndWhatItLooksAt) {
  const std::string text = Kiln({"model", "show", Path("model.kcm"), "--columns", "3"});
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("xgb over estimates of the analytic model"), HasSubstr("programs of 2 tasks"),
            HasSubstr("128 records of"), HasSubstr("parameters max_rounds=20"),
            HasSubstr("held out   20% of the records of each task"), HasSubstr("rank correlation"),
            HasSubstr("matmul 64,64,64"), HasSubstr("Splits"), HasSubstr("more of")));
  const Json json = OneLine({"model", "show", Path("model.kcm")});
  EXPECT_EQ(json["info"]["records"], 128);
  ASSERT_GT(json["importance"].size(), 3);
  EXPECT_GE(json["importance"][0]["gain"], json["importance"][1]["gain"]);
  EXPECT_GT(json["importance"][0]["splits"], 0);
  EXPECT_THAT(json["info"]["held_out"]["tasks"], SizeIs(2));
}

TEST_F(ModelsTest, IsTestedOnRecordsOfAnyKind) {
  const Json json =
      OneLine({"model", "test", Path("model.kcm"), "--op", "matmul", "--args", "64,64,64"});
  EXPECT_EQ(json["task"], "matmul 64,64,64");
  EXPECT_EQ(json["programs"], 64);
  // Made-up costs cannot be learned; train_test.cc tests how well a model ranks.
  EXPECT_LE(std::abs(json["spearman"].get<double>()), 1);
  EXPECT_THAT(Kiln({"model", "test", Path("model.kcm")}),
              AllOf(HasSubstr("matmul 32,64,32"), HasSubstr("mean of 2 tasks: rank correlation")));
  EXPECT_THAT(Error({"model", "test", Path("model.kcm"), "--target", "cuda"}),
              HasSubstr("nothing can be ranked"));
}

TEST_F(ModelsTest, ALogTrainsAndTestsAsTheRecordsDo) {
  const std::string log = Path("records.json"), of_log = Path("of_log.kcm");
  Kiln({"records", "export", "--extended", "-o", log});
  const Json trained = OneLine({"model", "train", log, "-o", of_log, "--held-out", "0"});
  EXPECT_EQ(trained["records"], 128);
  EXPECT_EQ(trained["info"]["held_out"], nullptr);
  EXPECT_THAT(JsonLines(Kiln({"model", "test", of_log, log, "--json"})), SizeIs(2));
}

TEST_F(ModelsTest, PredictsATrialARecordAndWhatIsGivenInAFile) {
  const std::string job = JsonLines(Kiln({"jobs", "--json"})).at(0)["id"].get<std::string>();
  const Json trial = OneLine({"model", "predict", Path("model.kcm"), job + "/1"});
  EXPECT_GT(trial["predicted_s"], 0);
  EXPECT_GT(trial["measured_s"], 0);
  ASSERT_GE(trial["stages"].size(), 1);
  double share = 0;
  for (const Json& stage : trial["stages"]) share += stage["share"].get<double>();
  EXPECT_NEAR(share, 1, 1e-6);

  ASSERT_OK(WriteFile(Path("steps.json"), trial["steps"].dump()));
  const Words op = {"--op", "matmul", "--args", "32,64,32", "--target", "null"};
  Words steps = {"model", "predict", Path("model.kcm"), "--steps", Path("steps.json")};
  steps.insert(steps.end(), op.begin(), op.end());
  const double of_steps_s = OneLine(steps)["predicted_s"].get<double>();
  EXPECT_GT(of_steps_s, 0);
  ASSERT_OK(WriteFile(Path("schedule.txt"), Kiln({"show", job + "/1", "--as", "schedule"})));
  Words schedule = {"model", "predict", Path("model.kcm"), "--schedule", Path("schedule.txt")};
  schedule.insert(schedule.end(), op.begin(), op.end());
  EXPECT_DOUBLE_EQ(OneLine(schedule)["predicted_s"].get<double>(), of_steps_s);
  EXPECT_THAT(Kiln({"model", "predict", Path("model.kcm"), job + "/1"}),
              AllOf(HasSubstr("predicted  "), HasSubstr("measured   "), HasSubstr("Share")));
}

TEST_F(ModelsTest, AreKeptUnderNames) {
  Kiln({"model", "put", Path("model.kcm"), "--name", "kept"});
  EXPECT_THAT(Kiln({"model", "list"}), AllOf(HasSubstr("kept"), HasSubstr("over estimates")));
  EXPECT_THAT(Kiln({"model", "show", "kept"}), HasSubstr("kept: xgb"));
  Kiln({"model", "get", "kept", "-o", Path("back.kcm")});
  EXPECT_EQ(*ReadFile(Path("back.kcm")), *ReadFile(Path("model.kcm")));
  const std::string other = Path("other.kcm");
  Kiln({"model", "train", "-o", other, "--seed", "7", "--parameter", "max_rounds=20"});
  EXPECT_THAT(Error({"model", "put", other, "--name", "kept"}), HasSubstr("--replace"));
  Kiln({"model", "put", other, "--name", "kept", "--replace"});
  Kiln({"model", "delete", "kept"});
  EXPECT_THAT(Error({"model", "show", "kept"}),
              HasSubstr("there is no file kept and no cost model of that name"));
}

TEST_F(ModelsTest, IsTrainedAgainOnlyWhenThereAreEnoughMoreRecords) {
  const std::string grown = Path("grown.kcm");
  const Words train = {"model",      "train", "-o",          grown,
                       "--if-grown", "0.2",   "--parameter", "max_rounds=5"};
  EXPECT_EQ(OneLine(train)["trained"], true);
  EXPECT_EQ(OneLine(train)["trained"], false);
  EXPECT_THAT(Kiln(train), HasSubstr("as it was"));
}

TEST_F(ModelsTest, TenRecordsAreEnoughAndHowGoodItIsIsSaid) {
  const std::string db = Path("ten.db"), model = Path("ten.kcm");
  KilnPrints({"tune", "matmul", "--args", "64,64,64", "--target", "null", "--trials", "10",
              "--policy", "sketch.random", "--db", db});
  const RunResult result = RunKiln({"model", "train", "-o", model, "--db", db});
  ASSERT_TRUE(result.exit.ok()) << result.error;
  EXPECT_THAT(
      result.output,
      AllOf(HasSubstr("10 records of"), HasSubstr("was tested by a model of 80% of the others"),
            HasSubstr("rank correlation"), HasSubstr("of pairs in the right")));
  EXPECT_THAT(result.error, HasSubstr("kiln: learning from the records of " + db));
  EXPECT_THAT(KilnPrints({"model", "test", model, "--db", db}), HasSubstr("rank correlation"));
}

TEST_F(ModelsTest, ASearchBeginsWithIt) {
  const Words tune = {"tune", "matmul",   "--args", "64,32,64",        "--target",
                      "null", "--trials", "16",     "--no-warm-start", "--json"};
  Words with_model = tune;
  with_model.insert(with_model.end(), {"--model", Path("model.kcm")});
  const auto events = JsonLines(Kiln(with_model));
  // A model ranks the candidates from the first on.
  const auto records = JsonLines(
      Kiln({"records", "list", "--job", events.at(0)["job"].get<std::string>(), "--json"}));
  EXPECT_THAT(records, SizeIs(16));
  EXPECT_THAT(Kiln({"model", "list"}), HasSubstr("file-"));
  EXPECT_THAT(Error({"tune", "matmul", "--args", "8,8,8", "--target", "null", "--model", "none"}),
              HasSubstr("no cost model 'none'"));
  EXPECT_THAT(Error({"tune", "matmul", "--args", "8,8,8", "--target", "null", "--policy",
                     "sketch.random", "--model", Path("model.kcm")}),
              HasSubstr("learns with no cost model"));
  EXPECT_THAT(Error({"tune", "matmul", "--args", "8,8,8", "--target", "null", "--model-parameter",
                     "depth=3"}),
              HasSubstr("unknown parameter 'depth'"));
}

TEST_F(ModelsTest, WhatIsNoModelOrOfOtherColumnsIsRefusedInASentence) {
  EXPECT_THAT(Error({"model", "show", Path("kiln.db")}),
              AllOf(HasSubstr("are no cost model"), HasSubstr("kiln model train")));
  std::string bytes = *ReadFile(Path("model.kcm"));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_OK(WriteFile(Path("damaged.kcm"), bytes));
  EXPECT_THAT(Error({"model", "show", Path("damaged.kcm")}), HasSubstr("its checksum differs"));
  EXPECT_THAT(Error({"model", "train"}), HasSubstr("say where the model goes"));
  EXPECT_THAT(Error({"model", "train", "-o", Path("x.kcm"), "--parameter", "depth=3"}),
              HasSubstr("unknown parameter 'depth'"));
  EXPECT_THAT(Error({"model", "train", "-o", Path("x.kcm"), "--target", "cuda"}),
              HasSubstr("no record is one to learn from"));
}

}  // namespace
}  // namespace kiln::client
