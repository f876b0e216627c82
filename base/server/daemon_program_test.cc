#include "base/server/daemon_program.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/file/file.h"
#include "base/log.h"
#include "base/log_format.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

// Facts about a run of a daemon whose work only notes how it was started.
struct Outcome {
  int exit_status = 0;
  bool worked = false;
  LogLevel level = LogLevel::kInfo;
  std::string output, error;
};
Outcome RunWith(std::vector<std::string> words, const Status& result = OkStatus(),
                std::string_view name = "test") {
  words.insert(words.begin(), "kiln_test");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  CLI::App app("Does nothing.", "kiln_test");
  DaemonFlags flags;
  AddDaemonFlags(app, flags);
  Outcome run;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  run.exit_status = RunDaemon(name, app, flags, static_cast<int>(argv.size()), argv.data(), [&] {
    run.worked = true;
    run.level = GetLogLevel();
    LogDebug("at work");
    return result;
  });
  run.output = testing::internal::GetCapturedStdout();
  run.error = testing::internal::GetCapturedStderr();
  SetLogLevel(LogLevel::kInfo);
  SetLogFormat(LogFormat::kText);
  return run;
}

TEST(DaemonProgramTest, WorksAtTheLogLevelAskedFor) {
  EXPECT_EQ(RunWith({}).level, LogLevel::kInfo);
  const Outcome run = RunWith({"--log-level", "error"});
  EXPECT_TRUE(run.worked);
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_EQ(run.level, LogLevel::kError);
  EXPECT_EQ(run.output + run.error, "");
}

TEST(DaemonProgramTest, TakesTheLevelOfTheEnvironmentIfNothingElseNamesOne) {
  setenv("KILN_LOG", "error", 1);
  const LogLevel of_variable = RunWith({}).level;
  const LogLevel of_flag = RunWith({"--log-level", "warn"}).level;
  setenv("KILN_LOG", "loud", 1);
  const Outcome refused = RunWith({});
  setenv("KILN_LOG", "", 1);
  const LogLevel of_empty = RunWith({}).level;
  unsetenv("KILN_LOG");
  EXPECT_EQ(of_variable, LogLevel::kError);
  EXPECT_EQ(of_flag, LogLevel::kWarn);
  EXPECT_FALSE(refused.worked);
  EXPECT_THAT(refused.error, HasSubstr("loud"));
  EXPECT_EQ(of_empty, LogLevel::kInfo);
}

TEST(DaemonProgramTest, LogsInTheFormatAskedFor) {
  EXPECT_THAT(RunWith({"--log-level", "debug"}).error, HasSubstr(" test debug: at work\n"));
  const Outcome run = RunWith({"--log-level", "debug", "--log-format", "json"});
  EXPECT_THAT(run.error, HasSubstr(R"("level":"debug","process":"test","pid":)"));
  EXPECT_THAT(run.error, HasSubstr("\"message\":\"at work\"}\n"));
  const Outcome refused = RunWith({"--log-format", "xml"});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_FALSE(refused.worked);
  EXPECT_THAT(refused.error, HasSubstr("unknown log format 'xml'"));
}

TEST(DaemonProgramTest, AnErrorIsToldUnderItsName) {
  const Outcome run = RunWith({}, NotFound("no such device"));
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_EQ(run.error, "test: no such device\n");
}

TEST(DaemonProgramTest, DoesNotWorkWithoutASoundCommandLine) {
  const Outcome loud = RunWith({"--log-level", "loud"});
  EXPECT_FALSE(loud.worked);
  EXPECT_EQ(loud.exit_status, 1);
  EXPECT_THAT(loud.error, HasSubstr("loud"));
  const Outcome unknown = RunWith({"--no-such-flag"});
  EXPECT_FALSE(unknown.worked);
  EXPECT_EQ(unknown.exit_status, 2);
  EXPECT_EQ(unknown.error, "test: there is no flag --no-such-flag; see kiln_test --help\n");
  EXPECT_EQ(RunWith({"--prot-file", "x"}).error,
            "test: there is no flag --prot-file, did you mean --port-file? See kiln_test --help\n");
  const Outcome help = RunWith({"--help"});
  EXPECT_FALSE(help.worked);
  EXPECT_EQ(help.exit_status, 0);
  EXPECT_THAT(help.output, HasSubstr("--port-file"));
}

TEST(DaemonProgramTest, TakesTheRestFromItsConfigurationFile) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("daemon-program"));
  const std::string file = folder.Join("kiln.toml");
  ASSERT_OK(WriteFile(file, "[tracker]\nlog-level = \"error\"\nlog-format = \"json\"\n"));
  const Outcome run = RunWith({"--config", file, "--log-format", "text"}, OkStatus(), "tracker");
  EXPECT_EQ(run.exit_status, 0) << run.error;
  EXPECT_EQ(run.level, LogLevel::kError);
  EXPECT_EQ(RunWith({"--config", file}, OkStatus(), "runner").level, LogLevel::kInfo);

  ASSERT_OK(WriteFile(file, "[tracker]\nlog-levle = \"error\"\n"));
  const Outcome refused = RunWith({"--config", file}, OkStatus(), "tracker");
  EXPECT_FALSE(refused.worked);
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_EQ(refused.error,
            fmt::format("tracker: {}, line 2: [tracker] has no key \"log-levle\", did you mean "
                        "log-level?\n",
                        file));
  const Outcome none = RunWith({"--config", folder.Join("none.toml")});
  EXPECT_EQ(none.exit_status, 2);
  EXPECT_THAT(none.error, HasSubstr("none.toml"));
}

TEST(DaemonProgramTest, IsHiddenBeforeItReadsASecret) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    DaemonFlags flags;
    CLI::App app;
    std::string name = "test";
    char* argv[] = {name.data(), nullptr};
    _exit(RunDaemon("test", app, flags, 1, argv, [] {
      return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? OkStatus() : Internal("it is not");
    }));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(DaemonProgramTest, WritesOneLinePerPort) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("daemon-program"));
  DaemonFlags flags;
  ASSERT_OK(WritePortFile(flags, {9190}));
  flags.port_file = folder.Join("port");
  ASSERT_OK(WritePortFile(flags, {9190, 9191}));
  ASSERT_OK_AND_ASSIGN(const std::string written, ReadFile(flags.port_file));
  EXPECT_EQ(written, "9190\n9191\n");
  flags.port_file = folder.Join("none/port");
  EXPECT_THAT(WritePortFile(flags, {1}), StatusIs(StatusCode::kNotFound, HasSubstr("none/port")));
}

}  // namespace
}  // namespace kiln
