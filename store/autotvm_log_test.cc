#include "store/autotvm_log.h"

#include <sstream>

#include "base/status_testing.h"
#include "store/folder_testing.h"

namespace kiln::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> RealLines() {
  std::istringstream log(ReadFile("store/testdata/autotvm.log"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(log, line);) lines.push_back(line);
  return lines;
}

// Returns a line that has the three texts in their places.
std::string Line(std::string_view input, std::string_view config, std::string_view result,
                 std::string_view rest = R"("version": 0.2)") {
  return fmt::format(R"({{"input": {}, "config": {}, "result": {}, {}}})", input, config, result,
                     rest);
}
constexpr std::string_view kInput = R"(["llvm", "t", [], {}])";
constexpr std::string_view kConfig = R"({"index": 1, "code_hash": null, "entity": []})";
constexpr std::string_view kResult = R"([[0.5], 0, 1.0, 2.5])";

TEST(AutotvmLog, RealLinesComeBackByteForByte) {
  int records = 0;
  for (const std::string& line : RealLines()) {
    if (KindOfLogLine(line) != LogLineKind::kAutotvm) continue;
    ASSERT_OK_AND_ASSIGN(const AutotvmRecord record, ParseAutotvmLine(line));
    EXPECT_EQ(PrintAutotvmLine(record), line);
    EXPECT_OK(ValidateAutotvmRecord(record));
    ++records;
  }
  EXPECT_EQ(records, 6);
}

TEST(AutotvmLog, FieldsAreTakenApart) {
  ASSERT_OK_AND_ASSIGN(const AutotvmRecord record, ParseAutotvmLine(RealLines()[5]));
  EXPECT_EQ(record.target,
            "llvm -keys=cpu -link-params=0 -mcpu=skylake-avx512 -model=platinum-8124m");
  EXPECT_EQ(record.task, "conv2d_NCHWc.x86");
  EXPECT_EQ(record.config_index, 95);
  EXPECT_EQ(record.code_hash, std::nullopt);
  EXPECT_EQ(record.costs_s.size(), 8);
  EXPECT_EQ(record.error, 0);
  EXPECT_DOUBLE_EQ(record.timestamp_s, 1610169701.346503);
  EXPECT_EQ(record.tvm_version, "0.8.dev0");
  ASSERT_OK_AND_ASSIGN(const auto entities, ParseAutotvmEntities(record.entities));
  ASSERT_EQ(entities.size(), 4);
  EXPECT_EQ(entities[1].knob, "tile_oc");
  EXPECT_EQ(entities[1].kind, AutotvmEntity::Kind::kSplit);
  EXPECT_THAT(entities[1].numbers, ElementsAre(-1, 32));
  EXPECT_EQ(entities[3].kind, AutotvmEntity::Kind::kOther);
  EXPECT_EQ(entities[3].value, "true");
}

TEST(AutotvmLog, EveryKindOfKnobIsRead) {
  ASSERT_OK_AND_ASSIGN(
      const auto entities,
      ParseAutotvmEntities(
          R"([["a", "re", [2, 0, 1]], ["b", "an", ["vec", 3]], ["c", "ot", "x"]])"));
  ASSERT_EQ(entities.size(), 3);
  EXPECT_EQ(entities[0].kind, AutotvmEntity::Kind::kReorder);
  EXPECT_THAT(entities[0].numbers, ElementsAre(2, 0, 1));
  EXPECT_EQ(entities[1].kind, AutotvmEntity::Kind::kAnnotate);
  EXPECT_THAT(entities[1].annotations, ElementsAre("vec", "3"));
  EXPECT_EQ(entities[2].value, R"("x")");
  EXPECT_THAT(ParseAutotvmEntities(R"([["a", "xx", 1]])"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr(R"(kind "xx", expected "sp")")));
}

TEST(AutotvmLog, NumbersArePrintedAsPythonPrintsThem) {
  const std::string line =
      Line(kInput, kConfig, "[[1e-05, 0.0001, 1e+16, 123456789012345.0], 0, 3.0, 1e-07]");
  ASSERT_OK_AND_ASSIGN(const AutotvmRecord record, ParseAutotvmLine(line));
  EXPECT_EQ(PrintAutotvmLine(record), line);
  // A line of another writer with the same values.
  ASSERT_OK_AND_ASSIGN(const AutotvmRecord other,
                       ParseAutotvmLine(Line(kInput, kConfig, "[[0.50],0,1,2.5]")));
  EXPECT_EQ(PrintAutotvmLine(other), Line(kInput, kConfig, kResult));
}

TEST(AutotvmLog, KeysMayStandInAnyOrderAndTheVersionOfTvmMayBeMissing) {
  ASSERT_OK_AND_ASSIGN(
      const AutotvmRecord record,
      ParseAutotvmLine(fmt::format(R"({{"version":0.2,"result":{},"config":{},"input":{}}})",
                                   kResult, kConfig, kInput)));
  EXPECT_EQ(PrintAutotvmLine(record), Line(kInput, kConfig, kResult));
  const std::string hashed = Line(kInput, R"({"index": 1, "code_hash": "ab", "entity": []})",
                                  kResult, R"("version": 0.2, "tvm_version": "0.9")");
  ASSERT_OK_AND_ASSIGN(const AutotvmRecord with_hash, ParseAutotvmLine(hashed));
  EXPECT_EQ(PrintAutotvmLine(with_hash), hashed);
}

TEST(AutotvmLog, LinesThatAreNoneAreRefused) {
  const struct {
    std::string line, why;
  } cases[] = {
      {"{}", "key \"input\" is missing"},
      {Line(kInput, kConfig, kResult, R"("version": 0.2, "x": 1)"), "key \"x\" is unknown"},
      {Line(kInput, kConfig, kResult, R"("version": 0.2, "version": 0.2)"), "stands twice"},
      {Line(R"(["llvm", "t", []])", kConfig, kResult), "then the keyword arguments"},
      {Line(kInput, R"({"index": 1.5, "code_hash": null, "entity": []})", kResult), "an integer"},
      {Line(kInput, R"({"index": 1, "code_hash": null})", kResult), "\"entity\" is missing"},
      {Line(kInput, kConfig, "[[0.5], 9, 1.0, 2.5]"), "error number 9, expected 0 to 8"},
      {Line(kInput, kConfig, "[[NaN], 0, 1.0, 2.5]"), "a cost in seconds"},
      {Line(kInput, kConfig, kResult) + "x", "the end of the line"},
      {Line(kInput, kConfig, kResult).substr(0, 60), "found the end of the line"},
  };
  for (const auto& [line, why] : cases) {
    EXPECT_THAT(ParseAutotvmLine(line), StatusIs(StatusCode::kInvalidArgument, HasSubstr(why)))
        << line;
  }
}

TEST(AutotvmLog, LinesAreToldApartByTheirKeys) {
  const std::vector<std::string> lines = RealLines();
  EXPECT_EQ(KindOfLogLine(lines[1]), LogLineKind::kAutotvm);
  EXPECT_EQ(KindOfLogLine(lines[7]), LogLineKind::kAutotvmOld);
  EXPECT_EQ(KindOfLogLine(R"({"v": 0.1, "i": []})"), LogLineKind::kAutotvmOld);
  EXPECT_EQ(KindOfLogLine("llvm -mcpu=x\tgANjdHZtCg==\tgANjdHZtCg==\tgAN=\t0.2\t0.8.dev0"),
            LogLineKind::kAutotvmPickle);
  for (const char* line :
       {R"({"i": [["k", "t"], [[], []]], "r": [[1], 0, 1, 1], "v": "v0.2"})", "", "{", "nonsense",
        R"({"r": [[1], 0, 1, 1], "i": [["k", "t"], [[], []]], "v": "v0.2"})", R"({"i)"}) {
    EXPECT_EQ(KindOfLogLine(line), LogLineKind::kMeasureRecord) << line;
  }
}

TEST(AutotvmLog, FieldsThatNoStoreKeepsAreReported) {
  AutotvmRecord record{.target = "llvm", .task = "t", .costs_s = {1}};
  EXPECT_OK(ValidateAutotvmRecord(record));
  record.costs_s = {-1};
  EXPECT_THAT(ValidateAutotvmRecord(record),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("cost -1 s")));
  record.error = 4;
  EXPECT_OK(ValidateAutotvmRecord(record));
  record.task = "";
  EXPECT_THAT(ValidateAutotvmRecord(record),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("needs a target and a task")));
}

}  // namespace
}  // namespace kiln::store
