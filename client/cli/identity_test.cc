// Computations that share a workload key, in one database, by the real binary: an answer about one
// of them never comes from the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

class IdentityTest : public KilnTest {
 protected:
  std::string Kiln(Words words, const Words& of) const {
    words.insert(words.end(), of.begin(), of.end());
    return KilnTest::Kiln(std::move(words));
  }
  // Tunes a computation. Returns the job's id.
  std::string Tune(const Words& of) const {
    std::istringstream events(Kiln(
        {"tune", "--target", "null", "--trials", "6", "--policy", "sketch.random", "--json"}, of));
    std::string first;
    std::getline(events, first);
    return Json::parse(first)["job"];
  }
  Json Best(const Words& of) const { return Json::parse(Kiln({"best", "--json"}, of)); }
};

TEST_F(IdentityTest, PoolsOfTwoSizes) {
  const Words small = {"max_pool2d_nhwc", "--args", "1,35,35,64,2,2,2,0"};
  const Words large = {"max_pool2d_nhwc", "--args", "1,35,35,64,3,3,2,0"};
  const std::string first = Tune(small);
  EXPECT_THAT(Error({"best", large[0], large[1], large[2]}), HasSubstr("no successful record"));
  const std::string second = Tune(large);
  const Json a = Best(small), b = Best(large);
  ASSERT_EQ(a["workload_key"], b["workload_key"]) << "or there is nothing to tell apart";
  EXPECT_EQ(a["job_id"], first);
  EXPECT_EQ(b["job_id"], second);
  EXPECT_THAT(b["dag"].get<std::string>(), HasSubstr(": 3"));
  EXPECT_THAT(Kiln({"show", "--as", "dag"}, large), HasSubstr(b["dag"].get<std::string>()));

  // The key alone means both computations: both are listed, and none is picked.
  const std::string key = a["workload_key"];
  EXPECT_THAT(Kiln({"best"}, {key}),
              AllOf(HasSubstr("2 computations have this key"), HasSubstr(small[2]),
                    HasSubstr(large[2]), HasSubstr(a["workload_id"].get<std::string>())));
  EXPECT_THAT(Error({"show", key}),
              AllOf(HasSubstr("fits 2 computations"), HasSubstr(small[2]), HasSubstr(large[2])));
  EXPECT_EQ(Best({b["workload_id"].get<std::string>()})["id"], b["id"]);
  EXPECT_THAT(Kiln({"records", "stats"}, {}), AllOf(HasSubstr(small[2]), HasSubstr(large[2])));
}

TEST_F(IdentityTest, MatmulsOfFourTypes) {
  const Words types = {"float32", "float64", "int32", "int64"};
  const auto matmul = [](const std::string& type) {
    return Words{"matmul", "--args", "32,32,32", "--dtype", type};
  };
  for (const std::string& type : types) Tune(matmul(type));
  for (const std::string& type : types) {
    EXPECT_THAT(Best(matmul(type))["dag"].get<std::string>(), HasSubstr(": " + type + "[32, 32]"));
    const std::string table = Kiln({"best"}, matmul(type));
    EXPECT_THAT(table, Not(HasSubstr("computations have this key")));
  }
}

// A log has no more than the key.
TEST_F(IdentityTest, ALogWhoseKeyFitsSeveralComputationsIsBoundToNone) {
  const auto file = [&](const std::string& name, int extent) {
    const std::string path = folder_.Join(name);
    EXPECT_OK(WriteFile(path, fmt::format("input A: float32[64, 8]\n"
                                          "S[i: 64] = sum(k: {}) A[i, k % 8] * 0.5\n",
                                          extent)));
    return path;
  };
  const std::string quick = file("quick.te", 10), slow = file("slow.te", 20'000);
  Tune({quick});
  const std::string log = folder_.Join("log.json");
  Kiln({"records", "export", "-o"}, {log});
  Json line = Json::parse(ReadFile(log)->substr(0, ReadFile(log)->find('\n')));
  // The fastest cost of all.
  line["r"][0][0] = 2e-9;
  line["r"][3] = 1;
  ASSERT_OK(WriteFile(log, line.dump() + "\n"));
  Kiln({"records", "import"}, {log});
  EXPECT_EQ(Best({quick})["job_id"], "import") << "one computation has this key so far";
  const std::string second = Tune({slow});
  EXPECT_EQ(Best({slow})["job_id"], second);
  EXPECT_NE(Best({quick})["job_id"], "import");
}

}  // namespace
}  // namespace kiln::client
