#include "store/measure_log.h"

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "base/status_testing.h"
#include "store/record_testing.h"

namespace kiln::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kStepsText[] =
    R"([["FU", 2, [0, 1, 2, 3]], ["PR", 1, 0, "auto_unroll_max_step$0"]])";

// Returns a line whose task array has the given items after key and target.
std::string Line(std::string_view task_rest, std::string_view version) {
  return fmt::format(
      R"({{"i": [["[\"8c53ca29\", [1, 7]]", "cuda -keys=cuda,gpu"{}], [[], {}]], "r": [[3.91348e-06], 0, 0.95337, 1691392900], "v": "{}"}})",
      task_rest, kStepsText, version);
}

const std::pair<const char*, const char*> kVersions[] = {
    {"", "v0.1"},
    {"", "v0.2"},
    {", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32]", "v0.3"},
    {", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32]", "v0.4"},
    {R"(, [16, 64, 64, 0, 0, 0, 0, 0], "llvm -mcpu=core-avx2")", "v0.4"},
    {R"(, [16, 64, 64, 0, 0, 0, 0, 0], "", 1)", "v0.5"},
    {R"(, [16, 64, 64, 0, 0, 0, 0, 0], "", 0, [])", "v0.6"},
    {R"(, [16, 64, 64, 0, 0, 0, 0, 0], "", 0, ["weight", "a\"b"])", "v0.6"},
};

std::string TestData() {
  std::ifstream file("store/testdata/resnet-18-NHWC-B1-cuda.json");
  EXPECT_TRUE(file.is_open());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(MeasureLog, ReprintsARealLogByteForByte) {
  const std::string text = TestData();
  const MeasureLog log = ParseMeasureLog(text);
  EXPECT_THAT(log.errors, IsEmpty());
  ASSERT_THAT(log.lines, SizeIs(24));
  std::string printed;
  for (const MeasureLogLine& line : log.lines) printed += PrintMeasureLogLine(line) + "\n";
  EXPECT_EQ(printed, text);
  EXPECT_EQ(log.lines[4].workload_key,
            R"(["8c53ca2904398da2889aa7508082d7bb", [1, 7, 7, 512], [1, 1, 1, 512]])");
  EXPECT_EQ(log.lines[4].target,
            "cuda -keys=cuda,gpu -arch=sm_86 -max_num_threads=1024 -thread_warp_size=32");
  EXPECT_EQ(log.lines[4].hardware, (HardwareRow{-1, 16, 64, 49152, 2147483647, 1024, 8, 32}));
  EXPECT_EQ(log.lines[4].target_host, "");
  EXPECT_EQ(log.lines[4].layout_rewrite_option, 0);
  EXPECT_THAT(log.lines[4].costs_s, ElementsAre(3.91348e-06));
  EXPECT_EQ(log.lines[4].all_cost_s, 0.95337);
  EXPECT_EQ(log.lines[4].timestamp_s, 1691392900);
  EXPECT_EQ(log.lines[4].version, "v0.6");
}

TEST(MeasureLog, EveryVersionIsReadAndReprinted) {
  for (const auto& [rest, version] : kVersions) {
    const std::string text = Line(rest, version);
    ASSERT_OK_AND_ASSIGN(const MeasureLogLine line, ParseMeasureLogLine(text));
    EXPECT_EQ(PrintMeasureLogLine(line), text);
    EXPECT_EQ(line.version, version);
    EXPECT_EQ(line.steps_json, kStepsText);
  }
  ASSERT_OK_AND_ASSIGN(const MeasureLogLine last,
                       ParseMeasureLogLine(Line(kVersions[7].first, "v0.6")));
  EXPECT_THAT(*last.task_input_names, ElementsAre("weight", "a\"b"));
}

MeasureLogLine LineOf(const std::string& key, int64_t option) {
  MeasureLogLine line;
  line.workload_key = key;
  line.target = "llvm";
  line.hardware.emplace();
  line.target_host = "";
  line.layout_rewrite_option = option;
  line.task_input_names.emplace();
  line.steps_json = "[]";
  line.costs_s = {1};
  line.version = "v0.6";
  return line;
}

// TVM's key of a computation says nothing of the order of its constants, Kiln's key does.
TEST(MeasureLog, PackedInputsAreSaidByTheLayoutRewriteOption) {
  constexpr char kPlain[] = R"(["a", [4, 8]])", kPacked[] = R"(["a", [4, 8], "packed"])";
  ASSERT_OK_AND_ASSIGN(Record record, RecordOfLine(LineOf(kPlain, 2), "j", 0));
  EXPECT_EQ(record.workload_key, kPacked);
  EXPECT_FALSE(HasRewrittenLayouts(record)) << "the key says how";
  EXPECT_EQ(*LineOfRecord(record), LineOf(kPlain, 2));
  // Kiln's own records have no option.
  record.layout_rewrite_option = 0;
  EXPECT_FALSE(HasRewrittenLayouts(record));
  EXPECT_EQ(*LineOfRecord(record), LineOf(kPlain, 2));
}

TEST(MeasureLog, OtherOptionsStayAsTheyAre) {
  for (const auto& [key, option] :
       {std::pair(R"(["a", [4, 8]])", 0), std::pair(R"(["a", [4, 8]])", 1),
        std::pair("my_matmul", 2), std::pair(R"(["a", [4, 8], "packed"])", 1)}) {
    ASSERT_OK_AND_ASSIGN(const Record record, RecordOfLine(LineOf(key, option), "j", 0));
    EXPECT_EQ(record.workload_key, key);
    EXPECT_EQ(HasRewrittenLayouts(record), option != 0) << key << option;
    EXPECT_EQ(*LineOfRecord(record), LineOf(key, option));
  }
}

TEST(MeasureLog, KeysComeInAnyOrderAndSpacing) {
  ASSERT_OK_AND_ASSIGN(
      const MeasureLogLine line,
      ParseMeasureLogLine(
          R"({"v":"v0.6","r":[[1e+10,2],7,10.2785,5],"i":[["k","t"],[[],[["CI",3]]]]} )"));
  EXPECT_EQ(
      PrintMeasureLogLine(line),
      R"({"i": [["k", "t"], [[], [["CI", 3]]]], "r": [[1e+10, 2], 7, 10.2785, 5], "v": "v0.6"})");
  EXPECT_OK(ParseMeasureLogLine(R"({"i": [["k", "t"], [[], []]], "r": [[1], 0, 1, 1]})"));
}

TEST(MeasureLog, DoublesPrintAsAnOstreamDoes) {
  std::mt19937_64 rng(3);
  std::vector<double> values = {0,      1,
                                1e10,   1e-5,
                                123456, 1234567,
                                0.0001, 0.00001234567,
                                100000, 1e5,
                                1e6,    999999.5,
                                5e-324, 1.7976931348623157e308,
                                2.149};
  for (int i = 0; i < 2000; ++i) {
    values.push_back(
        std::ldexp(static_cast<double>(rng() % 1000003), static_cast<int>(rng() % 80) - 60));
  }
  for (double value : values) {
    MeasureLogLine line;
    line.steps_json = "[]";
    line.costs_s = {value};
    std::ostringstream expected;
    expected << "\"r\": [[" << value << "], 0, 0, 0]";
    EXPECT_THAT(PrintMeasureLogLine(line), HasSubstr(expected.str()));
  }
}

TEST(MeasureLog, RefusalsSayWhatWasExpected) {
  const std::string rest = R"(, "r": [[1], 0, 1, 1], "v": "v0.6"})";
  const std::string input = R"({"i": [["k", "t"], [[], []]])";
  const std::pair<std::string, const char*> cases[] = {
      {"x", "column 1: expected '{' (a measure record), found 'x'"},
      {"{}", "key \"i\" is missing"},
      {input + "}", "key \"r\" is missing, expected \"i\", \"r\" and \"v\""},
      {input + R"(, "m": 1})", "key \"m\" is unknown, expected \"i\", \"r\" or \"v\""},
      {R"({"input": ["cuda"]})", "is of an autotvm log"},
      {input + ", " + input.substr(1) + rest, "key \"i\" stands twice"},
      {input + rest + "}", "expected the end of the line"},
      {input + R"(, "r": [[1], 9, 1, 1]})", "\"r\": error number 9, expected 0 to 8"},
      {input + R"(, "r": [[1], 0, 1]})", "then the timestamp"},
      {input + R"(, "r": [[1], 0, 1, 1.5]})", "the timestamp, an integer of 64 bits"},
      {input + R"(, "r": [[1], 0, 1, 1, 1]})", "a result has 4 items"},
      {input + R"(, "r": [[nan], 0, 1, 1]})", "a cost in seconds, found 'nan"},
      {input + R"(, "r": [[1e999], 0, 1, 1]})", "within the range of a double"},
      {R"({"i": [["k"], [[], []]])" + rest, "then the target"},
      {R"({"i": [["k", "t", [1, 2]], [[], []]])" + rest, "the 8 hardware parameters"},
      {R"({"i": [["k", "t", [1,2,3,4,5,6,7,8,9]], [[], []]])" + rest,
       "after 8 hardware parameters"},
      {R"({"i": [["k", "t", [1,2,3,4,5,6,7,8], "", 0, [], 7], [[], []]])" + rest,
       "at most 6 items"},
      {R"({"i": [["k", "t"], [[1], []]])" + rest, "the stages, always []"},
      {R"({"i": [["k", "t"], [[]]])" + rest, "then the steps"},
      {R"({"i": [["k", "t"], [[], [["CI", 1], [3]]]])" + rest, "step 1 of the steps"},
      {R"({"i": [["k", "t"], [[], [["CI", 1], 3]]])" + rest, "step 1 of the steps"},
      {R"({"i": [["k", "t"], [[], 3]])" + rest, "the steps"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(ParseMeasureLogLine(text),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
        << text;
  }
}

TEST(MeasureLog, CommentsAndBlankLinesAreSkippedAndErrorsNumbered) {
  const std::string good = Line("", "v0.2");
  const MeasureLog log = ParseMeasureLog("# a comment\n\n" + good + "\r\n \nbad\n\t\n" + good);
  EXPECT_THAT(log.lines, SizeIs(2));
  ASSERT_THAT(log.errors, SizeIs(1));
  EXPECT_THAT(log.errors[0], HasSubstr("line 5: column 1: expected '{'"));
  EXPECT_THAT(ParseMeasureLog("").lines, IsEmpty());
}

// A valid line with a byte changed, dropped or added is either read or refused. A line that is read
// prints and parses back.
TEST(MeasureLog, DamagedLinesNeverCrash) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 rng(seed);
  constexpr std::string_view kBytes("[]{},:\"\\ 019.-eu\n\0x", 19);
  int read = 0;
  for (int i = 0; i < 60'000; ++i) {
    const auto& [rest, version] = kVersions[rng() % std::size(kVersions)];
    std::string text = Line(rest, version);
    for (uint64_t edits = 1 + rng() % 3; edits > 0 && !text.empty(); --edits) {
      const size_t at = rng() % text.size();
      const char byte = kBytes[rng() % kBytes.size()];
      switch (rng() % 4) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.erase(at, 1);
          break;
        case 2:
          text.insert(at, 1, byte);
          break;
        case 3:
          text.resize(at + 1);
          break;
      }
    }
    const StatusOr<MeasureLogLine> line = ParseMeasureLogLine(text);
    if (!line.ok()) continue;
    ++read;
    // A line that was once rounded to six digits does not change any more.
    ASSERT_OK_AND_ASSIGN(const MeasureLogLine rounded,
                         ParseMeasureLogLine(PrintMeasureLogLine(*line)));
    ASSERT_OK_AND_ASSIGN(const MeasureLogLine again,
                         ParseMeasureLogLine(PrintMeasureLogLine(rounded)));
    ASSERT_EQ(again, rounded) << text;
    ASSERT_EQ(rounded.steps_json, line->steps_json);
  }
  EXPECT_GT(read, 100);
}

TEST(MeasureLog, ARecordPrintsAsTheLineOfItsVersion) {
  Record record = TestRecord("j", 1);
  record.costs_s = {1.23456789e-5, 2e-5};
  record.steps = R"([["CI",3],["SP",0,0,56,[1],1]])";
  ASSERT_OK_AND_ASSIGN(const MeasureLogLine line, LineOfRecord(record));
  EXPECT_EQ(
      PrintMeasureLogLine(line),
      R"({"i": [["[\"0fad1b42\", [1, 56, 56, 64]]", "cuda -arch=sm_90", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32], "", 0, []], [[], [["CI", 3], ["SP", 0, 0, 56, [1], 1]]]], "r": [[1.23457e-05, 2e-05], 0, 0.75, 1700000001], "v": "v0.6"})");
  // A finalist has the cost by which it is compared.
  record.remeasured_costs_s = {3e-5, 1e-5, 2.5e-5};
  ASSERT_OK_AND_ASSIGN(const MeasureLogLine again, LineOfRecord(record));
  EXPECT_THAT(again.costs_s, testing::ElementsAre(2.5e-5));
  record = FailedRecord("j", 1, 7);
  record.run_s = NAN;
  ASSERT_OK_AND_ASSIGN(const MeasureLogLine failed, LineOfRecord(record));
  EXPECT_THAT(PrintMeasureLogLine(failed), HasSubstr("\"r\": [[1e+10], 7, 0, 1700000001]"));
}

TEST(MeasureLog, ARecordWhoseStepsAreNoneIsNotPrinted) {
  Record record = TestRecord("j", 1);
  for (const char* steps : {"", "{}", "[] []", "[[\"CI\", 1]\n", "[3]"}) {
    record.steps = steps;
    EXPECT_THAT(LineOfRecord(record),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("steps of record 0")))
        << steps;
  }
}

TEST(MeasureLog, ALineBecomesARecordAndTheSameLineAgain) {
  for (const MeasureLogLine& line : ParseMeasureLog(TestData()).lines) {
    ASSERT_OK_AND_ASSIGN(const Record record, RecordOfLine(line, "import", 3));
    EXPECT_EQ(record.job_id, "import");
    EXPECT_EQ(record.trial, 3);
    EXPECT_EQ(record.dag, "");
    ASSERT_OK_AND_ASSIGN(const MeasureLogLine again, LineOfRecord(record));
    EXPECT_EQ(again, line);
  }
  ASSERT_OK_AND_ASSIGN(
      const MeasureLogLine failed,
      ParseMeasureLogLine(
          R"({"i": [["k", "t"], [[], []]], "r": [[1e+10], 7, 10.2785, 5], "v": "v0.4"})"));
  ASSERT_OK_AND_ASSIGN(const Record record, RecordOfLine(failed, "import", 0));
  EXPECT_EQ(record.error, 7);
  EXPECT_THAT(record.costs_s, IsEmpty());
  EXPECT_EQ(record.hardware, HardwareRow{});
  ASSERT_OK_AND_ASSIGN(
      const MeasureLogLine free,
      ParseMeasureLogLine(R"({"i": [["k", "t"], [[], []]], "r": [[0], 0, 1, 5], "v": "v0.4"})"));
  EXPECT_THAT(RecordOfLine(free, "import", 0),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("cost 0 s")));
}

}  // namespace
}  // namespace kiln::store
