// `kiln farm` by the real binary, on the null target: one farm from its start to its end, and what
// is left of it when its processes are killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/process/process_identity.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using Json = nlohmann::json;

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1500; ++i) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return condition();
}

class FarmTest : public KilnTest {
 protected:
  ~FarmTest() override { RunKiln({"farm", "down", "--folder", farm_}); }

  Words Farm(const std::string& command, const Words& more = {}) const {
    Words words = {"farm", command, "--folder", farm_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Words UpWords(const Words& more = {}) const {
    Words words = Farm("up", {"--device", "null", "--workers", "1"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Json Status() const {
    const RunResult result = RunKiln(Farm("status", {"--json"}));
    return Json::parse(result.output, nullptr, false);
  }
  // Returns the processes of the farm, the supervisor first.
  std::vector<ProcessIdentity> Processes() const {
    const Json status = Status();
    std::vector<ProcessIdentity> processes = {*IdentifyProcess(status["supervisor"])};
    for (const Json& process : status["processes"]) {
      processes.push_back(*IdentifyProcess(process["pid"]));
    }
    return processes;
  }
  // Returns the words that make a command use the farm.
  Words Use(Words words) const {
    const Json status = Status();
    for (const Json& process : status["processes"]) {
      if (process["name"] != "scheduler") continue;
      words.insert(words.end(), {"--scheduler", process["addresses"][0].get<std::string>(),
                                 "--secret-file", farm_ + "/secret"});
    }
    return words;
  }
  static bool AllEnded(const std::vector<ProcessIdentity>& processes) {
    return Eventually([&] {
      return std::none_of(processes.begin(), processes.end(),
                          [](const ProcessIdentity& process) { return IsRunning(process); });
    });
  }
  // A task that was tuned before takes no trials.
  void TuneOnFarm(const std::string& shape) const {
    EXPECT_THAT(KilnPrints(Use({"tune", "matmul", "--args", shape, "--target", "null", "--trials",
                                "3", "--policy", "sketch.random"})),
                HasSubstr("trials 3/3"));
  }

  const std::string farm_ = folder_.Join("farm");
};

TEST_F(FarmTest, FromItsStartToItsEnd) {
  EXPECT_THAT(KilnPrints(UpWords()),
              AllOf(HasSubstr("is up"), HasSubstr("export KILN_SCHEDULER=127.0.0.1:"),
                    HasSubstr("export KILN_SECRET_FILE=" + farm_ + "/secret"),
                    HasSubstr("farm down --folder " + farm_)));
  const Json status = Status();
  EXPECT_EQ(status["answers"], true);
  EXPECT_THAT(status["processes"], SizeIs(4));
  EXPECT_EQ(status["builders"], 1);
  EXPECT_EQ(status["runners"], 1);
  const std::vector<ProcessIdentity> first = Processes();
  TuneOnFarm("16,16,16");
  // Nobody gets in without the secret.
  Words stranger = Use({"jobs"});
  stranger.resize(stranger.size() - 2);
  EXPECT_EQ(RunKiln(stranger).exit.code, 1);

  EXPECT_THAT(KilnPrints(UpWords()), HasSubstr("runs already"));
  EXPECT_THAT(RunKiln(UpWords({"--db", db_})).error, HasSubstr("runs with other options"));
  EXPECT_EQ(Processes(), first);

  // Each daemon that is killed is back, on its port.
  for (size_t i = 1; i < first.size(); ++i) {
    const Json before = Status()["processes"][i - 1];
    ASSERT_EQ(SignalProcess(first[i], SIGKILL), OkStatus());
    EXPECT_TRUE(Eventually([&] {
      const Json now = Status();
      return now["answers"] == true && now["processes"][i - 1]["restarts"] == 1;
    })) << Status();
    const Json after = Status()["processes"][i - 1];
    EXPECT_NE(after["pid"], before["pid"]);
    EXPECT_EQ(after["addresses"], before["addresses"]);
    EXPECT_EQ(after["last_end"], "killed by signal 9 (Killed)");
  }
  EXPECT_THAT(KilnPrints(Farm("status")),
              AllOf(HasSubstr("1 builder and 1 runner"), HasSubstr("1 job, 0 running"),
                    HasSubstr("The tracker ended, the last time with killed by signal 9")));

  // A daemon that hangs does not answer.
  const std::vector<ProcessIdentity> second = Processes();
  ASSERT_EQ(SignalProcess(second[2], SIGSTOP), OkStatus());
  const RunResult hanging = RunKiln(Farm("status"));
  EXPECT_EQ(hanging.exit.code, 1);
  EXPECT_THAT(hanging.output, HasSubstr("does not answer"));
  ASSERT_EQ(SignalProcess(second[2], SIGCONT), OkStatus());

  // All of them end with the supervisor, and the same database is used again.
  ASSERT_EQ(SignalProcess(second[0], SIGKILL), OkStatus());
  EXPECT_TRUE(AllEnded(second));
  EXPECT_THAT(RunKiln(Farm("status")).error, HasSubstr("has ended without `kiln farm down`"));
  KilnPrints(UpWords());
  EXPECT_THAT(JsonLines(KilnPrints(Use({"jobs", "--json"}))), SizeIs(1));
  TuneOnFarm("16,16,32");

  const std::vector<ProcessIdentity> third = Processes();
  const std::string down = KilnPrints(Farm("down"));
  for (const ProcessIdentity& process : third) EXPECT_FALSE(IsRunning(process)) << process.pid;
  EXPECT_THAT(down, AllOf(HasSubstr("has ended: tracker ("), HasSubstr("runner null (")));
  EXPECT_THAT(KilnPrints(Farm("down")), HasSubstr("no farm runs in"));
  EXPECT_THAT(RunKiln(Farm("status")).error, HasSubstr("`kiln farm up` starts one"));
  const std::string log = *ReadFile(farm_ + "/scheduler.log");
  EXPECT_THAT(log, HasSubstr("stopping on signal 15"));
}

// A stale file of a farm names no process of somebody else.
TEST_F(FarmTest, AStaleFileHarmsNobody) {
  KilnPrints(UpWords());
  const std::string path = farm_ + "/farm.json";
  Json state = Json::parse(*ReadFile(path));
  KilnPrints(Farm("down"));
  SubprocessOptions options;
  options.argv = {"sleep", "600"};
  ASSERT_OK_AND_ASSIGN(Subprocess stranger, Subprocess::Spawn(options));
  state["supervisor"]["pid"] = stranger.pid();
  for (Json& process : state["processes"]) process["process"]["pid"] = stranger.pid();
  ASSERT_OK(WriteFile(path, state.dump()));
  KilnPrints(Farm("down"));
  EXPECT_EQ(RunKiln(Farm("status")).exit.code, 1);
  KilnPrints(UpWords());
  EXPECT_TRUE(stranger.Running());
  KilnPrints(Farm("down"));

  ASSERT_OK(WriteFile(path, "{"));
  EXPECT_THAT(RunKiln(UpWords()).error, HasSubstr("does not describe a farm"));
  ASSERT_OK(RemoveFile(path));
}

// A runner for each device; one that dies does so alone.
TEST_F(FarmTest, SeveralRunners) {
  const std::string up = KilnPrints(UpWords({"--device", "null"}));
  EXPECT_THAT(up, AllOf(HasSubstr("runner null:0"), HasSubstr("runner null:1")));
  Json status = Status();
  EXPECT_EQ(status["runners"], 2);
  ASSERT_THAT(status["processes"], SizeIs(5));
  EXPECT_EQ(status["processes"][4]["name"], "runner null:1");
  for (const int i : {0, 1}) {
    const std::string file = fmt::format("{}/runner-null-{}", farm_, i);
    EXPECT_EQ(status["processes"][3 + i]["log"], file + ".log");
    for (const char* const end : {".log", ".port"}) EXPECT_TRUE(FileExists(file + end)) << end;
  }
  EXPECT_EQ(status["processes"][4]["cores"], "");
  TuneOnFarm("16,16,16");
  ASSERT_EQ(SignalProcess(*IdentifyProcess(status["processes"][3]["pid"]), SIGKILL), OkStatus());
  EXPECT_TRUE(Eventually([&] {
    const Json now = Status();
    return now["answers"] == true && now["processes"][3]["restarts"] == 1;
  })) << Status();
  EXPECT_EQ(Status()["processes"][4]["pid"], status["processes"][4]["pid"]);
  KilnPrints(Farm("down"));
  EXPECT_THAT(RunKiln(Farm("up", {"--device", "cpu", "--device", "cpu"})).error,
              HasSubstr("--device cpu is given 2 times"));
}

TEST_F(FarmTest, AFarmThatCannotStartSaysWhy) {
  EXPECT_THAT(RunKiln(UpWords({"--db", "/dev/null/kiln.db"})).error,
              AllOf(HasSubstr("the farm did not start: the scheduler ended"),
                    HasSubstr("/dev/null/kiln.db")));
  EXPECT_THAT(RunKiln(Farm("status")).error, HasSubstr("no farm runs in"));
  EXPECT_THAT(RunKiln(UpWords({"--listen", "0.0.0.0"})).error,
              HasSubstr("add --tls, or leave --listen out"));
  EXPECT_THAT(RunKiln(UpWords({"--authority", farm_ + "/keys"})).error, HasSubstr("--tls"));
  EXPECT_FALSE(FileExists(farm_ + "/keys"));
  EXPECT_THAT(RunKiln(Farm("up", {"--device", "gpu"})).error, HasSubstr("--device"));
}

}  // namespace
}  // namespace kiln::client
