// kiln records list, delete, import by the real binary, on a database of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/server/daemon_testing.h"
#include "client/cli/kiln_testing.h"
#include "store/sqlite_store.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using Json = nlohmann::json;

class RecordsTest : public KilnTest {
 protected:
  std::vector<Json> List(Words more) const {
    Words words = {"records", "list", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    std::istringstream stream(Kiln(words));
    std::vector<Json> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  // Tunes a product. Returns the job's id.
  std::string Tune(const std::string& args) const {
    const std::string events = Kiln({"tune", "matmul", "--args", args, "--target", "null",
                                     "--trials", "6", "--policy", "sketch.random", "--json"});
    return Json::parse(events.substr(0, events.find('\n')))["job"];
  }
  // Returns a log line for the computation of `record`, with another cost.
  static std::string Line(const Json& record, double cost_s, int64_t timestamp_s) {
    Json line;
    line["i"] = Json::array();
    line["i"].push_back(Json::array({record["workload_key"], record["target"]}));
    line["i"].push_back(
        Json::array({Json::array(), Json::parse(record["steps"].get<std::string>())}));
    line["r"] = Json::array({Json::array({cost_s}), 0, 0.5, timestamp_s});
    line["v"] = "v0.6";
    return line.dump() + "\n";
  }
};

// Trials 1, 3 and 4 are finalists; trial 3 has the smallest median.
TEST_F(RecordsTest, OfFinalistsThatDoNotDifferOneIsChosenAndTheOthersAreNamed) {
  const std::string job = Tune("32,32,32");
  std::vector<std::string> ids(6);
  for (const Json& record : List({})) ids[record["trial"].get<size_t>()] = record["id"];
  {
    ASSERT_OK_AND_ASSIGN(const auto store, store::OpenSqliteStore(db_));
    std::vector<store::Remeasurement> finalists;
    for (const auto& [trial, cost_s] : {std::pair(1, 1.002e-9), {3, 1.000e-9}, {4, 1.001e-9}}) {
      finalists.push_back({.id = std::stoll(ids[static_cast<size_t>(trial)]),
                           .costs_s = {cost_s},
                           .confidence_s = 2e-12});
    }
    ASSERT_OK(store->SetRemeasurements(finalists));
  }
  const std::string trial = job + "/1";
  EXPECT_THAT(Kiln({"best", job}),
              AllOf(HasSubstr(trial),
                    HasSubstr("trial " + trial + " is not significantly different from trials " +
                              job + "/3, " + job + "/4\n")));
  const Json best = Json::parse(Kiln({"best", job, "--json"}));
  EXPECT_EQ(best["id"], ids[1]);
  EXPECT_EQ(best["equal_record_ids"], Json::array({ids[3], ids[4]}));
  EXPECT_THAT(Kiln({"choice", "query", "matmul", "--args", "32,32,32", "--target", "null"}),
              HasSubstr("trial " + trial));
  EXPECT_THAT(Kiln({"records", "distill"}), HasSubstr("[1.002e-09]"));
}

TEST_F(RecordsTest, AreListedByWhatTheyAreOf) {
  const std::string first = Tune("32,32,32"), second = Tune("16,16,16");
  EXPECT_THAT(List({}), SizeIs(12));
  EXPECT_THAT(List({"--job", second}), SizeIs(6));
  const auto of_first = List({"--op", "matmul", "--args", "32,32,32"});
  ASSERT_THAT(of_first, SizeIs(6));
  for (const Json& record : of_first) EXPECT_EQ(record["job_id"], first);
  EXPECT_THAT(List({"--workload", of_first[0]["workload_id"].get<std::string>()}), SizeIs(6));
  EXPECT_THAT(List({"--target", "nul"}), SizeIs(12));
  EXPECT_THAT(List({"--target", "llvm"}), SizeIs(0));
  EXPECT_THAT(List({"--since", "1h"}), SizeIs(12));
  EXPECT_THAT(List({"--since", "2099-01-01"}), SizeIs(0));
  EXPECT_THAT(List({"--device", "no such device"}), SizeIs(0));
  const auto best = List({"--job", first, "--top", "2"});
  ASSERT_THAT(best, SizeIs(2));
  EXPECT_LE(best[0]["result"]["costs_s"][0], best[1]["result"]["costs_s"][0]);
  EXPECT_EQ(best[0]["id"], Json::parse(Kiln({"best", first, "--json"}))["id"]);
  EXPECT_THAT(Kiln({"records", "list", "--job", first}),
              AllOf(HasSubstr("Record"), HasSubstr("matmul 32,32,32"), HasSubstr(first + "/5")));
  EXPECT_THAT(Error({"records", "list", "--since", "yesterday"}), HasSubstr("is no time"));
  EXPECT_THAT(Error({"records", "list", "--job", "none"}), HasSubstr("there is no job none"));
}

TEST_F(RecordsTest, AreDeletedWhenThatIsConfirmed) {
  const std::string first = Tune("32,32,32"), second = Tune("16,16,16");
  const std::string best = Json::parse(Kiln({"best", first, "--json"}))["id"];
  EXPECT_THAT(Error({"records", "delete"}), HasSubstr("say which records"));
  EXPECT_THAT(Error({"records", "delete", best}), HasSubstr("1 record of"));
  EXPECT_THAT(List({}), SizeIs(12));
  EXPECT_THAT(Kiln({"records", "delete", best, "--yes"}), HasSubstr("1 record deleted"));
  EXPECT_NE(Json::parse(Kiln({"best", first, "--json"}))["id"], best);
  EXPECT_THAT(Error({"records", "delete", best, "--yes"}), HasSubstr("no record " + best));
  EXPECT_THAT(Kiln({"records", "delete", second, "--yes"}), HasSubstr("6 records deleted"));
  EXPECT_THAT(Kiln({"records", "delete", "--target", "null", "--yes"}),
              HasSubstr("5 records deleted"));
  EXPECT_THAT(List({}), SizeIs(0));
  EXPECT_THAT(Error({"records", "delete", "none", "--yes"}), HasSubstr("'none' is no job"));
}

TEST_F(RecordsTest, LinesThatCannotBeAreRefusedByNumber) {
  Tune("32,32,32");
  const Json record = List({})[0];
  const std::string log = folder_.Join("log.json");
  std::string bad_bytes = Line(record, 1e-3, 3);
  bad_bytes.replace(bad_bytes.find("null"), 4, "nu\xffl");
  ASSERT_OK(WriteFile(log, Line(record, 1e-15, 1) + Line(record, 2.0, 2) + bad_bytes));
  const RunResult result = RunKiln(WithDb({"records", "import", log}));
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_THAT(result.output, AllOf(HasSubstr("1 imported"), HasSubstr("2 refused")));
  EXPECT_THAT(result.error, AllOf(HasSubstr("line 1: cost 1e-15 s is not plausible"),
                                  HasSubstr("line 3: it is no valid UTF-8")));
  EXPECT_NE(Json::parse(Kiln({"best", "matmul", "--args", "32,32,32", "--json"}))["job_id"],
            "import");
}

// Returns a log line of somebody who named a computation after a function.
std::string LineOfFunction(const std::string& key, const std::string& steps, int64_t timestamp_s,
                           const std::string& beside = R"("", 0, [])") {
  std::string quoted;
  for (const char c : key) quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
  return fmt::format(
      R"({{"i": [["{}", "llvm -keys=cpu -mcpu=znver4", [2, 64, 64, 0, 0, 0, 0, 0], {}], [[], {}]], "r": [[0.00125], 0, 0.5, {}], "v": "v0.6"}})"
      "\n",
      quoted, beside, steps, timestamp_s);
}
constexpr const char kFunctionKey[] = R"(["wl_matmul", 127, 96, 80])";
constexpr const char kItsSteps[] = R"([["SP", 2, 1, 96, [8], 1], ["AN", 2, 2, 2]])";
constexpr const char kOtherSteps[] = R"([["SP", 2, 0, 64, [8], 1]])";

TEST_F(RecordsTest, AKeyIsBoundToAnOperatorByWhatItsRecordsDo) {
  const std::string log = folder_.Join("log.json");
  ASSERT_OK(WriteFile(log, LineOfFunction(kFunctionKey, kItsSteps, 1) +
                               LineOfFunction(kFunctionKey, kOtherSteps, 2)));
  Kiln({"records", "import", log});
  // Steps are shown even if the computation is not known.
  EXPECT_THAT(Kiln({"show", "1", "--as", "steps"}), HasSubstr(R"(["SP", 2, 1, 96, [8], 1])"));
  EXPECT_THAT(Error({"show", "1"}),
              AllOf(HasSubstr("what its key [\"wl_matmul\", 127, 96, 80] stands for is not known"),
                    HasSubstr("kiln records bind")));
  // The operator is given for one command.
  EXPECT_THAT(Kiln({"show", "1", "--op", "matmul", "--args", "127,96,80"}), HasSubstr("split"));
  EXPECT_THAT(Error({"show", "1", "--op", "matmul", "--args", "96,127,80"}),
              HasSubstr("is no schedule of the operator given: split #0"));
  // No record fits, so nothing is bound.
  EXPECT_THAT(Error({"records", "bind", kFunctionKey, "matmul", "--args", "8,8,8"}),
              HasSubstr("none of the 2 records"));
  EXPECT_THAT(Error({"best", "matmul", "--args", "8,8,8"}), HasSubstr("no successful record"));
  // The binding is kept; spaces in the key do not matter.
  const RunResult bound = RunKiln(
      WithDb({"records", "bind", R"(["wl_matmul",127,96,80])", "matmul", "--args", "127,96,80"}));
  EXPECT_TRUE(bound.exit.ok()) << bound.error;
  EXPECT_THAT(bound.error,
              AllOf(HasSubstr("1 record bound"), HasSubstr("1 record with this key does not fit"),
                    HasSubstr("record 2: split #0 (SP) is of a loop of 64")));
  const Json best = Json::parse(Kiln({"best", "matmul", "--args", "127,96,80", "--json"}));
  EXPECT_EQ(best["id"], "1");
  EXPECT_THAT(best["dag"].get<std::string>(), HasSubstr("[i: 127, j: 96]"));
  EXPECT_THAT(Kiln({"show", kFunctionKey, "--record", "1"}), HasSubstr("split"));
  // Later imports are bound during the import.
  ASSERT_OK(WriteFile(log, LineOfFunction(kFunctionKey, kItsSteps, 3) +
                               LineOfFunction(kFunctionKey, kOtherSteps, 4)));
  const RunResult later = RunKiln(WithDb({"records", "import", log}));
  EXPECT_THAT(later.error, AllOf(HasSubstr("1 line fits"), HasSubstr("1 line does not fit it"),
                                 HasSubstr("line 2: split #0")));
  EXPECT_THAT(List({"--op", "matmul", "--args", "127,96,80"}), SizeIs(2));
}

TEST_F(RecordsTest, AnImportBindsByTheWay) {
  const std::string log = folder_.Join("log.json"), text = folder_.Join("mine.te");
  ASSERT_OK(
      WriteFile(text, Kiln({"show", "--as", "dag", "--op", "matmul", "--args", "127,96,80"})));
  ASSERT_OK(WriteFile(log, LineOfFunction(kFunctionKey, kItsSteps, 1) +
                               LineOfFunction(R"(["f", 8])", kOtherSteps, 2)));
  Kiln({"records", "import", log, "--bind", std::string(kFunctionKey) + "=" + text, "--bind",
        R"(["f", 8]=matmul 64,16,16 relu)"});
  EXPECT_THAT(List({"--op", "matmul", "--args", "127,96,80"}), SizeIs(1));
  EXPECT_THAT(List({"--op", text}), SizeIs(1));
  EXPECT_THAT(List({"--workload", R"(["f",8])"}), SizeIs(1));
  EXPECT_THAT(Error({"records", "import", log, "--bind", "nonsense"}),
              HasSubstr("--bind: found 'nonsense', expected KEY=FILE"));
  EXPECT_THAT(Error({"records", "import", log, "--bind", R"(["g"]=no_such_op 1)"}),
              HasSubstr("unknown operator"));
}

TEST_F(RecordsTest, WhatTvmWouldRefuseIsLeftOutOfLogs) {
  const std::string log = folder_.Join("log.json");
  const char* extended = R"([["SP", 2, 1, 96, [8], 1], ["BF", 2, 2]])";
  ASSERT_OK(WriteFile(
      log, LineOfFunction(kFunctionKey, kItsSteps, 1) + LineOfFunction(kFunctionKey, extended, 2)));
  Kiln({"records", "import", log});
  for (const Words& command : {Words{"records", "export"}, Words{"records", "distill"},
                               Words{"records", "distill", log}}) {
    const RunResult plain = RunKiln(WithDb(command));
    EXPECT_THAT(plain.output, AllOf(HasSubstr("SP"), Not(HasSubstr("BF"))));
    EXPECT_THAT(plain.error, HasSubstr("1 record left out, with steps that TVM does not know"));
  }
  const RunResult all = RunKiln(WithDb({"records", "export", "--extended"}));
  EXPECT_THAT(all.output, HasSubstr("BF"));
  EXPECT_EQ(all.error, "");
}

// The two records have targets of different texts that mean the same.
TEST_F(RecordsTest, TargetsAreComparedByWhatTheyMean) {
  const std::string log = folder_.Join("log.json");
  std::string slower = LineOfFunction(kFunctionKey, kItsSteps, 1);
  const std::string here = "llvm -mattr=-pku -mcpu=znver4 -num-cores=2";
  slower.replace(slower.find("llvm -keys=cpu -mcpu=znver4"), 27, here);
  slower.replace(slower.find("0.00125"), 7, "0.00225");
  ASSERT_OK(WriteFile(log, slower + LineOfFunction(kFunctionKey, kItsSteps, 2)));
  Kiln({"records", "import", log, "--bind", std::string(kFunctionKey) + "=matmul 127,96,80"});
  const Json best = Json::parse(Kiln({"best", "matmul", "--args", "127,96,80", "--json"}));
  EXPECT_EQ(best["id"], "2") << "one row";
  EXPECT_EQ(Json::parse(Kiln({"best", kFunctionKey, "--target", here, "--json"}))["id"], "2");
  EXPECT_THAT(Error({"best", kFunctionKey, "--target", "llvm -mcpu=znver4 -num-cores=64"}),
              HasSubstr("no successful record"));
}

TEST_F(RecordsTest, EachVersionOfTvmFindsARecordByItsKey) {
  Tune("64,48,32");
  const std::string plain = Kiln({"records", "export"});
  const std::string all = Kiln({"records", "export", "--all-keys"});
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'),
            3 * std::count(plain.begin(), plain.end(), '\n'));
  EXPECT_THAT(all, HasSubstr("4498039d22bebcc401f6980d4f42290e")) << "TVM 0.19";
  EXPECT_THAT(plain, Not(HasSubstr("4498039d22bebcc401f6980d4f42290e")));
  // A log with that key belongs to the computation, too.
  const std::string log = folder_.Join("log.json");
  ASSERT_OK(WriteFile(
      log, LineOfFunction(R"(["4498039d22bebcc401f6980d4f42290e", [64, 32], [32, 48], [64, 48]])",
                          "[]", 7)));
  Kiln({"records", "import", log});
  EXPECT_THAT(List({"--op", "matmul", "--args", "64,48,32"}), SizeIs(7));
  EXPECT_THAT(Kiln({"show", "--record", "7"}), HasSubstr("the unscheduled loops"));
}

// Returns a log line with this layout rewrite option.
std::string LineOfLayouts(int option) {
  return LineOfFunction(kFunctionKey, kItsSteps, 1,
                        fmt::format(R"("llvm -mcpu=core-avx2", {}, ["data", "weight"])", option));
}

TEST_F(RecordsTest, CostsOfRewrittenLayoutsAreMarked) {
  const std::string log = folder_.Join("log.json");
  ASSERT_OK(WriteFile(log, LineOfLayouts(1)));
  Kiln({"records", "import", log});
  EXPECT_EQ(Kiln({"records", "export"}), LineOfLayouts(1));
  EXPECT_THAT(Kiln({"best", kFunctionKey}), HasSubstr("its latency is no comparison with others"));
  EXPECT_THAT(Kiln({"records", "stats"}), HasSubstr("left out of Best"));
}

// Weights that were packed before belong to a computation of their own.
TEST_F(RecordsTest, RecordsOfPackedWeightsHaveAKeyOfTheirOwn) {
  const std::string log = folder_.Join("log.json");
  ASSERT_OK(WriteFile(log, LineOfLayouts(2)));
  Kiln({"records", "import", log});
  EXPECT_EQ(Kiln({"records", "export"}), LineOfLayouts(2));
  EXPECT_THAT(Kiln({"best", R"(["wl_matmul", 127, 96, 80, "packed"])"}),
              Not(HasSubstr("no comparison")));
  EXPECT_THAT(Kiln({"records", "stats"}), Not(HasSubstr("left out of Best")));
}

TEST_F(RecordsTest, AFileWithoutLinesEndsWithOneSentence) {
  const RunResult result = RunKiln(WithDb({"records", "import", "/dev/zero"}));
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_THAT(result.error, HasSubstr("/dev/zero, line 1: no end of the line within 4 GiB"));
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1);
}

// ---- logs of autotvm ------------------------------------------------------------------------

std::string AutotvmLine(int index, double cost_s, int error = 0,
                        const std::string& args = R"([["TENSOR", [1, 768], "float32"]])") {
  return fmt::format(
      R"({{"input": ["cuda -keys=cuda,gpu -model=t4", "dense_small_batch.cuda", {}, {{}}], )"
      R"("config": {{"index": {}, "code_hash": null, "entity": [["tile_k", "sp", [-1, 48]]]}}, )"
      R"("result": [[{}], {}, 1.466942548751831, 1609326547.64094], "version": 0.2, )"
      R"("tvm_version": "0.8.dev0"}})"
      "\n",
      args, index, error == 0 ? fmt::format("{}", cost_s) : "1000000000.0", error);
}
constexpr const char kOldAutotvmLine[] =
    R"({"i": ["opencl -device=mali", "topi_nn_conv2d", [], {}, [], {}], "r": [[1], 0, 1, 1], "v": 0.1})"
    "\n";

TEST_F(RecordsTest, AutotvmLogsGoInAndOut) {
  const std::string log = folder_.Join("autotvm.log"), out = folder_.Join("out.log");
  const std::string right = AutotvmLine(1, 5.019791787918519e-06) + AutotvmLine(2, 4e-06);
  const std::string failed = AutotvmLine(3, 0, 1) + AutotvmLine(4, 0, 2) + AutotvmLine(5, 0, 1);
  ASSERT_OK(WriteFile(log, "# a comment\n" + right + failed + kOldAutotvmLine + right));
  const RunResult imported = RunKiln(WithDb({"records", "import", log}));
  EXPECT_TRUE(imported.exit.ok()) << imported.error;
  EXPECT_THAT(imported.output, AllOf(HasSubstr("5 imported"), HasSubstr("2 there already"),
                                     HasSubstr("5 of them are of autotvm")));
  EXPECT_THAT(imported.error, HasSubstr("1 line ignored, of autotvm's version 0.1"));
  EXPECT_EQ(Kiln({"records", "export", "--format", "autotvm"}), right);
  EXPECT_EQ(Kiln({"records", "export", "--format", "autotvm", "--errors"}), right + failed);
  EXPECT_EQ(Kiln({"records", "export"}), "") << "they are no schedules";
  Kiln({"records", "export", "--format", "autotvm", "--workload", "none", "-o", out});
  EXPECT_EQ(*ReadFile(out), "");
  EXPECT_THAT(Error({"records", "export", "--format", "autotvm", "--job", "import"}),
              HasSubstr("are of no job"));
  EXPECT_THAT(Kiln({"records", "stats"}),
              AllOf(HasSubstr("dense_small_batch.cuda"), HasSubstr("2 bad schedule (1)"),
                    HasSubstr("1 compile error (2)"), Not(HasSubstr("Speed"))));
  const Json stats = Json::parse(Kiln({"records", "stats", "--json"}));
  EXPECT_EQ(stats["by_error"], (Json{2, 2, 1, 0, 0, 0, 0, 0, 0}));
}

TEST_F(RecordsTest, AutotvmRecordsAreListedAndTheBestFound) {
  const std::string log = folder_.Join("autotvm.log");
  const std::string other = R"([["TENSOR", [2, 768], "float32"], null, "relu"])";
  ASSERT_OK(WriteFile(log, AutotvmLine(1, 5e-06) + AutotvmLine(2, 4e-06) + AutotvmLine(3, 0, 1) +
                               AutotvmLine(7, 1e-3, 0, other)));
  Kiln({"records", "import", log});
  const std::string all = Kiln({"records", "list"});
  EXPECT_THAT(all, AllOf(HasSubstr("records of autotvm\nTemplate"), HasSubstr("float32[1, 768]"),
                         HasSubstr("float32[2, 768]"), HasSubstr("4.000 us"),
                         Not(HasSubstr("bad schedule")), Not(HasSubstr("Record"))));
  EXPECT_THAT(Kiln({"records", "list", "--errors"}), HasSubstr("bad schedule"));
  EXPECT_THAT(List({"--errors"}), SizeIs(4));
  const auto top = List({"--workload", "dense_small_batch.cuda", "--top", "2"});
  ASSERT_THAT(top, SizeIs(2));
  EXPECT_EQ(top[0]["config_index"], 2);
  EXPECT_EQ(top[0]["args"], Json::parse(R"([["TENSOR", [1, 768], "float32"]])"));
  EXPECT_EQ(top[0]["entity"], Json::parse(R"([["tile_k", "sp", [-1, 48]]])"));
  EXPECT_EQ(top[1]["config_index"], 1);
  EXPECT_THAT(List({"--workload", "conv2d_nchw.cuda"}), SizeIs(0));
  EXPECT_THAT(List({"--target", "llvm"}), SizeIs(0));
  EXPECT_THAT(List({"--since", "2021-06-01"}), SizeIs(0));
  EXPECT_THAT(List({"--until", "2021-06-01"}), SizeIs(3));
  EXPECT_THAT(List({"--job", "import"}), SizeIs(0)) << "they are of no job";
  // Records of schedules are listed beside those of autotvm.
  Tune("32,32,32");
  EXPECT_THAT(List({}), SizeIs(9));
  EXPECT_THAT(Kiln({"records", "list"}),
              AllOf(HasSubstr("Record"), HasSubstr("\n\nrecords of autotvm\nTemplate")));

  EXPECT_THAT(Kiln({"best", "dense_small_batch.cuda"}),
              AllOf(HasSubstr("configuration 2 of float32[1, 768], 4.000 us: tile_k=[-1,48]\n"),
                    HasSubstr("configuration 7 of float32[2, 768], null, relu, 1.000 ms: "),
                    Not(HasSubstr("5.000 us"))));
  EXPECT_EQ(JsonLines(Kiln({"best", "dense_small_batch.cuda", "--json"})).size(), 2u);
  EXPECT_THAT(Error({"best", "dense_small_batch.cuda", "--target", "llvm"}),
              HasSubstr("'dense_small_batch.cuda' is no job"));
}

// Deletion takes exactly the records that list shows for a filter.
TEST_F(RecordsTest, AutotvmRecordsAreDeletedByTheFiltersOfList) {
  const std::string log = folder_.Join("autotvm.log");
  const std::string other = R"([["TENSOR", [2, 768], "float32"]])";
  const std::string right = AutotvmLine(1, 5e-06) + AutotvmLine(2, 4e-06);
  const std::string failed = AutotvmLine(3, 0, 1), far = AutotvmLine(7, 1e-3, 0, other);
  ASSERT_OK(WriteFile(log, right + failed + far));
  Kiln({"records", "import", log});
  const std::string job = Tune("32,32,32");
  for (const Words& none : std::vector<Words>{{"--workload", "conv2d_nchw.cuda"},
                                              {"--target", "llvm"},
                                              {"--since", "2021-06-01", "--target", "cuda"},
                                              {"--job", job, "--target", "cuda"},
                                              {"--device", "cuda", "--target", "cuda"}}) {
    Words words = {"records", "delete", "--yes"};
    words.insert(words.end(), none.begin(), none.end());
    EXPECT_THAT(Error(words), HasSubstr("has no such record"));
  }
  EXPECT_THAT(Error({"records", "delete", "--until", "2999-01-01"}),
              HasSubstr("9 records of " + db_ + " (3 of autotvm) would be deleted: say --yes"));
  Kiln({"records", "delete", "--job", job, "--top", "1", "--yes"});
  Kiln({"records", "delete", job, "--yes"});
  EXPECT_THAT(List({"--errors"}), SizeIs(4)) << "they are of no job";

  EXPECT_EQ(Kiln({"records", "delete", "--workload", "dense_small_batch.cuda", "--top", "1",
                  "--json", "--yes"}),
            "{\"deleted\":1,\"autotvm\":1}\n");
  EXPECT_EQ(Kiln({"records", "export", "--format", "autotvm", "--errors"}),
            AutotvmLine(1, 5e-06) + failed + far);
  EXPECT_THAT(Kiln({"records", "delete", "--target", "cuda", "--until", "2021-06-01", "--yes"}),
              AllOf(HasSubstr("2 records deleted"), HasSubstr("2 of them are of autotvm")));
  EXPECT_EQ(Kiln({"records", "export", "--format", "autotvm", "--errors"}), failed);
  Kiln({"records", "delete", "--errors", "--yes"});
  EXPECT_EQ(Kiln({"records", "export", "--format", "autotvm", "--errors"}), "");
}

TEST_F(RecordsTest, AutotvmRecordsArePrunedByWorkloadAndTarget) {
  const std::string log = folder_.Join("autotvm.log");
  const std::string other = R"([["TENSOR", [2, 768], "float32"]])";
  const std::string best = AutotvmLine(2, 4e-06), second = AutotvmLine(1, 5e-06),
                    far = AutotvmLine(7, 1e-3, 0, other);
  ASSERT_OK(WriteFile(log, second + best + AutotvmLine(3, 0, 1) + far));
  Kiln({"records", "import", log});
  const RunResult asked = RunKiln(WithDb({"db", "prune", "--keep-best", "1"}));
  EXPECT_EQ(asked.exit.code, 1);
  EXPECT_THAT(asked.output,
              AllOf(HasSubstr("Template of autotvm"), HasSubstr("float32[1, 768]"),
                    HasSubstr("float32[2, 768]"), HasSubstr("To delete"), Not(HasSubstr("Task"))));
  EXPECT_THAT(asked.error, HasSubstr("2 records of " + db_ + " (2 of autotvm)"));
  // Other records are pruned beside them, or alone.
  const std::string job = Tune("32,32,32");
  EXPECT_THAT(RunKiln(WithDb({"db", "prune", "--keep-best", "1"})).output,
              AllOf(HasSubstr("Task"), HasSubstr("\n\nTemplate of autotvm")));
  EXPECT_THAT(Kiln({"db", "prune", "--keep-best", "1", "--job", job, "--yes"}),
              AllOf(HasSubstr("4 records deleted"), Not(HasSubstr("autotvm"))))
      << "the unscheduled loops of the job stay";
  EXPECT_THAT(Kiln({"db", "prune", "--older-than", "2021-01-01", "--yes"}),
              HasSubstr("2 records deleted"));
  EXPECT_EQ(Kiln({"records", "export", "--format", "autotvm", "--errors"}), best + far);
  Kiln({"records", "import", log});
  EXPECT_EQ(Kiln({"db", "prune", "--keep-best", "2", "--target", "cuda", "--json", "--yes"}),
            "{\"deleted\":1,\"autotvm\":1}\n");
  EXPECT_THAT(List({"--errors"}), SizeIs(5));
  Kiln({"db", "prune", "--keep-best", "0", "--workload", "dense_small_batch.cuda", "--yes"});
  EXPECT_THAT(List({"--errors"}), SizeIs(2));
}

TEST_F(RecordsTest, AutotvmRecordsAreDeletedThroughAScheduler) {
  const std::string log = folder_.Join("autotvm.log");
  ASSERT_OK(WriteFile(log, AutotvmLine(1, 5e-06) + AutotvmLine(2, 4e-06) + AutotvmLine(3, 3e-06)));
  Kiln({"records", "import", log});
  DaemonProcess scheduler(
      kKiln, {"scheduler", "--log-level", "error", "--tracker", "127.0.0.1:9", "--db", db_});
  ASSERT_OK(scheduler.Start());
  const auto kiln = [&](Words words) {
    words.insert(words.end(), {"--scheduler", scheduler.address()});
    return KilnPrints(words);
  };
  EXPECT_THAT(kiln({"records", "delete", "--target", "cuda", "--top", "1", "--yes"}),
              HasSubstr("1 of them is of autotvm"));
  EXPECT_THAT(kiln({"db", "prune", "--keep-best", "1", "--yes"}), HasSubstr("1 record deleted"));
  EXPECT_EQ(kiln({"records", "export", "--format", "autotvm"}), AutotvmLine(2, 4e-06));
  ASSERT_OK(scheduler.Stop().status());
}

TEST_F(RecordsTest, ASecondClientIsToldOfTheSchedulerThatHasTheDatabase) {
  DaemonProcess scheduler(
      kKiln, {"scheduler", "--log-level", "error", "--tracker", "127.0.0.1:9", "--db", db_});
  ASSERT_OK(scheduler.Start());
  EXPECT_THAT(
      Error({"tune", "matmul", "--args", "8,8,8", "--target", "null", "--trials", "1"}),
      AllOf(HasSubstr("is in use by a kiln scheduler, process"), HasSubstr("--listen 127.0.0.1:"),
            HasSubstr("use it with --scheduler HOST:PORT")));
  ASSERT_OK(scheduler.Stop().status());
}

TEST_F(RecordsTest, ATrackerWithoutWorkersSaysWhatToStart) {
  DaemonProcess tracker(kKiln, {"tracker", "--log-level", "error"});
  ASSERT_OK(tracker.Start());
  const std::string said = KilnPrints({"workers", "--tracker", tracker.address()});
  EXPECT_THAT(said,
              AllOf(HasSubstr("no workers: start kiln builder and kiln runner with --tracker " +
                              tracker.address()),
                    Not(HasSubstr("queue")), Not(HasSubstr("---"))));
  ASSERT_OK(tracker.Stop().status());
}

// A scheduler answers for its tracker, also where its address is given as that of a tracker.
TEST_F(RecordsTest, AListOfWorkersSaysWhoAnswers) {
  DaemonProcess tracker(kKiln, {"tracker", "--log-level", "error"});
  ASSERT_OK(tracker.Start());
  DaemonProcess scheduler(
      kKiln, {"scheduler", "--log-level", "error", "--tracker", tracker.address(), "--db", db_});
  ASSERT_OK(scheduler.Start());
  const auto first_line = [](const Words& words) {
    const std::string said = KilnPrints(words);
    return said.substr(0, said.find('\n'));
  };
  EXPECT_EQ(first_line({"workers", "--tracker", tracker.address()}),
            "tracker " + tracker.address());
  const std::string address = scheduler.address();
  for (const char* flag : {"--tracker", "--scheduler"}) {
    EXPECT_EQ(first_line({"workers", flag, address}), "scheduler " + address);
  }
  ASSERT_OK(scheduler.Stop().status());
  EXPECT_THAT(Refused({"workers", "--scheduler", address}),
              HasSubstr("cannot reach a scheduler at " + address));
  ASSERT_OK(tracker.Stop().status());
}

TEST_F(RecordsTest, AVersionThatIsNotKnownIsSaid) {
  Tune("32,32,32");
  std::string line = Line(List({})[0], 1e-3, 1);
  line.replace(line.find("v0.6"), 4, "v0.9");
  const std::string log = folder_.Join("log.json");
  ASSERT_OK(WriteFile(log, line));
  for (const Words& words : {Words{"records", "import", log}, Words{"records", "distill", log}}) {
    const RunResult result = RunKiln(WithDb(words));
    EXPECT_TRUE(result.exit.ok()) << result.error;
    EXPECT_THAT(result.error,
                HasSubstr("1 line of a version that is not known, the first is line 1, of v0.9"));
  }
}

TEST_F(RecordsTest, ConfigurationsOfTemplatesAreListed) {
  const std::string events =
      Kiln({"tune", "--template", "dense", "--args", "16,16,16", "--target", "null", "--trials",
            "3", "--policy", "template.random", "--json"});
  const std::string job = JsonLines(events)[0]["job"];
  EXPECT_THAT(Kiln({"records", "list", "--job", job}),
              AllOf(HasSubstr("\nrecord "), HasSubstr(": template dense, config "),
                    testing::ContainsRegex("config [0-9]+: .*tile_i=\\[-1,[0-9]")));
  for (const Json& record : List({"--job", job})) {
    const std::string trial = fmt::format("{}/{}", job, record["trial"].get<int>());
    const bool is_one = record["origin"].get<std::string>().starts_with("template dense");
    EXPECT_EQ(Kiln({"best", trial}).find("trial " + trial + ": template dense, config ") !=
                  std::string::npos,
              is_one)
        << record;
  }
}

TEST_F(RecordsTest, TheBestOfAutotvmAreDistilled) {
  const std::string log = folder_.Join("autotvm.log");
  const std::string other = AutotvmLine(7, 1e-3, 0, R"([["TENSOR", [2, 768], "float32"]])");
  ASSERT_OK(WriteFile(log, AutotvmLine(1, 5e-06) + AutotvmLine(2, 4e-06) + AutotvmLine(3, 0, 1) +
                               kOldAutotvmLine + other));
  EXPECT_EQ(Kiln({"records", "distill", log}), AutotvmLine(2, 4e-06) + other);
  Kiln({"records", "import", log});
  EXPECT_EQ(Kiln({"records", "distill", "--format", "autotvm"}), AutotvmLine(2, 4e-06) + other);
  EXPECT_EQ(Kiln({"records", "distill"}), "");
}

// ---- merging --------------------------------------------------------------------------------

TEST_F(RecordsTest, DatabasesAndLogsAreMerged) {
  const std::string here = Tune("32,32,32");
  const std::string other_db = folder_.Join("other.db"), log = folder_.Join("log.json");
  const std::string more_log = folder_.Join("more.json");
  const std::string events =
      KilnPrints({"tune", "matmul", "--args", "16,16,16", "--target", "null", "--trials", "6",
                  "--policy", "sketch.random", "--json", "--db", other_db});
  const std::string there = Json::parse(events.substr(0, events.find('\n')))["job"];
  const Json record = List({})[0];
  ASSERT_OK(WriteFile(log, Line(record, 1e-3, 1) + Line(record, 2e-3, 2)));
  ASSERT_OK(WriteFile(more_log, Line(record, 2e-3, 2) + Line(record, 3e-3, 3)));
  const std::string first = Kiln({"records", "import", other_db, log, more_log});
  EXPECT_THAT(first, AllOf(HasSubstr("1 job and 6 records merged"), HasSubstr("2 imported"),
                           HasSubstr("1 imported"), HasSubstr("1 there already")));
  EXPECT_THAT(List({"--job", there}), SizeIs(6));
  EXPECT_THAT(List({"--job", here}), SizeIs(6));
  EXPECT_THAT(List({"--job", "import"}), SizeIs(3));
  EXPECT_THAT(Kiln({"show", there, "--as", "schedule"}), HasSubstr("trial " + there));
  EXPECT_THAT(Kiln({"records", "import", other_db, log, more_log}),
              AllOf(HasSubstr("0 jobs and 0 records merged"), HasSubstr("there already: 6")));
  EXPECT_THAT(Error({"records", "import", db_}), HasSubstr("is the database itself"));
  const Json merged = Json::parse(Kiln({"records", "import", other_db, "--json"}));
  EXPECT_EQ(merged["duplicates"], 6);
  EXPECT_EQ(merged["conflicts"], 0);
}

TEST_F(RecordsTest, ALogThatIsNotThereMakesNoDatabase) {
  EXPECT_THAT(Error({"records", "import", folder_.Join("none")}), HasSubstr("No such file"));
  EXPECT_FALSE(FileExists(db_));
}

// ---- by query -------------------------------------------------------------------------------

TEST_F(RecordsTest, AreListedByTimeAndByDistance) {
  Tune("64,32,32");
  Tune("32,32,32");
  EXPECT_THAT(List({"--until", "2000-01-01"}), SizeIs(0));
  EXPECT_THAT(List({"--since", "1h", "--until", "2099-01-01"}), SizeIs(12));
  const Words near = {"--op", "matmul", "--args", "64,32,32"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), near.begin(), near.end());
    return more;
  };
  EXPECT_THAT(List(near), SizeIs(6));
  EXPECT_THAT(List(with({"--distance", "1"})), SizeIs(6));
  // Inputs and output are each twice as large.
  EXPECT_THAT(List(with({"--distance", "4"})), SizeIs(12));
  EXPECT_THAT(List(with({"--distance", "3.9"})), SizeIs(6));
  EXPECT_THAT(List({"--op", "matmul", "--args", "32,32,32", "--distance", "100"}), SizeIs(6))
      << "32 is no multiple of 64";
  const auto top = List(with({"--distance", "4", "--top", "3"}));
  EXPECT_THAT(top, SizeIs(3));
  std::vector<std::string> words = {"records", "list"};
  const Words more = with({"--distance", "4"});
  words.insert(words.end(), more.begin(), more.end());
  EXPECT_THAT(Kiln(words), AllOf(HasSubstr("Distance"), HasSubstr("  4  "), HasSubstr("  1  ")));
  EXPECT_THAT(Error({"records", "list", "--distance", "2"}), HasSubstr("is from a workload"));
}

TEST_F(RecordsTest, CurvesAreDrawn) {
  const std::string first = Tune("32,32,32"), second = Tune("16,16,16");
  const std::string text = Kiln({"records", "curve", first});
  EXPECT_THAT(text, AllOf(HasSubstr(first + " matmul 32,32,32"), HasSubstr("Trials"),
                          HasSubstr("6 trials")));
  const std::string svg = folder_.Join("curve.svg");
  Kiln({"records", "curve", first, second, "-o", svg});
  EXPECT_THAT(*ReadFile(svg), AllOf(HasSubstr("<svg "), HasSubstr(first), HasSubstr(second)));
  const std::string json = Kiln({"records", "curve", first, "--json"});
  const Json point = Json::parse(json.substr(0, json.find('\n')));
  EXPECT_EQ(point["job"], first);
  EXPECT_GT(point["best_s"], 0);
  EXPECT_EQ(point["task"], nullptr);
  // A job of one task has one line.
  EXPECT_EQ(Kiln({"records", "curve", first, "--each-task", "--json"}), json);
  EXPECT_THAT(Error({"records", "curve", "none"}), HasSubstr("there is no job none"));
  EXPECT_THAT(Error({"records", "curve", first, "--task", "1"}), HasSubstr("has the tasks 0 to 0"));
  const std::string log = folder_.Join("log.json");
  ASSERT_OK(WriteFile(log, Line(List({})[0], 1e-3, 1)));
  Kiln({"records", "import", log});
  EXPECT_THAT(Error({"records", "curve", "import"}), HasSubstr("has no tasks"));
  EXPECT_THAT(Error({"tune", "--resume", "import"}), HasSubstr("has no tasks to go on with"));
}

TEST_F(RecordsTest, ArePrunedAfterItWasSaidWhatGoes) {
  const std::string first = Tune("32,32,32");
  Tune("16,16,16");
  EXPECT_THAT(Error({"db", "prune"}), HasSubstr("say what goes"));
  const RunResult asked = RunKiln(WithDb({"db", "prune", "--keep-best", "2"}));
  EXPECT_EQ(asked.exit.code, 1);
  EXPECT_THAT(asked.output, AllOf(HasSubstr("matmul 32,32,32"), HasSubstr("To delete")));
  EXPECT_THAT(asked.error, HasSubstr("7 records of"));
  EXPECT_THAT(List({"--errors"}), SizeIs(12));
  EXPECT_THAT(Kiln({"db", "prune", "--older-than", "1h", "--yes"}), HasSubstr("0 records deleted"));
  const std::string best = Json::parse(Kiln({"best", first, "--json"}))["id"];
  EXPECT_THAT(Kiln({"db", "prune", "--keep-best", "2", "--job", first, "--yes"}),
              HasSubstr("3 records deleted"))
      << "the unscheduled loops of the job stay";
  EXPECT_THAT(List({"--errors"}), SizeIs(9));
  EXPECT_EQ(Json::parse(Kiln({"best", first, "--json"}))["id"], best);
  EXPECT_THAT(Kiln({"db", "prune", "--keep-best", "1", "--yes"}), HasSubstr("6 records deleted"));
  EXPECT_THAT(List({"--errors"}), SizeIs(3));
  EXPECT_THAT(Kiln({"db", "prune", "--keep-best", "1", "--yes"}), HasSubstr("0 records deleted"));
}

}  // namespace
}  // namespace kiln::client
