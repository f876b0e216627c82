// A hand-written kernel, tuned on this machine's CPU by the real binary: a builder builds it with a
// C compiler, a runner checks and times it, a database keeps the result, and commands read it
// afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

// A small matrix product in C. One parameter selects the way in which it goes wrong.
constexpr char kSource[] = R"toml(#include <stdint.h>
#if KIND == NO_COMPILE
#error this kind does not compile
#endif
void product(const float* restrict A, const float* restrict B, float* restrict C, int32_t n,
             int64_t block) {
#if KIND == HANG
  for (volatile int forever = 1; forever;) continue;
#elif KIND == CRASH
  *(volatile float*)(intptr_t)(16 * n) = 0;
#endif
  for (int64_t i = block * ROWS; i < (block + 1) * ROWS; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = KIND == WRONG && i == 7 && j == 11 ? 1 : 0;
      for (int k = 0; k < n; ++k) sum += A[i * n + k] * B[k * n + j];
      C[i * n + j] = sum;
    }
  }
}
)toml";
constexpr char kSpace[] = R"toml(kernel = "product"
operator = "matmul"
args = "32,32,32"
arguments = ["input0", "input1", "output0", { int32 = "N" }, { block = "x" }]
grid = ["N // ROWS"]
options = ["-ffp-contract=fast"]
restrictions = ["KIND == RIGHT or ROWS == 4"]
[constants]
N = "extent(input0, 0)"
RIGHT = 0
WRONG = 1
NO_COMPILE = 2
HANG = 3
CRASH = 4
[parameters]
KIND = [0, 1, 2, 3, 4]
# Of 5 and 3 a part of the rows is never computed.
ROWS = [1, 4, 5, 8]
)toml";

class KernelTuneTest : public KilnTest {
 protected:
  void SetUp() override {
    ASSERT_OK(WriteFile(source_, kSource));
    ASSERT_OK(WriteFile(space_, kSpace));
  }
  Words Tune(const Words& more) const {
    Words words = {"tune", source_, "--space", space_, "--db", db_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string Refusal(const Words& words) const {
    const RunResult result = RunKiln(words);
    EXPECT_FALSE(result.exit.ok()) << result.output;
    return result.error;
  }

  const std::string source_ = folder_.Join("product.c"), space_ = folder_.Join("product.toml");
};

TEST_F(KernelTuneTest, EveryConfigurationIsCheckedAndMistakesAreTrialsOfTheirKind) {
  const auto events = JsonLines(KilnPrints(
      Tune({"--policy", "template.grid", "--trials", "100", "--timeout-ms", "3000", "--json"})));
  // Trials by error.
  std::map<std::string, std::vector<Json>> trials;
  for (const Json& event : events) {
    if (event["event"] == "trial") trials[event["error"].get<std::string>()].push_back(event);
  }
  EXPECT_EQ(events.back()["ending"], "SPACE_EXHAUSTED");
  // ROWS is 1, 4 or 8. The compared loops are no trial.
  EXPECT_EQ(trials["NO_ERROR"].size(), 3u);
  ASSERT_EQ(trials["WRONG_ANSWER_ERROR"].size(), 2u);
  std::vector<Json>& wrong_ones = trials["WRONG_ANSWER_ERROR"];
  if (wrong_ones[0]["parameters"]["KIND"] == 0) std::swap(wrong_ones[0], wrong_ones[1]);
  EXPECT_EQ(wrong_ones[0]["parameters"], Json({{"KIND", 1}, {"ROWS", 4}}));
  EXPECT_EQ(wrong_ones[1]["parameters"], Json({{"KIND", 0}, {"ROWS", 5}}));
  ASSERT_EQ(trials["COMPILE_HOST_ERROR"].size(), 1u);
  EXPECT_THAT(trials["COMPILE_HOST_ERROR"][0]["message"].get<std::string>(),
              HasSubstr("product.c:3:2: error: #error this kind does not compile"));
  ASSERT_EQ(trials["RUN_TIMEOUT_ERROR"].size(), 1u);
  EXPECT_EQ(trials["RUN_TIMEOUT_ERROR"][0]["parameters"]["KIND"], 3);
  ASSERT_EQ(trials["RUNTIME_DEVICE_ERROR"].size(), 1u);
  EXPECT_EQ(trials["RUNTIME_DEVICE_ERROR"][0]["parameters"]["KIND"], 4);
  EXPECT_EQ(trials.size(), 5u);

  // ---- the results
  const std::string job = events.front()["job"];
  // A long latency leaves the task's column two lines.
  EXPECT_THAT(Kiln({"best"}),
              AllOf(HasSubstr(job + "/"), HasSubstr("product.c"), HasSubstr("product, matmul")));
  const std::vector<Json>& worked = trials["NO_ERROR"];
  const auto right = std::find_if(worked.begin(), worked.end(),
                                  [](const Json& event) { return event.contains("parameters"); });
  ASSERT_NE(right, worked.end());
  const std::string trial = fmt::format("{}/{}", job, (*right)["trial"].get<int>());
  // The files find the records, even if the lists of values have changed.
  ASSERT_OK(WriteFile(space_, std::string(kSpace).replace(std::string(kSpace).find("[1, 4, 5, 8]"),
                                                          12, "[1, 2, 4, 5, 8]")));
  const std::string best = Kiln({"best", source_, "--space", space_});
  EXPECT_THAT(best,
              AllOf(HasSubstr("product.c"), HasSubstr(": KIND=0 ROWS="),
                    HasSubstr("  its source, with these values: "), HasSubstr(" --as c --db ")));
  EXPECT_THAT(Kiln({"show", source_, "--space", space_, "--as", "c"}),
              AllOf(HasSubstr("#define KIND 0\n"), HasSubstr("void product(")));
  EXPECT_THAT(Refusal({"best", source_, "--db", db_}), HasSubstr("--space FILE.toml"));
  EXPECT_THAT(Refusal({"best", "matmul", "--args", "32,32,32", "--space", space_, "--db", db_}),
              HasSubstr("--space is of a kernel of yours"));
  EXPECT_THAT(Refusal({"choice", "pin", trial, "--db", db_}),
              HasSubstr("of a hand-written kernel, which has parameters and no schedule"));
  EXPECT_THAT(Kiln({"records", "list", "--job", job}),
              AllOf(HasSubstr("\nrecord "), HasSubstr(": KIND=0 ROWS=")));
  EXPECT_THAT(Kiln({"show", trial}),
              AllOf(HasSubstr("# kernel product\nKIND = 0\nROWS = "), HasSubstr("# called for ")));
  const std::string wrong = fmt::format("{}/{}", job, wrong_ones[0]["trial"].get<int>());
  EXPECT_THAT(Kiln({"show", wrong, "--as", "c"}),
              AllOf(HasSubstr("// product, compiled with -ffp-contract=fast"),
                    HasSubstr("#define N 32\n"), HasSubstr("#define KIND 1\n"),
                    HasSubstr("#define ROWS 4\n"), HasSubstr("void product(")));
  EXPECT_THAT(Kiln({"show", wrong, "--as", "steps"}),
              HasSubstr("\"parameters\":{\"KIND\":1,\"ROWS\":4}"));
  EXPECT_THAT(Refusal({"show", wrong, "--as", "llvm", "--db", db_}), HasSubstr("has no llvm form"));
  EXPECT_THAT(Kiln({"jobs", job}), HasSubstr("1 compile error"));

  // ---- once more, alone
  const std::string again = Kiln({"trial", wrong});
  EXPECT_THAT(again,
              AllOf(HasSubstr("then      wrong answer"), HasSubstr("now       wrong answer")));

  // ---- commands that do not take a kernel
  const RunResult exported = RunKiln({"records", "export", "--db", db_, "--errors"});
  EXPECT_TRUE(exported.exit.ok());
  EXPECT_THAT(exported.error, HasSubstr("8 records left out, of hand-written kernels"));
  EXPECT_THAT(Refusal({"show", trial, "--as", "loops", "--db", db_}),
              HasSubstr("a kernel that a person wrote in c has no loops form"));
  EXPECT_THAT(Refusal({"compile", trial, "-o", folder_.Join("x.kiln"), "--db", db_}),
              HasSubstr("parameters of a hand-written kernel"));
}

// Each kernel computes once and copies the kept result later: always, if the address of an input is
// the same, or if an input begins alike.
TEST_F(KernelTuneTest, AKernelThatKeepsItsAnswerIsWrong) {
  ASSERT_OK(WriteFile(source_, R"(#include <string.h>
static float kept[32 * 32], first[8];
static const float* seen;
void product(const float* restrict A, const float* restrict B, float* restrict C) {
  const int known = KEEP == 1   ? seen != 0
                    : KEEP == 2 ? seen == A
                    : KEEP == 3 ? seen != 0 && memcmp(first, A, sizeof(first)) == 0
                                : 0;
  if (known) {
    memcpy(C, kept, sizeof(kept));
    return;
  }
  for (int i = 0; i < 32; ++i) {
    for (int j = 0; j < 32; ++j) {
      float sum = 0;
      for (int k = 0; k < 32; ++k) sum += A[i * 32 + k] * B[k * 32 + j];
      C[i * 32 + j] = sum;
    }
  }
  memcpy(kept, C, sizeof(kept));
  memcpy(first, A, sizeof(first));
  seen = A;
}
)"));
  ASSERT_OK(WriteFile(space_,
                      "kernel = \"product\"\noperator = \"matmul\"\nargs = \"32,32,32\"\n"
                      "arguments = [\"input0\", \"input1\", \"output0\"]\ngrid = [\"1\"]\n"
                      "[parameters]\nKEEP = [0, 1, 2, 3]\n"));
  const auto events =
      JsonLines(KilnPrints(Tune({"--policy", "template.grid", "--trials", "10", "--json"})));
  int wrong = 0;
  for (const Json& event : events) {
    if (event["event"] != "trial" || !event.contains("parameters")) continue;
    const bool keeps = event["parameters"]["KEEP"] != 0;
    EXPECT_EQ(event["error"], keeps ? "WRONG_ANSWER_ERROR" : "NO_ERROR") << event;
    if (!keeps) continue;
    ++wrong;
    EXPECT_THAT(event["message"].get<std::string>(), HasSubstr("which had other inputs"));
  }
  EXPECT_EQ(wrong, 3);
  EXPECT_THAT(Kiln({"best", source_, "--space", space_}), HasSubstr("KEEP=0"));
}

TEST_F(KernelTuneTest, AReferenceKernelSaysWhatIsRight) {
  ASSERT_OK(WriteFile(folder_.Join("naive.c"),
                      "void naive(const float* x, float* y) { for (int i = 0; i < 64; ++i) y[i] = "
                      "x[i] > 0 ? x[i] : 0; }\n"));
  ASSERT_OK(
      WriteFile(folder_.Join("relu.c"),
                "void relu(const float* x, float* y) { for (int i = 0; i < 64; i += STEP) for "
                "(int j = i; j < i + STEP; ++j) y[j] = x[j] > 0 || STEP == 2 ? x[j] : 0; }\n"));
  ASSERT_OK(
      WriteFile(folder_.Join("relu.toml"),
                "kernel = \"relu\"\nflops = 64\n[parameters]\nSTEP = [1, 2, 4]\n[tensors]\nx = "
                "\"input float32[64]\"\ny = \"output float32[64]\"\n[reference]\nfile = "
                "\"naive.c\"\nkernel = \"naive\"\n"));
  const std::string out =
      KilnPrints({"tune", folder_.Join("relu.c"), "--space", folder_.Join("relu.toml"), "--db", db_,
                  "--policy", "template.random"});
  EXPECT_THAT(out, AllOf(HasSubstr("the reference kernel"), HasSubstr("1 wrong answer"),
                         HasSubstr("no candidates are left")));
}

TEST_F(KernelTuneTest, WhatWasMeasuredIsNotMeasuredAgain) {
  for (const char* policy : {"template.grid", "template.xgb"}) {
    ASSERT_OK(WriteFile(space_, kSpace));
    const auto trials_of = [&] {
      std::vector<Json> trials;
      for (const Json& event :
           JsonLines(KilnPrints({"tune", source_, "--space", space_, "--db",
                                 folder_.Join(std::string(policy) + ".db"), "--policy", policy,
                                 "--trials", "100", "--timeout-ms", "1000", "--json"}))) {
        if (event["event"] == "trial") trials.push_back(event);
      }
      return trials;
    };
    EXPECT_EQ(trials_of().size(), 8u);
    EXPECT_EQ(trials_of().size(), 0u) << "the same job once more";
    ASSERT_OK(
        WriteFile(space_, std::string(kSpace).replace(std::string(kSpace).find("[1, 4, 5, 8]"), 12,
                                                      "[1, 2, 4, 5, 8]")));
    const std::vector<Json> longer = trials_of();
    EXPECT_GT(longer.size(), 0u);
    for (const Json& trial : longer) EXPECT_EQ(trial["parameters"]["ROWS"], 2);
  }
}

TEST_F(KernelTuneTest, NothingIsBestIfAllTrialsFail) {
  ASSERT_OK(WriteFile(
      space_, std::string(kSpace).replace(std::string(kSpace).find("[1, 4, 5, 8]"), 12, "[5]")));
  const RunResult job = RunKiln(Tune({"--policy", "template.grid", "--trials", "4"}));
  EXPECT_FALSE(job.exit.ok());
  EXPECT_THAT(job.output + job.error, HasSubstr("gave a correct program"));
  EXPECT_THAT(Refusal({"best", "--db", db_}), HasSubstr("has no successful record"));
}

TEST_F(KernelTuneTest, TheSpaceIsShownWithoutAJob) {
  const std::string space = KilnPrints({"templates", source_, "--space", space_});
  EXPECT_EQ(space,
            "ConfigSpace (len=8, range_length=20, space_map=\n"
            "   0 KIND: OtherOption([0, 1, 2, 3, 4]) len=5\n"
            "   1 ROWS: OtherOption([1, 4, 5, 8]) len=4\n"
            ")\n");
  EXPECT_EQ(KilnPrints(Tune({"--trials", "0"})), space);
  EXPECT_EQ(KilnPrints({"templates", source_, "--space", space_, "--config", "5"}),
            "KIND = 0\nROWS = 4\n# called for 8 blocks (8 x 1 x 1)\n");
  const Json point = JsonLines(
      KilnPrints({"templates", source_, "--space", space_, "--config", "5", "--json"}))[0];
  EXPECT_THAT(point["steps"].get<std::string>(), HasSubstr("{\"KIND\":0,\"ROWS\":4}"));
  EXPECT_THAT(Refusal({"templates", source_, "--space", space_, "--config", "1"}),
              HasSubstr("config 1 is not valid"));
}

TEST_F(KernelTuneTest, WhatIsWrongIsSaidBeforeAJobIsMade) {
  EXPECT_THAT(Refusal({"tune", source_}), HasSubstr("say --space FILE.toml"));
  EXPECT_THAT(Refusal({"tune", "matmul", "--args", "8,8,8", "--space", space_}),
              HasSubstr("--space is of a kernel of yours"));
  EXPECT_THAT(Refusal(Tune({"--policy", "sketch.random"})),
              HasSubstr("policy sketch.random cannot search a hand-written kernel"));
  EXPECT_THAT(Refusal(Tune({"--target", "cuda -arch=sm_90"})),
              HasSubstr("product.c is for a CPU, the target is cuda"));
}

}  // namespace
}  // namespace kiln::client
