// kiln records ship by the real binary: a file of the best records, and the commands that ask it
// after the user's own records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

class ShippedTest : public KilnTest {
 protected:
  // Tunes a product for this machine's CPU, and ships the best record.
  void Ship() const {
    Kiln({"tune", "matmul", "--args", "32,32,32", "--target", "llvm", "--trials", "8", "--policy",
          "sketch.random", "--min-repeat-ms", "1", "--quiet"});
    KilnPrints({"records", "ship", db_, "-o", file_});
  }
  // Adds the file and a database that has nothing.
  Words Elsewhere(Words words) const {
    words.insert(words.end(), {"--db", folder_.Join("none.db"), "--default-records", file_});
    return words;
  }
  std::string Compiled(Words words) const {
    words.insert(words.begin(),
                 {"compile", "matmul", "--args", "32,32,32", "--target", "llvm", "-o", net_});
    return KilnPrints(words);
  }

  const std::string file_ = folder_.Join("best.records"), net_ = folder_.Join("net.kiln");
};

TEST_F(ShippedTest, TheyAreUsedWhereOwnRecordsKnowNothing) {
  Ship();
  const Json own = Json::parse(Kiln({"best", "matmul", "--args", "32,32,32", "--json"}));
  const std::string device = own["result"]["device"];
  const Words best = {"best", "matmul", "--args", "32,32,32"};
  EXPECT_THAT(KilnPrints(Elsewhere(best)),
              HasSubstr("trial shipped/0 is from the records of " + file_ + ", measured on "));
  EXPECT_THAT(KilnPrints(Elsewhere({"show", "shipped/0"})),
              AllOf(HasSubstr("# trial shipped/0, "), HasSubstr("split")));
  EXPECT_THAT(KilnPrints(Elsewhere(
                  {"choice", "query", "matmul", "--args", "32,32,32", "--target", "llvm"})),
              HasSubstr("schedule  from the records of " + file_));

  EXPECT_THAT(Compiled(Elsewhere({})),
              AllOf(HasSubstr("1 kernel tuned: "),
                    HasSubstr("1 kernel with a schedule from the records of " + file_ +
                              ", measured on " + device + "\n")));
  KilnPrints({"verify", net_});
  const Json kernel = JsonLines(Compiled(Elsewhere({"--json"})))[0];
  EXPECT_EQ(kernel["record"], "shipped/0");
  EXPECT_EQ(kernel["source"], "tuned");
}

TEST_F(ShippedTest, OwnRecordsGoFirstAndAFlagLeavesTheShippedOnesOut) {
  Ship();
  const Json kernel = JsonLines(Compiled(WithDb({"--default-records", file_, "--json"})))[0];
  EXPECT_NE(kernel["record"], "shipped/0");
  EXPECT_EQ(kernel["source"], "tuned");
  const std::string none = folder_.Join("none.db");
  EXPECT_THAT(Compiled({"--no-default-records", "--db", none}),
              AllOf(HasSubstr("not tuned"), Not(HasSubstr("records of"))));
  EXPECT_THAT(
      Refused({"best", "matmul", "--args", "32,32,32", "--no-default-records", "--db", none}),
      HasSubstr("no database at"));
  EXPECT_THAT(Refused(Elsewhere({"best", "matmul", "--args", "48,48,48"})),
              HasSubstr("no successful record"));
  EXPECT_THAT(Refused(Elsewhere({"best", "matmul", "--no-default-records"})),
              HasSubstr("--default-records"));
}

TEST_F(ShippedTest, TheFileReadsAsALog) {
  Ship();
  const std::string log = folder_.Join("log.json");
  KilnPrints({"records", "distill", file_, "--extended", "-o", log});
  const std::vector<Json> lines = JsonLines(*ReadFile(log));
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_FALSE(lines[0]["i"][1][1].empty());
  const std::string other = folder_.Join("other.db");
  KilnPrints({"records", "import", log, "--db", other});
  EXPECT_THAT(JsonLines(KilnPrints({"records", "list", "--json", "--db", other})), SizeIs(1));
}

TEST_F(ShippedTest, WhatCannotBeShippedIsRefusedWithTheReason) {
  EXPECT_THAT(Refused({"records", "ship", folder_.Join("none.db"), "-o", file_}),
              HasSubstr("no database at"));
  Ship();
  EXPECT_THAT(Error({"records", "ship", "--device", "no such device", "-o", file_}),
              HasSubstr("no record to ship of a device no such device"));
  EXPECT_THAT(Error({"records", "ship", "--network", "resnet-18", "-o", file_}),
              HasSubstr("no record to ship of the network resnet-18"));
  File("best.records", "kiln-records 7 0\n");
  EXPECT_THAT(Refused(Elsewhere({"best", "matmul", "--args", "32,32,32"})),
              HasSubstr("version 7 of the format"));
  File("best.records", "SQLite format 3");
  EXPECT_THAT(Refused(Elsewhere({"best", "matmul", "--args", "32,32,32"})),
              HasSubstr("expected a file of kiln records ship"));
}

}  // namespace
}  // namespace kiln::client
