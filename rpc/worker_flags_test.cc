#include "rpc/worker_flags.h"

#include <CLI/CLI.hpp>

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

TEST(WorkerFlags, AreReadFromTheCommandLine) {
  CLI::App app;
  WorkerFlags flags;
  AddWorkerFlags(app, flags, "builder");
  EXPECT_EQ(flags.listen, "127.0.0.1:0");
  EXPECT_THAT(app.help(), HasSubstr("reach this builder"));
  for (const char* means : {"namespaces", "seccomp", "Landlock", "control group"}) {
    EXPECT_THAT(app.get_option("--require-sandbox")->get_description(), HasSubstr(means));
  }
  app.parse("--listen 0.0.0.0:9391 --advertise farm:9391 --tracker farm:9190");
  EXPECT_EQ(flags.listen, "0.0.0.0:9391");
  EXPECT_EQ(flags.advertise, "farm:9391");
  EXPECT_EQ(flags.tracker, "farm:9190");
}

TEST(WorkerFlags, TheTrackerIsAnAddressOrNone) {
  WorkerFlags flags;
  EXPECT_OK(CheckWorkerFlags(flags));
  flags.tracker = "farm:9190";
  EXPECT_OK(CheckWorkerFlags(flags));
  flags.tracker = "farm";
  EXPECT_THAT(CheckWorkerFlags(flags), StatusIs(StatusCode::kInvalidArgument, HasSubstr("farm")));
}

TEST(WorkerFlags, ANameIsTheEndOfTheId) {
  WorkerFlags flags;
  EXPECT_EQ(NamedWorkerId("GPU-1f.ab", flags), "GPU-1f.ab");
  flags.name = "kiln-night_7";
  EXPECT_OK(CheckWorkerFlags(flags));
  EXPECT_EQ(NamedWorkerId("GPU-1f.ab", flags), "GPU-1f.ab.kiln-night_7");
}

TEST(WorkerFlags, ANameIsAShortWord) {
  WorkerFlags flags;
  for (const std::string& bad :
       {std::string("two words"), std::string("a.b"), std::string(kLongestWorkerName + 1, 'a')}) {
    flags.name = bad;
    EXPECT_THAT(CheckWorkerFlags(flags), StatusIs(StatusCode::kInvalidArgument, HasSubstr(bad)));
  }
}

}  // namespace
}  // namespace kiln
