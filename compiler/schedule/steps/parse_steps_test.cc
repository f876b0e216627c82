#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "base/status_testing.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

std::vector<std::string> RecordedSteps() {
  std::ifstream file("compiler/schedule/testdata/resnet18_cuda_steps.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(ParseSteps, RecordsPrintAsTheyWereRead) {
  const std::vector<std::string> lines = RecordedSteps();
  ASSERT_EQ(lines.size(), 24u);
  for (const std::string& line : lines) {
    ASSERT_OK_AND_ASSIGN(auto steps, ParseSteps(line));
    EXPECT_EQ(PrintSteps(steps), line);
  }
}

TEST(ParseSteps, EveryKind) {
  const std::string text =
      R"([["AN", 2, 0, 3], ["FU", 2, [0, 1, 2]], ["FU", 2, []], ["PR", 1, 0, "auto_unroll_max_step$64"], )"
      R"(["RE", 2, [1, 0]], ["SP", 3, 1, 1000, [50, 0], 0], ["FSP", 2, 4, 1, 2], )"
      R"(["FFSP", 7, 0, [14, 13], 1, 1], ["SA", 2, 1, 33, 4], ["CA", 3, 6, 11], ["CI", 5], ["CR", 6], )"
      R"(["CHR", 2, "shared", [3, 4]], ["CHW", 3, "local"], ["RF", 3, 2, 1], ["BF", 3, 2], ["BF", 3, 4, 1]])";
  ASSERT_OK_AND_ASSIGN(auto steps, ParseSteps(text));
  ASSERT_EQ(steps.size(), 17u);
  EXPECT_EQ(PrintSteps(steps), text);
}

TEST(ParseSteps, BlanksDoNotMatter) {
  ASSERT_OK_AND_ASSIGN(auto steps,
                       ParseSteps(" [ [\"SP\" ,2,0 ,\t512,[ 4,2 ],1 ] ,[\"CI\",3]\n] "));
  EXPECT_EQ(PrintSteps(steps), R"([["SP", 2, 0, 512, [4, 2], 1], ["CI", 3]])");
  ASSERT_OK_AND_ASSIGN(steps, ParseSteps("[]"));
  EXPECT_TRUE(steps.empty());
}

TEST(ParseSteps, RefusesMoreLengthsThanAStageMayHaveLoops) {
  std::string lengths = "1";
  for (int i = 1; i < 200'000; ++i) lengths += ", 1";
  EXPECT_THAT(
      ParseSteps(fmt::format(R"([["SP", 2, 0, 512, [{}], 1]])", lengths)),
      StatusIs(StatusCode::kInvalidArgument,
               HasSubstr("the end of lengths, which has 512 items, the most there may be")));
}

TEST(ParseSteps, RefusesTextsThatAreTooLong) {
  EXPECT_THAT(ParseSteps("[" + std::string(9'000'000, ' ') + "]"),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("the list of steps has 9000002 bytes, expected at most 8388608")));
}

TEST(ParseSteps, Refuses) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "list of steps: column 1: expected '[', found the end of the line"},
      {"{}", "list of steps: column 1: expected '[', found '{}'"},
      {R"({"kernel":"3f2a"})", "found the parameters of a hand-written kernel"},
      {"[", "step #0: column 2: expected '[' of a step or ']' of the list, found the end"},
      {"[] x", "list of steps: column 4: expected the end of the line, found 'x'"},
      {R"([["CI", 1],])",
       "step #1: column 12: expected '[' of a step or ']' of the list, found ']'"},
      {R"([["CI", 1] ["CI", 2]])", "expected ',' or ']'"},
      {R"([["XX", 1]])",
       "step #0: unknown step tag \"XX\", expected one of AN FU PR RE SP FSP FFSP SA CA CI CR "
       "CHR "},
      {R"([["CI", 1], ["CI"]])", "step #1: column 18: expected ',' and item 1 (stage), found ']]'"},
      {R"([["CI", 1, 2]])", "step #0: column 10: expected the end of the step, found ', 2]]'"},
      {R"([["CI", 1.5]])", "expected stage as an integer"},
      {R"([["CI", 99999999999]])", "expected stage as an integer from -2147483648 to 2147483647"},
      {R"([["CI", 01]])", "step #0: column 9: expected stage as an integer from"},
      {R"([["CI", -]])", "column 9: expected stage as an integer"},
      {R"([["CI", "1"]])", "expected stage as an integer"},
      {R"([["SP", 1, 2, -3, [1], 1]])", "expected extent as an integer from 0"},
      {R"([["SP", 1, 2, 3, 4, 1]])", "expected lengths as a list of integers"},
      {R"([["SP", 1, 2, 3, [null], 1]])", "expected lengths as an integer"},
      {R"([["SP", 1, 2, 3, [4], 2]])", "expected inner_to_outer as an integer from 0 to 1"},
      {R"([["SP", 1, 2, 3, [4)", "column 20: expected ',' or ']' in lengths, found the end"},
      {R"([["AN", 1, 2, 13]])",
       "annotation 13 does not exist; expected 1 (unroll) to 12 (cluster)"},
      {R"([["AN", 1, 2, 0]])", "annotation 0 does not exist"},
      {R"([["CHR", 1, shared, [2]]])", "expected scope as a string"},
      {R"([["CHR", 1, "sha\u0041", [2]]])", "column 17: expected scope without escapes"},
      {"[[\"CHR\", 1, \"sha\x01\", [2]]]", "column 17: expected no control character"},
      {"[[\"CI\", \xff]]",
       "column 9: expected stage as an integer from -2147483648 to 2147483647, found '?]]'"},
      {R"([["CHR", 1, "shared)", "column 20: expected the closing '\"' of a string, found the end"},
      {R"([[3, 1]])", "expected the tag as a string"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(ParseSteps(text), StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
        << text;
  }
}

TEST(ParseSteps, RandomSchedulesRoundTrip) {
  const dag::DagPtr dags[] = {MatmulRelu(8, 12, 10), Softmax(4, 9),
                              Conv2d({6, 3, 4, 3, 1, 1}, true)};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const State state = RandomSchedule(dags[seed % 3], seed, 12);
    const std::string text = PrintSteps(state.steps());
    ASSERT_OK_AND_ASSIGN(auto steps, ParseSteps(text));
    EXPECT_EQ(PrintSteps(steps), text) << "seed " << seed;
    EXPECT_EQ(HashSteps(steps), HashSteps(state.steps())) << "seed " << seed;
    ASSERT_OK_AND_ASSIGN(const State replayed, Replay(state.initial_dag(), steps));
    EXPECT_EQ(PrintLoops(replayed, false), PrintLoops(state, false)) << "seed " << seed;
  }
}

// Records with bytes changed, dropped and doubled are parsed or refused. Parsed ones are replayed
// or refused.
TEST(ParseSteps, GarbageDoesNoHarm) {
  const std::vector<std::string> lines = RecordedSteps();
  const dag::DagPtr dag = Conv2d({56, 64, 128, 3, 2, 1}, true);
  std::mt19937_64 rng(20240607);
  int parsed = 0, replayed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = lines[rng() % lines.size()];
    const int edits = 1 + static_cast<int>(rng() % 3);
    for (int e = 0; e < edits; ++e) {
      const size_t at = rng() % text.size();
      static constexpr std::string_view kBytes = "0123456789[],\" -SPFUAN\\\x01\xff";
      switch (rng() % 4) {
        case 0:
          text.erase(at, 1 + rng() % 8);
          break;
        case 1:
          text.insert(at, 1, kBytes[rng() % kBytes.size()]);
          break;
        case 2:
          text.insert(at, text.substr(at, rng() % 20));
          break;
        default:
          text[at] = kBytes[rng() % kBytes.size()];
          break;
      }
      if (text.empty()) text = "[";
    }
    const auto steps = ParseSteps(text);
    if (!steps.ok()) continue;
    ++parsed;
    ASSERT_OK_AND_ASSIGN(auto again, ParseSteps(PrintSteps(*steps)));
    EXPECT_EQ(HashSteps(again), HashSteps(*steps)) << text;
    if (Replay(dag, *steps).ok()) ++replayed;
  }
  EXPECT_GT(parsed, 1000);
  EXPECT_GT(replayed, 50);
}

TEST(HashSteps, SeesEffectsOnly) {
  const auto hash = [](const char* text) { return HashSteps(*ParseSteps(text)); };
  EXPECT_EQ(hash(R"([["SP", 2, 0, 512, [4], 1]])"), hash(R"([["SP", 2, 0, 99, [4], 1]])"));
  EXPECT_NE(hash(R"([["SP", 2, 0, 512, [4], 1]])"), hash(R"([["SP", 2, 0, 512, [4], 0]])"));
  EXPECT_NE(hash(R"([["SP", 2, 0, 512, [4], 1]])"), hash(R"([["SP", 2, 0, 512, [8], 1]])"));
  EXPECT_NE(hash(R"([["SP", 2, 0, 1, [4, 2], 1]])"), hash(R"([["SP", 2, 0, 1, [2, 4], 1]])"));
  EXPECT_NE(hash(R"([["CI", 1], ["CI", 2]])"), hash(R"([["CI", 2], ["CI", 1]])"));
  EXPECT_NE(hash(R"([["CI", 1]])"), hash(R"([["CR", 1]])"));
  EXPECT_NE(hash(R"([["CHW", 1, "local"]])"), hash(R"([["CHW", 1, "shared"]])"));
  EXPECT_NE(hash("[]"), hash(R"([["CI", 0]])"));
}

}  // namespace
}  // namespace kiln::schedule
