// The lists of kiln, by the real binary, fit 80 columns whatever names they have, in a pipe too,
// and no column is left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kLongTarget[] =
    "llvm -mattr=+adx,+aes,+avx,+avx2,+bmi,+bmi2,+f16c,+fma -mcpu=sapphirerapids";

class EightyColumnsTest : public KilnTest {
 protected:
  // Imports a record of a log, whose name is its key.
  void ImportLongNames() const {
    const std::string key =
        R"([\"0f1e2d3c4b5a69788796a5b4c3d2e1f0\", [1, 56, 56, 64], [3, 3, 64, 64], [1, 56, 56, 64]])";
    const std::string log = folder_.Join("log.json");
    KILN_CHECK(WriteFile(log, "{\"i\": [[\"" + key + "\", \"" + kLongTarget +
                                  "\", [2, 64, 64, 0, 0, 0, 0, 0], \"\", 0, []], [[], []]], \"r\": "
                                  "[[0.001], 0, 0.5, 1691392900], \"v\": \"v0.6\"}\n")
                   .ok());
    Kiln({"records", "import", log});
  }
};

void ExpectFits(const std::string& text, const std::string& header) {
  std::istringstream lines(text);
  bool has_header = false;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    if (line.compare(begin, header.size(), header) == 0) {
      has_header = true;
      EXPECT_THAT(line, Not(HasSubstr("..."))) << "all columns";
    }
  }
  EXPECT_TRUE(has_header) << text;
}

TEST_F(EightyColumnsTest, RecordsAndBest) {
  ImportLongNames();
  Kiln({"tune", "conv2d_nchw", "--args", "1,7,7,512,512,3,3,1,1", "--epilogue", "bias,relu",
        "--target", "null", "--trials", "3"});
  const std::string list = Kiln({"records", "list"}), best = Kiln({"best"}),
                    imported = Kiln({"best", "import"});
  ExpectFits(list, "Record  Task");
  ExpectFits(best, "Trial");
  ExpectFits(imported, "Trial");
  // Targets are shortened, and names continue in further lines.
  EXPECT_THAT(list, AllOf(HasSubstr("llvm"), HasSubstr("conv2d_nchw"), Not(HasSubstr("mattr"))));
  EXPECT_THAT(best, HasSubstr("bias + relu"));
  EXPECT_THAT(imported, Not(HasSubstr("mattr")));
  // kiln show prints the whole target.
  EXPECT_THAT(Kiln({"records", "list", "--json"}), HasSubstr(kLongTarget));
}

TEST_F(EightyColumnsTest, JobsAndFindings) {
  ImportLongNames();
  Kiln({"tune", "conv2d_nchw", "--args", "1,7,7,512,512,3,3,1,1", "--epilogue", "bias,relu",
        "--target", "null", "--trials", "3", "--fault", "1:compiler-crash"});
  const std::string jobs = Kiln({"jobs"}), doctor = RunKiln({"doctor", "--db", db_}).output;
  ExpectFits(jobs, "Job ");
  EXPECT_THAT(jobs, AllOf(HasSubstr("conv2d_nchw"), HasSubstr("relu\n"), HasSubstr("succeeded, 1"),
                          HasSubstr("error")));
  // Findings continue in further lines and are not cut.
  ExpectFits(doctor, "What");
  EXPECT_THAT(doctor, AllOf(HasSubstr("calibrate"), Not(HasSubstr("..."))));
}

TEST_F(EightyColumnsTest, TasksAndOperators) {
  for (const char* network : {"network:resnet-18", "network:bert-base"}) {
    const std::string tasks = KilnPrints({"tasks", network});
    ExpectFits(tasks, "ID  Weight  Task");
  }
  const std::string ops = KilnPrints({"ops"});
  ExpectFits(ops, "matrix products");
  EXPECT_THAT(ops, HasSubstr("matmul  --args M,N,K"));
}

TEST_F(EightyColumnsTest, SummariesAreShortAndQuietOnesHaveNoLoops) {
  const Words tune = {"tune",     "conv2d_nchw",  "--args",   "1,7,7,32,32,3,3,1,1",
                      "--target", "null",         "--trials", "8",
                      "--policy", "sketch.random"};
  const std::string said = Kiln(tune);
  const size_t loops = said.find("loops of trial");
  ASSERT_NE(loops, std::string::npos) << said;
  const std::string rest = said.substr(said.find('\n', loops) + 1);
  const std::string text = rest.substr(0, rest.find("\n\n"));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 12) << text;
  ExpectFits(text + "\nend", "end");
  EXPECT_THAT(said, Not(HasSubstr(".split(")));
  Words quiet = tune;
  quiet.emplace_back("--quiet");
  EXPECT_THAT(Kiln(quiet), AllOf(HasSubstr("  best "), Not(HasSubstr("loops of")),
                                 Not(HasSubstr(".split(")), Not(HasSubstr("for "))));
}

}  // namespace
}  // namespace kiln::client
