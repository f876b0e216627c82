// Tests the answers about states, and what wrong questions get.
#include "client/cli/states/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "compiler/features/features.h"
#include "costmodel/make_cost_model.h"
#include "costmodel/model_file.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

constexpr char kMatmulRelu[] =
    "input A: float32[64, 32]\n"
    "input B: float32[32, 64]\n"
    "C[i: 64, j: 64] = sum(k: 32) A[i, k] * B[k, j]\n"
    "D[i: 64, j: 64] = max(C[i, j], 0.0)\n";

class AnswersTest : public testing::Test {
 protected:
  Json Ask(const Json& question) { return Json::parse(answers_.Answer(question.dump())); }
  // Opens the computation for a target. Returns its number.
  int Open(const std::string& target = "llvm -num-cores=4") {
    return Ask({{"do", "open"}, {"dag", kMatmulRelu}, {"target", target}})["task"];
  }
  std::string ErrorOf(const Json& question) { return Ask(question).value("error", ""); }

  StateAnswers answers_;
};

TEST_F(AnswersTest, OpensEachComputationOnce) {
  EXPECT_EQ(Open(), 0);
  EXPECT_EQ(Open("cuda -arch=sm_90"), 1);
  EXPECT_EQ(Open(), 0);
}

TEST_F(AnswersTest, TellsStagesAndLoops) {
  Open();
  const Json steps = Json::parse(R"([["SP", 2, 0, 64, [4], 1], ["CA", 2, 3, 0]])");
  const Json state = Ask({{"do", "state"}, {"task", 0}, {"steps", steps}});
  ASSERT_EQ(state["stages"].size(), 4) << state;
  EXPECT_EQ(state["stages"][0]["is_placeholder"], true);
  const Json& product = state["stages"][2];
  EXPECT_EQ(product["name"], "C");
  EXPECT_EQ(product["compute_at"], 2);
  EXPECT_EQ(product["attach_stage"], 3);
  EXPECT_EQ(product["attach_loop"], 0);
  ASSERT_EQ(product["loops"].size(), 4);
  EXPECT_EQ(product["loops"][0]["name"], "i.0");
  // Extents of an attached stage wait for bounds.
  EXPECT_EQ(product["loops"][2]["extent"], Json());
  const Json bound = Ask({{"do", "state"}, {"task", 0}, {"steps", steps}, {"bounds", true}});
  EXPECT_EQ(bound["stages"][2]["loops"][2]["extent"], 64);
  EXPECT_EQ(bound["stages"][2]["loops"][3]["kind"], 1);
  EXPECT_EQ(Json::parse(bound["steps"].get<std::string>()), steps);
  EXPECT_THAT(bound["text"].get<std::string>(), HasSubstr("for k (0,32)"));
}

TEST_F(AnswersTest, PrintsInTheFormsOfShow) {
  Open();
  const Json steps = Json::parse(R"([["SP", 3, 1, 64, [8], 1], ["AN", 3, 2, 2]])");
  const Json tvm = Ask({{"do", "print"}, {"task", 0}, {"steps", steps}, {"form", "schedule"}});
  EXPECT_THAT(tvm["text"].get<std::string>(), HasSubstr("s[D].vectorize("));
}

TEST_F(AnswersTest, TellsComputations) {
  Open();
  const Json told = Ask({{"do", "dag"}, {"task", 0}});
  EXPECT_EQ(told["text"],
            "A = PLACEHOLDER [64, 32]\nB = PLACEHOLDER [32, 64]\nC(i, j) += (A[i, k]*B[k, j])\n"
            "D(i, j) = max(C[i, j], 0f)\n");
}

TEST_F(AnswersTest, PrintsPrimitivesOfTvm) {
  Open();
  const Json steps = Json::parse(R"([["SP", 3, 1, 64, [8], 1]])");
  const Json tvm = Ask({{"do", "print"}, {"task", 0}, {"steps", steps}, {"form", "primitives"}});
  EXPECT_THAT(tvm["text"].get<std::string>(), HasSubstr("s[D].split(")) << tvm;
  const Json own = Json::parse(R"([["BF", 2, 2]])");
  EXPECT_THAT(ErrorOf({{"do", "print"}, {"task", 0}, {"steps", own}, {"form", "primitives"}}),
              HasSubstr("BF"));
}

TEST_F(AnswersTest, TellsWhetherAStateHasAProgram) {
  Open();
  EXPECT_EQ(Ask({{"do", "program"}, {"task", 0}, {"steps", Json::array()}})["why_not"], "");
  const Json blocks = Json::parse(R"([["AN", 3, 0, 5]])");
  EXPECT_THAT(
      Ask({{"do", "program"}, {"task", 0}, {"steps", blocks}})["why_not"].get<std::string>(),
      HasSubstr("blockIdx.x"));
}

TEST_F(AnswersTest, TellsTheOrderOfPackedInputs) {
  const std::string text =
      "input A: float32[64, 32]\n"
      "input B: float32[32, 64]\n"
      "@layout_free_placeholders(B)\n"
      "C[i: 64, j: 64] = sum(k: 32) A[i, k] * B[k, j]\n";
  const int task = Ask({{"do", "open"}, {"dag", text}, {"target", "llvm"}})["task"];
  const Json steps = Json::parse(R"([["SP", 2, 1, 64, [16], 1], ["RE", 2, [1, 0, 3, 2]]])");
  const Json packed = Ask({{"do", "packed"}, {"task", task}, {"steps", steps}});
  EXPECT_EQ(packed["layouts"], Json::parse(R"({"B": "4j32k16j"})")) << packed;
  EXPECT_THAT(packed["dag"].get<std::string>(), HasSubstr("@packed_placeholders(B)"));
}

TEST_F(AnswersTest, SamplesAreDistinctAndHavePrograms) {
  Open();
  const Json question = {{"do", "sample"}, {"task", 0}, {"count", 20}, {"seed", 7}};
  const Json sampled = Ask(question);
  std::set<std::string> distinct;
  for (const Json& steps : sampled["states"]) distinct.insert(steps.dump());
  EXPECT_GT(distinct.size(), 15u);
  EXPECT_EQ(distinct.size(), sampled["states"].size());
  EXPECT_EQ(Ask(question), sampled) << "the same seed samples the same";
  const Json scores =
      Ask({{"do", "predict"}, {"task", 0}, {"states", sampled["states"]}, {"model", "analytic"}});
  for (const Json& score : scores["scores"]) EXPECT_TRUE(score.is_number()) << score;
  const Json features = Ask({{"do", "features"}, {"task", 0}, {"states", {sampled["states"][0]}}});
  ASSERT_EQ(features["rows"].size(), 1);
  EXPECT_EQ(features["rows"][0][0].size(), features["names"].size());
}

// States are worked on at once. Each has the answer that it has alone.
TEST_F(AnswersTest, StatesKeepTheirPlaces) {
  Open();
  Json states = Ask({{"do", "sample"}, {"task", 0}, {"count", 6}, {"seed", 7}})["states"];
  states.insert(states.begin() + 2, Json::parse(R"([["AN", 3, 0, 5]])"));
  const Json all = Ask({{"do", "predict"}, {"task", 0}, {"states", states}, {"model", "analytic"}});
  const Json rows = Ask({{"do", "features"}, {"task", 0}, {"states", states}})["rows"];
  ASSERT_EQ(all["scores"].size(), 7) << all;
  ASSERT_EQ(all["stages"].size(), 7);
  ASSERT_EQ(rows.size(), 7);
  EXPECT_EQ(all["scores"][2], Json());
  EXPECT_EQ(all["stages"][2], Json::array());
  for (int i = 0; i < 7; ++i) {
    const Json one = {states[i]};
    const Json alone =
        Ask({{"do", "predict"}, {"task", 0}, {"states", one}, {"model", "analytic"}});
    EXPECT_EQ(alone["scores"][0], all["scores"][i]) << i;
    EXPECT_EQ(alone["stages"][0], all["stages"][i]) << i;
    EXPECT_EQ(Ask({{"do", "features"}, {"task", 0}, {"states", one}})["rows"][0], rows[i]) << i;
  }
}

// Writes a model of random scores.
void WriteModel(const std::string& path, uint64_t seed) {
  costmodel::ModelFile file;
  file.info.kind = "random";
  file.info.feature_version = features::kFeatureVersion;
  file.info.columns = costmodel::ColumnsDigest(features::FeatureNames());
  file.model = *(*costmodel::MakeCostModel("random", {.seed = seed}))->Save();
  ASSERT_OK(WriteFile(path, costmodel::PrintModelFile(file)));
}

TEST_F(AnswersTest, AModelIsThatOfTheFileNow) {
  Open();
  const TempDir folder = *TempDir::Make("answers");
  const std::string path = folder.Join("a.model"), other = folder.Join("b.model");
  const auto scores = [&](const std::string& model) {
    return Ask({{"do", "predict"}, {"task", 0}, {"states", {Json::array()}}, {"model", model}})
        .value("scores", Json());
  };
  WriteModel(path, 1);
  WriteModel(other, 2);
  const Json of_1 = scores(path), of_2 = scores(other);
  ASSERT_TRUE(of_1[0].is_number()) << of_1;
  EXPECT_NE(of_1, of_2);
  EXPECT_EQ(scores(path), of_1);
  WriteModel(path, 2);
  EXPECT_EQ(scores(path), of_2);
  ASSERT_OK(WriteFile(path, "cut"));
  EXPECT_EQ(scores(path), Json());
  WriteModel(path, 1);
  EXPECT_EQ(scores(path), of_1);
}

TEST_F(AnswersTest, EvolutionFindsNoWorseThanItsSamples) {
  Open();
  const Json sampled = Ask({{"do", "sample"}, {"task", 0}, {"count", 16}, {"seed", 1}});
  Json question = {{"do", "evolve"},
                   {"task", 0},
                   {"count", 8},
                   {"seed", 1},
                   {"model", "analytic"},
                   {"states", sampled["states"]},
                   {"parameters", {{"evolutionary_search_population", 64}}}};
  const Json evolved = Ask(question);
  ASSERT_EQ(evolved["states"].size(), 8) << evolved;
  const Json scores =
      Ask({{"do", "predict"}, {"task", 0}, {"states", sampled["states"]}, {"model", "analytic"}});
  for (const Json& score : scores["scores"]) EXPECT_GE(evolved["scores"][0], score);
  question["states"] = Json::array();
  EXPECT_THAT(ErrorOf(question), HasSubstr("no state has a program"));
}

TEST_F(AnswersTest, PointsOfTemplates) {
  Open();
  const std::string text =
      "template tiles for cpu\n"
      "stage C = reduction()\n"
      "i, j = axes(C)\n"
      "knob tile_j = split(j, outputs=2)\n"
      "jo, ji = split(j, tile_j)\n"
      "vectorize(ji)\n";
  const Json space = Ask({{"do", "space"}, {"task", 0}, {"template", text}});
  EXPECT_EQ(space["len"], 7) << space;
  EXPECT_THAT(space["text"].get<std::string>(), HasSubstr("0 tile_j: Split(policy=factors"));
  const Json point = Ask({{"do", "config"}, {"task", 0}, {"template", text}, {"index", 3}});
  EXPECT_EQ(point["entity"], Json::parse(R"([["tile_j", "sp", [-1, 8]]])")) << point;
  const Json place =
      Ask({{"do", "index"}, {"task", 0}, {"template", text}, {"entity", point["entity"]}});
  EXPECT_EQ(place["index"], 3) << place;
  EXPECT_THAT(ErrorOf({{"do", "config"}, {"task", 0}, {"template", text}, {"index", 7}}),
              HasSubstr("expected a whole number from 0 to 6"));
  const std::string list = "schedules for cpu\n[]\n[[\"AN\", 3, 1, 2]]\n";
  EXPECT_EQ(Ask({{"do", "space"}, {"task", 0}, {"template", list}})["len"], 2);
  const Json second = Ask({{"do", "config"}, {"task", 0}, {"template", list}, {"index", 1}});
  EXPECT_EQ(second["steps"], R"([["AN", 3, 1, 2]])") << second;
  EXPECT_THAT(ErrorOf({{"do", "space"}, {"task", 0}, {"template", ""}}),
              HasSubstr("\"template\" is empty, expected"));
}

TEST_F(AnswersTest, DistancesOfKeys) {
  const Json same =
      Ask({{"do", "compatible"}, {"key", R"(["f", 4, 8])"}, {"other", R"(["f", 2, 8])"}});
  EXPECT_EQ(same["distance"], 2);
  const Json other = Ask({{"do", "compatible"}, {"key", R"(["f", 4])"}, {"other", R"(["g", 4])"}});
  EXPECT_EQ(other["distance"], Json());
}

TEST_F(AnswersTest, WrongQuestionsGetASentence) {
  EXPECT_THAT(answers_.Answer("[1"), HasSubstr("expected a question"));
  EXPECT_THAT(ErrorOf({{"do", 3}}), HasSubstr("has no text \"do\""));
  EXPECT_THAT(ErrorOf({{"do", "state"}, {"task", 0}}), HasSubstr("no computation is open"));
  Open();
  EXPECT_THAT(ErrorOf({{"do", "dance"}, {"task", 0}}), HasSubstr("\"do\" is 'dance', expected"));
  EXPECT_THAT(ErrorOf({{"do", "state"}, {"task", 1}}), HasSubstr("from 0 to 0"));
  EXPECT_THAT(ErrorOf({{"do", "state"}, {"task", 0}, {"steps", {{"SP", 2, 9, 64, {4}, 1}}}}),
              HasSubstr("loop 9 does not exist"));
  EXPECT_THAT(ErrorOf({{"do", "state"}, {"task", 0}, {"steps", "SP"}}), HasSubstr("expected"));
  EXPECT_THAT(ErrorOf({{"do", "sample"}, {"task", 0}, {"count", 0}, {"seed", 1}}),
              HasSubstr("\"count\" is 0"));
  EXPECT_THAT(ErrorOf({{"do", "sample"},
                       {"task", 0},
                       {"count", 1},
                       {"seed", 1},
                       {"parameters", {{"no_such", 1}}}}),
              HasSubstr("no_such"));
  EXPECT_THAT(ErrorOf({{"do", "print"}, {"task", 0}, {"form", "poem"}}), HasSubstr("poem"));
  EXPECT_THAT(
      ErrorOf({{"do", "predict"}, {"task", 0}, {"states", {Json::array()}}, {"model", "/none"}}),
      HasSubstr("/none"));
}

}  // namespace
}  // namespace kiln::client
