// Traces of trials and jobs, by the real binary.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

constexpr int kTrials = 12;

class TraceTest : public KilnTest {
 protected:
  // Returns the job's id.
  std::string Tune() const {
    const std::string events =
        Kiln({"tune", "matmul", "--args", "32,32,32", "--target", "null", "--policy",
              "sketch.random", "--trials", std::to_string(kTrials), "--json"});
    return JsonLines(events)[0]["job"];
  }
};

TEST_F(TraceTest, ATrialIsATableOfItsSteps) {
  const std::string job = Tune();
  const std::string text = Kiln({"trace", job + "/3"});
  EXPECT_THAT(text, StartsWith("trial " + job + "/3, built by "));
  EXPECT_THAT(text, AllOf(HasSubstr("\nwait for a builder "), HasSubstr("\nbuild "),
                          HasSubstr("\nwait for a runner "), HasSubstr("\nrun "),
                          HasSubstr("\nwait for the commit ")));
  // A program that the builder has in its cache has no phases.
  std::string all;
  for (int i = 0; i < kTrials; ++i) all += Kiln({"trace", fmt::format("{}/{}", job, i)});
  EXPECT_THAT(all, HasSubstr("\n  instantiate "));
  const Json json = Json::parse(Kiln({"trace", job + "/3", "--json"}));
  EXPECT_EQ(json["trace_id"].get<std::string>().size(), 32u);
  double within = 0;
  for (const Json& step : json["steps"]) {
    if (step["within"] == "") within += step["seconds"].get<double>();
  }
  EXPECT_NEAR(within, json["seconds"].get<double>(), 1e-5);
}

TEST_F(TraceTest, AJobIsAFileForViewers) {
  const std::string job = Tune();
  const std::string path = folder_.Join("job.json");
  const RunResult result = RunKiln(WithDb({"trace", job, "-o", path}));
  EXPECT_EQ(result.exit.code, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("12 trials written to "));
  const Json file = Json::parse(*ReadFile(path));
  std::map<int, std::string> groups;
  std::map<std::string, std::set<std::string>> trials;
  int rounds = 0, counters = 0;
  for (const Json& event : file["traceEvents"]) {
    const std::string kind = event["ph"], name = event["name"];
    const int group = event["pid"];
    if (name == "process_name") groups[group] = event["args"]["name"].get<std::string>();
    if (kind == "C") ++counters;
    if (kind == "X" && name.starts_with("round ")) ++rounds;
    if (kind == "X" && name.starts_with("trial ")) {
      trials[groups.at(group).substr(0, groups.at(group).find(' '))].insert(name);
    }
  }
  EXPECT_EQ(trials["builder"].size(), size_t{kTrials});
  EXPECT_EQ(trials["runner"].size(), size_t{kTrials});
  EXPECT_GT(rounds, 0);
  EXPECT_GT(counters, 0);
  EXPECT_EQ(Kiln({"trace", job, "-o", "-"}), *ReadFile(path));
}

TEST_F(TraceTest, WhatHasNoTraceIsRefusedWithAdvice) {
  const std::string job = Tune();
  EXPECT_THAT(Error({"trace", job}), HasSubstr("trace " + job + " -o job.json"));
  EXPECT_THAT(Error({"trace", job + "/3", "-o", "x.json"}), HasSubstr("expected -o with a job"));
  EXPECT_THAT(Error({"trace", job + "/99"}), HasSubstr("99"));
  EXPECT_THAT(Error({"trace", "nojob", "-o", folder_.Join("x.json")}), HasSubstr("nojob"));
  EXPECT_FALSE(FileExists(folder_.Join("x.json")));
  const std::string log = folder_.Join("log.json");
  Kiln({"records", "export", "-o", log});
  const std::string other = folder_.Join("other.db");
  KilnPrints({"records", "import", log, "--db", other});
  EXPECT_THAT(Refused({"trace", "import/0", "--db", other}), HasSubstr("has no instants"));
  EXPECT_THAT(Refused({"trace", "import", "-o", folder_.Join("x.json"), "--db", other}),
              HasSubstr("no trial of job import has instants"));
  EXPECT_FALSE(FileExists(folder_.Join("x.json")));
}

}  // namespace
}  // namespace kiln::client
