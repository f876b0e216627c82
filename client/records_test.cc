// kiln records list, delete, import by the real binary, on a database of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "client/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

class RecordsTest : public testing::Test {
 protected:
  Words WithDb(Words words) const {
    words.insert(words.end(), {"--db", db_});
    return words;
  }
  std::string Kiln(Words words) const { return KilnPrints(WithDb(std::move(words))); }
  std::string Error(Words words) const {
    const RunResult result = RunKiln(WithDb(std::move(words)));
    EXPECT_EQ(result.exit.code, 1);
    return result.error;
  }
  std::vector<Json> List(Words more) const {
    Words words = {"records", "list", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    std::istringstream stream(Kiln(words));
    std::vector<Json> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  // Returns the job's id.
  std::string Tune(const std::string& args) const {
    const std::string events = Kiln({"tune", "matmul", "--args", args, "--target", "null",
                                     "--trials", "6", "--policy", "sketch.random", "--json"});
    return Json::parse(events.substr(0, events.find('\n')))["job"];
  }
  // A line for the computation of `record`, with another cost.
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

  TempDir folder_ = *TempDir::Make("records-test");
  const std::string db_ = folder_.Join("kiln.db");
};

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
  EXPECT_THAT(Error({"records", "delete", best}), HasSubstr("1 records of"));
  EXPECT_THAT(List({}), SizeIs(12));
  EXPECT_THAT(Kiln({"records", "delete", best, "--yes"}), HasSubstr("1 records deleted"));
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

TEST_F(RecordsTest, AFileWithoutLinesEndsWithOneSentence) {
  const RunResult result = RunKiln(WithDb({"records", "import", "/dev/zero"}));
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_THAT(result.error, HasSubstr("/dev/zero, line 1: no end in 64 MiB"));
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1);
}

}  // namespace
}  // namespace kiln::client
