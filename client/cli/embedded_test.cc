// `kiln tune` with a cluster of its own, on the null target, by the real binary; and what commands
// read from its database afterwards.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <list>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "absl/time/clock.h"
#include "base/file/fd.h"
#include "base/file/file.h"
#include "base/server/daemon_testing.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using Json = nlohmann::json;

std::vector<Json> WithoutRounds(std::vector<Json> events) {
  std::erase_if(events, [](const Json& event) { return event["event"] == "round"; });
  return events;
}

// Returns the processes that have `mark` on their command line, whether children of this one or
// not.
std::set<pid_t> ProcessesWith(const std::string& mark) {
  std::set<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ostringstream text;
    text << std::ifstream(entry.path() / "cmdline").rdbuf();
    if (text.str().find(mark) != std::string::npos) found.insert(std::stoi(name));
  }
  return found;
}

// Returns whether the process has no thread left. The first thread, by whose command line a process
// is found, may be gone while another thread of a killed process is still in a write.
bool IsGone(pid_t pid) {
  const std::string stat = ReadFile(fmt::format("/proc/{}/stat", pid), 4096).value_or("");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return true;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string state, field;
  fields >> state;
  // Field 20 is the number of threads.
  for (int i = 4; i < 20; ++i) fields >> field;
  fields >> field;
  return (state == "Z" || state == "X") && std::stoi(field) <= 1;
}

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1500; ++i) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return condition();
}

// Blocks until the child has printed `text`. Returns its whole output up to then.
std::string ReadUntil(Subprocess& process, const std::string& text) {
  std::string printed;
  char buffer[4096];
  while (printed.find(text) == std::string::npos) {
    const ssize_t size = read(process.output().get(), buffer, sizeof(buffer));
    if (size <= 0) {
      ADD_FAILURE() << "the end came before '" << text << "': " << printed;
      break;
    }
    printed.append(buffer, static_cast<size_t>(size));
  }
  return printed;
}

class EmbeddedTest : public KilnTest {
 protected:
  Words TuneWords(const Words& more, const std::string& args = "64,64,64") const {
    Words words = {"tune", "matmul", "--args", args,        "--target",
                   "null", "--db",   db_,      "--log-dir", logs_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Starts a job that does not end by itself within the test. The log folder marks its processes.
  std::unique_ptr<Subprocess> StartLongJob(std::string* job_id) {
    auto process = Subprocess::Spawn(KilnOptions(
        TuneWords({"--trials", "1000000", "--json", "--cooldown-ms", "50"}, "512,512,512")));
    KILN_CHECK(process.ok(), "{}", Message(process.status()));
    auto kiln = std::make_unique<Subprocess>(*std::move(process));
    const std::string printed = ReadUntil(*kiln, "\"trial\"");
    *job_id = Json::parse(printed.substr(0, printed.find('\n')))["job"];
    EXPECT_GE(ProcessesWith(logs_).size(), 5u) << "kiln and its four";
    return kiln;
  }
  // Reads the output to its end, beside the test: a process whose output nobody reads blocks, and
  // sees no signal.
  void ReadOn(Subprocess& process) {
    readers_.emplace_back([output = UniqueFd(dup(process.output().get()))] {
      char buffer[4096];
      while (read(output.get(), buffer, sizeof(buffer)) > 0) continue;
    });
  }
  Json Job(const std::string& id) {
    return Json::parse(KilnPrints({"jobs", id, "--db", db_, "--json"}))["job"];
  }

  const std::string logs_ = folder_.Join("logs");
  std::list<std::jthread> readers_;
};

TEST_F(EmbeddedTest, AJobRunsToItsEndAndLeavesNoProcess) {
  const std::string out = KilnPrints(TuneWords({"--trials", "20"}));
  EXPECT_THAT(out, AllOf(HasSubstr("trials 20/20"), HasSubstr("  best "), HasSubstr("GFLOP/s"),
                         HasSubstr("over the unscheduled loops"), HasSubstr("loops of trial"),
                         HasSubstr(": matmul"), HasSubstr("show "), Not(HasSubstr(".split("))));
  EXPECT_THAT(ProcessesWith(logs_), IsEmpty());
}

// The device has made-up costs. The result of the fit is printed whether the new row is better or
// not.
TEST_F(EmbeddedTest, CalibrateFitsItsDevicesConstants) {
  const std::string output = KilnPrints(
      {"calibrate", "--target", "null", "--trials", "90", "--db", db_, "--log-dir", logs_});
  EXPECT_THAT(output, AllOf(HasSubstr("and 2 more tasks, 90 trials"), HasSubstr("\nnull: "),
                            HasSubstr("of workloads left out of the fit")));
  EXPECT_THAT(KilnPrints({"jobs", "--db", db_}), HasSubstr("calibrate"));
}

TEST_F(EmbeddedTest, TheFirstLineHasNoListOfFeatures) {
  const std::string out =
      KilnPrints({"tune", "matmul", "--args", "8,8,8", "--trials", "1", "--db", db_, "--log-dir",
                  logs_, "--target", "llvm -mcpu=x86-64-v2 -mattr=+aes,+pclmul"});
  const std::string first = out.substr(0, out.find('\n'));
  EXPECT_THAT(first, HasSubstr("target llvm x86-64-v2, 2 features, records in"));
}

// The faster of both variants of a convolution is named in all outputs.
TEST_F(EmbeddedTest, VariantsOfOneGroup) {
  const Words conv = {"conv2d_nhwc", "--args", "1,24,24,48,64,3,3,1,1"};
  const auto with = [&](Words words, const Words& more) {
    words.insert(words.end(), conv.begin(), conv.end());
    words.insert(words.end(), {"--db", db_});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Words tune = {"--target", "null", "--trials", "40",
                      "--seed",   "1",    "--policy", "sketch.random"};
  Words direct = {"tune", "--db", folder_.Join("direct.db")};
  direct.insert(direct.end(), conv.begin(), conv.end());
  direct.insert(direct.end(), tune.begin(), tune.end());
  EXPECT_THAT(KilnPrints(direct), HasSubstr("conv2d_nhwc has another variant, winograd F(4,3)"));
  Words all = tune;
  all.insert(all.end(), {"--variants", "all", "--json", "--objective", "max", "--no-warm-start"});
  const Json end = JsonLines(KilnPrints(with({"tune"}, all))).back();
  ASSERT_THAT(end["tasks"], SizeIs(2));
  EXPECT_EQ(end["tasks"][0]["variant"], "direct");
  EXPECT_EQ(end["tasks"][1]["variant"], "winograd F(4,3)");
  EXPECT_EQ(end["objective"], "max");
  const size_t fastest = end["tasks"][0]["fastest"] ? 0 : 1;
  const Json &best = end["tasks"][fastest], &other = end["tasks"][1 - fastest];
  EXPECT_LT(best["best_cost_s"], other["best_cost_s"]);
  EXPECT_EQ(end["objective_s"], best["best_cost_s"]);
  EXPECT_GT(other["trials"], 0);

  const std::string job = end["job"];
  EXPECT_THAT(
      KilnPrints({"jobs", job, "--db", db_}),
      AllOf(HasSubstr("  or winograd F(4,3)"), HasSubstr("x faster than "),
            HasSubstr("objective largest latency"),
            HasSubstr("task 1 takes prepared inputs: p1 = conv2d_winograd_weights 48,64,")));
  EXPECT_EQ(Json::parse(KilnPrints({"show", job, "--as", "steps", "--json", "--db", db_}))["steps"],
            best["steps"]);
  // The record of the direct variant's key names the other variant, whose made-up costs are much
  // smaller.
  ASSERT_EQ(fastest, 1u);
  EXPECT_THAT(KilnPrints(with({"best"}, {})),
              AllOf(HasSubstr("faster than trial "), HasSubstr(": winograd F(4,3), "),
                    HasSubstr("takes prepared inputs: p1 = conv2d_winograd_weights 48,64,")));
  const Json faster = JsonLines(KilnPrints(with({"best"}, {"--json"}))).back();
  EXPECT_EQ(faster["variant"], "winograd F(4,3)");
  EXPECT_EQ(faster["record"], best["record"]);
}

TEST_F(EmbeddedTest, JsonHasOneLineForEachTrial) {
  const auto events = JsonLines(KilnPrints(TuneWords({"--trials", "20", "--json", "--seed", "7"})));
  EXPECT_EQ(events.front()["event"], "start");
  std::set<int> trials;
  size_t rounds = 0;
  for (size_t i = 1; i + 1 < events.size(); ++i) {
    if (events[i]["event"] == "round") {
      EXPECT_EQ(events[i]["round"], rounds++);
      continue;
    }
    EXPECT_EQ(events[i]["event"], "trial");
    EXPECT_GT(events[i]["cost_s"], 0);
    // The first trial shows what there is without tuning.
    EXPECT_THAT(events[i]["origin"].get<std::string>(),
                events[i]["trial"] == 0
                    ? testing::Matcher<std::string>(testing::StartsWith("heuristic schedule, "))
                    : testing::AnyOf(HasSubstr("sketch "), "no schedule"));
    trials.insert(events[i]["trial"].get<int>());
  }
  EXPECT_THAT(trials, SizeIs(20));
  // The round of the first candidate, and four rounds of the search.
  EXPECT_EQ(rounds, 5u);
  EXPECT_EQ(events.size(), 2 + 20 + rounds);
  EXPECT_EQ(events.back()["state"], "SUCCEEDED");
  EXPECT_EQ(events.back()["trials_done"], 20);
  EXPECT_GT(events.back()["tasks"][0]["speed_up"], 0);
}

TEST_F(EmbeddedTest, TheSameSeedGivesTheSameBest) {
  auto best = [&](const std::string& seed) {
    const auto events = JsonLines(
        KilnPrints(TuneWords({"--trials", "30", "--json", "--no-warm-start", "--seed", seed})));
    return events.back()["tasks"][0]["steps"].get<std::string>();
  };
  EXPECT_EQ(best("3"), best("3"));
}

// The result is NaN whatever x is, so no program can be found wrong.
TEST_F(EmbeddedTest, AnEmptyCheckIsSaid) {
  ASSERT_TRUE(
      WriteFile(folder_.Join("root.te"), "input x: float32[64]\ny[i: 64] = sqrt(x[i] - 1.0)\n")
          .ok());
  const auto tune = [&](const std::string& db, const Words& more) {
    Words words = {
        "tune",     folder_.Join("root.te"), "--target", "llvm",          "--trials", "2",
        "--policy", "sketch.random",         "--db",     folder_.Join(db)};
    words.insert(words.end(), more.begin(), more.end());
    return KilnPrints(words);
  };
  constexpr char kWhy[] = "output y of the reference is not finite in 64 of 64 elements";
  EXPECT_THAT(tune("empty.db", {}), AllOf(HasSubstr("NOT CHECKED"), HasSubstr(kWhy)));
  const std::string db = folder_.Join("empty.db");
  const Json best = JsonLines(KilnPrints({"best", "--json", "--db", db})).back();
  EXPECT_EQ(best["result"]["unchecked"], kWhy);
  EXPECT_THAT(KilnPrints({"best", "--db", db}), AllOf(HasSubstr("unchecked"), HasSubstr(kWhy)));
  EXPECT_THAT(KilnPrints({"jobs", best["job_id"], "--db", db}), HasSubstr(kWhy));
  EXPECT_THAT(RunKiln({"show", "--db", db}).error, HasSubstr(kWhy));

  EXPECT_THAT(tune("full.db", {"--input-range", "x=2:3"}),
              AllOf(HasSubstr("result matches"), testing::Not(HasSubstr("NOT CHECKED"))));
}

TEST_F(EmbeddedTest, SeveralTasksShareTheTrialsByTheirWeights) {
  const std::string list = folder_.Join("net.txt"), log = folder_.Join("latency.tsv");
  ASSERT_TRUE(
      WriteFile(folder_.Join("double.te"), "input A: float32[64]\nB[i: 64] = A[i] * 2.0\n").ok());
  ASSERT_TRUE(WriteFile(list, "5 matmul 64,64,64 relu\n1 double.te\n1 matmul 32,32,32\n").ok());
  const std::string out =
      KilnPrints({"tune", "--tasks", list, "--target", "null", "--trials", "60", "--db", db_,
                  "--log-dir", logs_, "--log-file", log, "--explain"});
  EXPECT_THAT(out, AllOf(HasSubstr("matmul 64,64,64 + relu and 2 more"), HasSubstr("double.te"),
                         HasSubstr("round 0: task 0"), HasSubstr("no score  sketch"),
                         HasSubstr("pace: 60 trials")));
  std::vector<std::string> lines;
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_GE(lines.size(), 4u);
  EXPECT_THAT(lines[0], AllOf(testing::StartsWith("ElapsedTime(s)\t"), HasSubstr("\tN/A\t"),
                              HasSubstr("\tTrials\t1\t")));
  EXPECT_THAT(lines.back(), AllOf(testing::Not(HasSubstr("N/A")), HasSubstr("\tTrials\t60\t")));
  // One job has one line.
  const Json job = Json::parse(KilnPrints({"jobs", "--db", db_, "--json"}));
  EXPECT_EQ(job["tasks"][0]["spec"]["weight"], 5);
  EXPECT_GE(job["tasks"][0]["trials"].get<int>(), job["tasks"][2]["trials"].get<int>());
}

TEST_F(EmbeddedTest, ShowPrintsJson) {
  KilnPrints(TuneWords({"--trials", "5"}));
  const Json shown = Json::parse(KilnPrints({"show", "--db", db_, "--json", "--as", "loops"}));
  EXPECT_EQ(shown["form"], "loops");
  EXPECT_EQ(shown["target"], "null");
  EXPECT_THAT(shown["text"].get<std::string>(), HasSubstr("for"));
  EXPECT_TRUE(Json::parse(shown["steps"].get<std::string>()).is_array());
}

TEST_F(EmbeddedTest, RecordsAreReadBackFromTheDatabase) {
  // A null program has a random cost. With this seed the unscheduled loops are not the best.
  const auto events = JsonLines(KilnPrints(TuneWords({"--trials", "10", "--seed", "2", "--json"})));
  const std::string job = events.front()["job"];
  const std::string record = std::to_string(events.back()["tasks"][0]["record"].get<int64_t>());
  const Words at = {"--db", db_};
  auto kiln = [&](Words words) {
    words.insert(words.end(), at.begin(), at.end());
    return KilnPrints(words);
  };
  EXPECT_THAT(kiln({"jobs"}), AllOf(HasSubstr(job), HasSubstr("succeeded"), HasSubstr("10/10")));
  EXPECT_THAT(kiln({"jobs", job}),
              AllOf(HasSubstr("state     succeeded"), HasSubstr("matmul 64,64,64")));
  const Json best = Json::parse(kiln({"best", job, "--json"}));
  EXPECT_EQ(best["id"], record);
  const std::string key = best["workload_key"];
  const std::string trial = job + "/" + std::to_string(best["trial"].get<int>());
  for (const Words& subject : std::vector<Words>{{},
                                                 {job},
                                                 {record},
                                                 {trial},
                                                 {key},
                                                 {"matmul", "--args", "64,64,64"},
                                                 {"--op", "matmul", "--args", "64,64,64"},
                                                 {"--record", record}}) {
    Words words = {"show", "--as", "steps"};
    words.insert(words.end(), subject.begin(), subject.end());
    EXPECT_EQ(Json::parse(kiln(words)), Json::parse(best["steps"].get<std::string>()));
  }
  EXPECT_THAT(kiln({"show", job, "--as", "program"}), HasSubstr("program("));
  EXPECT_THAT(kiln({"best", key}), HasSubstr("matmul 64,64,64"));
  EXPECT_THAT(kiln({"records", "stats"}), AllOf(HasSubstr("matmul 64,64,64"), HasSubstr("10")));
  EXPECT_THAT(kiln({"trial", job + "/0"}), AllOf(HasSubstr("then "), HasSubstr("now ")));
  EXPECT_THAT(kiln({"best"}), HasSubstr(trial + " "));
  EXPECT_THAT(kiln({"show"}), AllOf(testing::StartsWith("# trial " + trial + " (record " + record),
                                    HasSubstr("\n# target null\n"), HasSubstr(".split(")));

  // A log is exported and imported into another database; a second import adds nothing.
  const std::string log = folder_.Join("log.json"), other = folder_.Join("other.db");
  kiln({"records", "export", "-o", log});
  EXPECT_THAT(kiln({"records", "measure", log}),
              AllOf(HasSubstr("Line  Workload"), HasSubstr(" 10  matmul 64,64,64 "),
                    HasSubstr("10 of 10 right")));
  EXPECT_THAT(KilnPrints({"records", "import", log, "--db", other}), HasSubstr("10 imported"));
  EXPECT_THAT(KilnPrints({"records", "import", log, "--db", other}),
              AllOf(HasSubstr("0 imported"), HasSubstr("10 there already")));
  EXPECT_THAT(JsonLines(kiln({"records", "distill"})), SizeIs(1));
  EXPECT_THAT(JsonLines(KilnPrints({"records", "distill", log})), SizeIs(1));
  // Imported records are found by their job's name, too.
  EXPECT_THAT(KilnPrints({"best", "import", "--db", other}), HasSubstr("\nimport/"));
  EXPECT_EQ(Json::parse(KilnPrints({"best", "import", "--db", other, "--json"}))["steps"],
            best["steps"]);
  // Imported records have no DAG, so the operator gives it.
  EXPECT_THAT(
      KilnPrints({"show", "matmul", "--args", "64,64,64", "--as", "schedule", "--db", other}),
      HasSubstr(".split("));
}

TEST_F(EmbeddedTest, WhatIsNotThereIsSaid) {
  KilnPrints(TuneWords({"--trials", "2"}));
  auto error = [&](Words words) {
    words.insert(words.end(), {"--db", db_});
    const RunResult result = RunKiln(words);
    EXPECT_EQ(result.exit.code, 1);
    return result.error;
  };
  EXPECT_THAT(error({"jobs", "nope"}), HasSubstr("there is no job nope"));
  EXPECT_THAT(error({"show", "nope"}), HasSubstr("'nope' is no job"));
  EXPECT_THAT(error({"show", "--record", "999"}), HasSubstr("there is no record 999"));
  EXPECT_THAT(error({"best", "matmul", "--args", "8,8,8"}), HasSubstr("tune it first"));
  EXPECT_THAT(error({"trial", "nope"}), HasSubstr("expected JOB/NUMBER"));
  EXPECT_THAT(error({"trial", "nope/1"}), HasSubstr("there is no job nope"));
  const std::string job = Json::parse(KilnPrints({"jobs", "--db", db_, "--json"}))["id"];
  EXPECT_THAT(error({"show", job + "/2"}),
              HasSubstr("job " + job + " has no trial 2: it has 2 trials, counted from 0"));
  EXPECT_THAT(error({"show", "matmull"}), HasSubstr("did you mean matmul?"));
  EXPECT_THAT(error({"show", "--as", "llvm"}), HasSubstr("target 'null"));
  EXPECT_THAT(error({"cancel", "nope"}), HasSubstr("there is no job nope"));
  EXPECT_THAT(error({"tune", "--resume"}),
              HasSubstr("has no job that was left unfinished or cancelled"));
  EXPECT_THAT(error({"tune", "--resume", "nope"}), HasSubstr("there is no job nope"));
}

// Printed commands work as they stand, in the folder of the user.
TEST_F(EmbeddedTest, HintsAreCommandsThatWork) {
  const std::string list = folder_.Join("net.txt");
  ASSERT_TRUE(WriteFile(list, "1 matmul 64,64,64\n1 matmul 32,32,32\n").ok());
  const std::string printed =
      KilnPrints(TuneWords({"--trials", "8", "--fault", "3:compiler-crash"})) +
      KilnPrints({"tune", "--tasks", list, "--target", "null", "--trials", "10", "--db", db_}) +
      // This job knows the first one.
      KilnPrints(TuneWords({"--trials", "4"}));
  std::set<std::string> commands;
  const auto collect = [&](const std::string& text) {
    const std::string start = std::string(kKiln) + " ";
    for (size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
      commands.insert(text.substr(at, text.find_first_of(";\n", at) - at));
    }
  };
  collect(printed);
  EXPECT_THAT(commands, SizeIs(testing::Ge(4u))) << printed;
  std::set<std::string> done;
  // The hints of the commands are followed, too.
  while (done.size() < commands.size()) {
    for (const std::string& command : std::set<std::string>(commands)) {
      if (!done.insert(command).second) continue;
      SubprocessOptions options = KilnOptions({});
      options.argv = {"/bin/sh", "-c", command};
      const auto result = RunToEnd(std::move(options), {}, absl::Minutes(1));
      ASSERT_OK(result);
      EXPECT_EQ(result->exit.code, 0) << command << "\n" << result->error;
      if (command.find(" jobs ") != std::string::npos) collect(result->output);
    }
  }
}

// A terminal that is closed sends SIGHUP.
TEST_F(EmbeddedTest, CtrlCAndAHangUpCancelTheJobAndLeaveNoProcess) {
  for (const int signal : {SIGINT, SIGHUP}) {
    std::string job;
    const auto kiln = StartLongJob(&job);
    kill(kiln->pid(), signal);
    const auto exit = kiln->Wait(absl::Seconds(30));
    ASSERT_OK(exit);
    EXPECT_EQ(exit->code, 130) << exit->ToString();
    EXPECT_THAT(ProcessesWith(logs_), IsEmpty());
    const Json status = Job(job);
    EXPECT_EQ(status["state"], "CANCELLED");
    EXPECT_GT(status["trials_done"], 0) << "what was measured is kept";
  }
}

TEST_F(EmbeddedTest, ACancelledJobIsTheOneToResume) {
  std::string job;
  {
    const auto kiln = StartLongJob(&job);
    kill(kiln->pid(), SIGINT);
    ASSERT_OK(kiln->Wait(absl::Seconds(30)));
  }
  const int before = Job(job)["trials_done"].get<int>();
  auto process = Subprocess::Spawn(
      KilnOptions({"tune", "--resume", "--json", "--db", db_, "--log-dir", logs_}));
  ASSERT_OK(process);
  EXPECT_THAT(ReadUntil(*process, "\"trial\":" + std::to_string(before + 20) + ","),
              HasSubstr(job));
  process->Kill(SIGTERM);
  ASSERT_OK(process->Wait(absl::Seconds(30)));
  EXPECT_GT(Job(job)["trials_done"].get<int>(), before);
}

// A job that an earlier run has left is reported, and does not run unasked.
TEST_F(EmbeddedTest, AnUnfinishedJobIsLeftAlone) {
  std::string job;
  std::set<pid_t> processes;
  {
    const auto kiln = StartLongJob(&job);
    processes = ProcessesWith(logs_);
    kill(kiln->pid(), SIGKILL);
    ASSERT_OK(kiln->Wait(absl::Seconds(30)));
  }
  EXPECT_TRUE(Eventually([&] { return std::ranges::all_of(processes, IsGone); }));
  const Json before = Job(job);
  const RunResult other = RunKiln(TuneWords({"--trials", "3"}));
  EXPECT_EQ(other.exit.code, 0) << other.error;
  EXPECT_THAT(other.error, AllOf(HasSubstr("job " + job + " of an earlier run is unfinished"),
                                 HasSubstr("tune --resume " + job), HasSubstr("cancel " + job)));
  const Json after = Job(job);
  EXPECT_EQ(after["trials_done"], before["trials_done"]);
  EXPECT_EQ(after["state"], before["state"]);
}

// Returns `kiln local` of the null device, and what it printed.
std::pair<std::unique_ptr<Subprocess>, Json> StartLocal(const std::string& db,
                                                        const std::string& logs) {
  SubprocessOptions options =
      KilnOptions({"local", "--db", db, "--device", "null", "--log-dir", logs, "--json"});
  options.input = SubprocessOptions::Stream::kPipe;
  auto kiln = Subprocess::Spawn(options);
  KILN_CHECK(kiln.ok(), "{}", Message(kiln.status()));
  const Json place = Json::parse(ReadUntil(*kiln, "\n"));
  return {std::make_unique<Subprocess>(*std::move(kiln)), place};
}

TEST_F(EmbeddedTest, ALocalFarmEndsWithItsInput) {
  const auto [kiln, place] = StartLocal(db_, logs_);
  EXPECT_EQ(place["device"], "null");
  EXPECT_EQ(place["db"], db_);
  EXPECT_EQ(place["protocol"], 1);
  const std::string secret = place["secret_file"];
  const Words farm = {"--scheduler", place["scheduler"].get<std::string>(), "--secret-file",
                      secret};
  Words tune = {"tune", "matmul", "--args", "8,8,8", "--target", "null", "--trials", "3"};
  tune.insert(tune.end(), farm.begin(), farm.end());
  EXPECT_THAT(KilnPrints(tune), HasSubstr("trials 3/3"));
  EXPECT_THAT(ProcessesWith(logs_), SizeIs(5)) << "four daemons and itself";
  kiln->input().Reset();
  const auto exit = kiln->Wait(absl::Seconds(30));
  ASSERT_OK(exit);
  EXPECT_EQ(exit->code, 0) << exit->ToString();
  EXPECT_FALSE(FileExists(secret));
  EXPECT_THAT(ProcessesWith(logs_), IsEmpty());
}

// A scheduler that is started again goes on with the jobs of this farm, and with one of an earlier
// run only if that was resumed.
TEST_F(EmbeddedTest, ALocalFarmGoesOnWithItsOwnJobs) {
  std::string left;
  {
    const auto tune = StartLongJob(&left);
    kill(tune->pid(), SIGKILL);
    ASSERT_OK(tune->Wait(absl::Seconds(30)));
  }
  EXPECT_TRUE(Eventually([&] { return ProcessesWith(logs_).empty(); }));
  const auto [kiln, place] = StartLocal(db_, logs_);
  const Words farm = {"--scheduler", place["scheduler"].get<std::string>(), "--secret-file",
                      place["secret_file"].get<std::string>()};
  const auto at = [&](Words words) {
    words.insert(words.end(), farm.begin(), farm.end());
    return KilnPrints(words);
  };
  // -1 while the scheduler is away.
  const auto trials_of = [&](const std::string& job) {
    Words words = {"jobs", job, "--json"};
    words.insert(words.end(), farm.begin(), farm.end());
    const RunResult told = RunKiln(words);
    return told.exit.ok() ? Json::parse(told.output)["job"].value("trials_done", 0) : -1;
  };
  const auto goes_on = [&](const std::string& job, int from) {
    return Eventually([&] { return trials_of(job) > from; });
  };
  const auto restart = [&] {
    for (pid_t pid : ProcessesWith("scheduler.log")) {
      if (ProcessesWith(logs_).contains(pid)) kill(pid, SIGKILL);
    }
  };
  const std::string own = Json::parse(at({"submit", "matmul", "--args", "64,64,64", "--target",
                                          "null", "--trials", "1000000", "--json"}))["job"];
  EXPECT_TRUE(goes_on(own, 0));
  const int before = trials_of(left);
  const int own_before = trials_of(own);
  restart();
  EXPECT_TRUE(goes_on(own, own_before));
  EXPECT_EQ(trials_of(left), before);
  const std::string line = "resume " + left + "\n";
  ASSERT_EQ(write(kiln->input().get(), line.data(), line.size()),
            static_cast<ssize_t>(line.size()));
  // The next look at the input comes before the next look at the processes.
  restart();
  EXPECT_TRUE(goes_on(left, before));
  kiln->Kill(SIGKILL);
  ASSERT_OK(kiln->Wait(absl::Seconds(30)));
  EXPECT_TRUE(Eventually([&] { return ProcessesWith(logs_).empty(); }));
}

TEST_F(EmbeddedTest, ADatabaseInUseIsSaidInASentence) {
  std::string job;
  const auto kiln = StartLongJob(&job);
  const RunResult second = RunKiln(TuneWords({"--trials", "3"}));
  EXPECT_EQ(second.exit.code, 1);
  EXPECT_THAT(second.error, AllOf(HasSubstr("is in use by another kiln, process"),
                                  HasSubstr("another file with --db"),
                                  HasSubstr("give each client --scheduler HOST:PORT")));
  kill(kiln->pid(), SIGINT);
  ASSERT_OK(kiln->Wait(absl::Seconds(30)));
}

TEST_F(EmbeddedTest, AClosedOutputEndsTheCommandAsCtrlCDoes) {
  std::string job;
  const auto kiln = StartLongJob(&job);
  kiln->output().Reset();
  const auto exit = kiln->Wait(absl::Seconds(30));
  ASSERT_OK(exit);
  EXPECT_EQ(exit->code, 130) << exit->ToString();
  EXPECT_THAT(ProcessesWith(logs_), IsEmpty());
  EXPECT_EQ(Job(job)["state"], "CANCELLED");
}

TEST_F(EmbeddedTest, AKilledKilnLeavesNoProcessAndAJobToResume) {
  std::string job;
  {
    const auto kiln = StartLongJob(&job);
    kill(kiln->pid(), SIGKILL);
    ASSERT_OK(kiln->Wait(absl::Seconds(30)));
  }
  EXPECT_TRUE(Eventually([&] { return ProcessesWith(logs_).empty(); }));
  const Json before = Job(job);
  EXPECT_EQ(before["state"], "RUNNING");
  // The job continues where it was.
  auto process = Subprocess::Spawn(
      KilnOptions({"tune", "--resume", "--json", "--db", db_, "--log-dir", logs_}));
  ASSERT_OK(process);
  const std::string trial =
      "\"trial\":" + std::to_string(before["trials_done"].get<int>() + 100) + ",";
  EXPECT_THAT(ReadUntil(*process, trial), HasSubstr(job));
  process->Kill(SIGTERM);
  ASSERT_OK(process->Wait(absl::Seconds(30)));
  EXPECT_THAT(ProcessesWith(logs_), IsEmpty());
  EXPECT_EQ(Job(job)["state"], "CANCELLED");
}

TEST_F(EmbeddedTest, ADaemonThatIsKilledIsStartedAgain) {
  std::string job;
  const auto kiln = StartLongJob(&job);
  ReadOn(*kiln);
  for (const char* daemon : {"runner", "builder", "tracker", "scheduler"}) {
    const auto old = ProcessesWith(logs_ + "/" + daemon + ".log");
    ASSERT_THAT(old, SizeIs(1)) << daemon;
    kill(*old.begin(), SIGKILL);
    EXPECT_TRUE(Eventually([&] {
      const auto now = ProcessesWith(logs_ + "/" + daemon + ".log");
      return now.size() == 1 && now != old;
    })) << daemon;
  }
  const int done = Job(job)["trials_done"];
  EXPECT_TRUE(Eventually([&] { return Job(job)["trials_done"].get<int>() > done + 5; }));
  kiln->Kill(SIGTERM);
  ASSERT_OK(kiln->Wait(absl::Seconds(60)));
  EXPECT_THAT(ProcessesWith(logs_), IsEmpty());
}

TEST_F(EmbeddedTest, AFailedTrialIsListedWithTheCommandThatReproducesIt) {
  const std::string out = KilnPrints(TuneWords({"--trials", "8", "--fault", "3:compiler-crash"}));
  EXPECT_THAT(out, AllOf(HasSubstr("trial    3  compile error"), HasSubstr("failed trials: 1")));
  const std::string jobs = KilnPrints({"jobs", "--json", "--db", db_});
  const std::string job = JsonLines(jobs)[0]["id"];
  const std::string shown = KilnPrints({"jobs", job, "--db", db_});
  EXPECT_THAT(shown,
              AllOf(HasSubstr("errors    1 (1 compile error)"),
                    HasSubstr("  " + job + "/3  compile error"), HasSubstr("trial " + job + "/3")));
  EXPECT_THAT(KilnPrints({"trial", job + "/3", "--db", db_}),
              AllOf(HasSubstr("then      compile error"),
                    HasSubstr("now       compile error: compiler process killed by signal 6")));
}

// Runs the daemons of a farm, each started by itself.
class FarmTest : public EmbeddedTest {
 protected:
  void SetUp() override { StartAll(); }
  void StartAll() {
    const std::string tracker = Start("tracker", {});
    Start("builder", {"--tracker", tracker});
    Start("runner", {"--tracker", tracker, "--device", "null"});
    scheduler_ = Start("scheduler", {"--tracker", tracker, "--db", db_});
    tracker_ = tracker;
  }
  // Starts a daemon. Returns its address.
  std::string Start(const std::string& name, const Words& more) {
    Words words = {name, "--log-level", "error"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), common_.begin(), common_.end());
    DaemonProcess& daemon = daemons_.emplace_back(kKiln, words);
    const Status started = daemon.Start();
    KILN_CHECK(started.ok(), "{}", Message(started));
    return daemon.address();
  }
  std::string Kiln(Words words) {
    words.insert(words.end(), {"--scheduler", scheduler_});
    return KilnPrints(words);
  }
  std::string Submit(const Words& more) {
    Words words = {"submit", "matmul", "--args", "64,64,64", "--target", "null"};
    words.insert(words.end(), more.begin(), more.end());
    const std::string id = Kiln(words);
    return id.substr(0, id.size() - 1);
  }
  // Flags of all daemons.
  Words common_;
  std::string tracker_, scheduler_;
  std::list<DaemonProcess> daemons_;
};

class SecretFarmTest : public FarmTest {
 protected:
  void SetUp() override {
    ASSERT_OK(WriteFileAtomically(secret_, "0123456789abcdef\n", 0600));
    ASSERT_OK(WriteFileAtomically(other_, "fedcba9876543210\n", 0600));
    common_ = {"--secret-file", secret_};
    StartAll();
  }
  const std::string secret_ = folder_.Join("secret"), other_ = folder_.Join("other");
};

TEST_F(SecretFarmTest, WhoHasTheSecretTunesAndWhoHasNotIsTold) {
  const Words tune = {"tune",     "matmul", "--args", "64,64,64",    "--target", "null",
                      "--trials", "5",      "--json", "--scheduler", scheduler_};
  const auto with = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  EXPECT_THAT(WithoutRounds(JsonLines(KilnPrints(with(tune, {"--secret-file", secret_})))),
              SizeIs(7));
  const RunResult none = RunKiln(tune);
  EXPECT_EQ(none.exit.code, 1);
  EXPECT_THAT(none.error, AllOf(HasSubstr("this scheduler asks for the secret of its farm"),
                                HasSubstr("--secret-file"), HasSubstr("KILN_SECRET_FILE")));
  const RunResult wrong = RunKiln(with(tune, {"--secret-file", other_}));
  EXPECT_EQ(wrong.exit.code, 1);
  EXPECT_THAT(wrong.error, HasSubstr("this scheduler has another secret"));
  SubprocessOptions by_variable = KilnOptions({"workers", "--tracker", tracker_});
  by_variable.env = {"KILN_SECRET_FILE=" + secret_};
  const auto workers = RunToEnd(std::move(by_variable), {}, absl::Minutes(1));
  ASSERT_OK(workers);
  EXPECT_THAT(workers->output, HasSubstr("runner")) << workers->error;
  EXPECT_THAT(RunKiln({"workers", "--tracker", tracker_}).error,
              HasSubstr("this tracker asks for the secret"));
}

TEST_F(SecretFarmTest, DoctorLooksAtTheScheduler) {
  const auto doctor = [&](const Words& more) {
    Words words = {"doctor", "--scheduler", scheduler_};
    words.insert(words.end(), more.begin(), more.end());
    return RunKiln(words).output;
  };
  const std::string good = doctor({"--secret-file", secret_});
  EXPECT_THAT(good, AllOf(ContainsRegex("ok +scheduler  " + scheduler_ + " answers: 0 jobs"),
                          Not(HasSubstr("database"))));
  EXPECT_THAT(doctor({}), AllOf(HasSubstr("BAD  scheduler"), HasSubstr("asks for the secret")));
  EXPECT_THAT(RunKiln({"doctor", "--scheduler", "127.0.0.1:1"}).output,
              HasSubstr("BAD  scheduler  cannot reach a scheduler at 127.0.0.1:1"));
}

TEST_F(FarmTest, TheTargetThatNobodySaysIsThatOfTheWorkers) {
  const auto await_runners = [&](int count) {
    for (int looks = 0; looks < 300; ++looks) {
      int runners = 0;
      const Json listed = Json::parse(KilnPrints({"workers", "--tracker", tracker_, "--json"}));
      for (const Json& worker : listed["workers"])
        runners += worker.dump().find("RUNNER") != std::string::npos ? 1 : 0;
      if (runners >= count) return;
      absl::SleepFor(absl::Milliseconds(100));
    }
    FAIL() << count << " runners were expected";
  };
  const Words tune = {"tune", "matmul",  "--args",      "8,8,8",   "--trials",
                      "3",    "--quiet", "--scheduler", scheduler_};
  await_runners(1);
  EXPECT_THAT(RunKiln(tune).error, StartsWith("kiln: target null, since the scheduler has "));
  Start("runner", {"--tracker", tracker_, "--device", "cpu"});
  await_runners(2);
  const RunResult asked = RunKiln(tune);
  EXPECT_EQ(asked.exit.code, 1);
  EXPECT_THAT(asked.error,
              AllOf(HasSubstr("devices of several kinds"), HasSubstr("\n  --target llvm  "),
                    HasSubstr("\n  --target null  ")));
  // A target that names no processor finds the farm's records, too.
  const Words product = {"matmul", "--args", "64,64,64", "--target", "llvm"};
  Words words = {"tune", "--trials", "2", "--quiet"};
  words.insert(words.begin() + 1, product.begin(), product.end());
  Kiln(words);
  words = {"compile", "-o", folder_.Join("product.kiln")};
  words.insert(words.begin() + 1, product.begin(), product.end());
  EXPECT_THAT(Kiln(words), AllOf(HasSubstr("1 kernel"), Not(HasSubstr("another target"))));
}

TEST_F(FarmTest, AJobIsSubmittedWatchedAndReadThroughTheScheduler) {
  const std::string job = Submit({"--trials", "15"});
  EXPECT_THAT(Kiln({"watch", job}), AllOf(HasSubstr("trials 15/15"), HasSubstr("  best ")));
  // An ended job is shown from its first trial on.
  EXPECT_THAT(WithoutRounds(JsonLines(Kiln({"watch", job, "--json"}))), SizeIs(16));
  EXPECT_THAT(Kiln({"jobs"}), AllOf(HasSubstr(job), HasSubstr("succeeded"), HasSubstr("15/15")));
  EXPECT_THAT(Kiln({"jobs", job}), HasSubstr("matmul 64,64,64"));
  EXPECT_THAT(Kiln({"best", job}), HasSubstr("matmul 64,64,64"));
  EXPECT_THAT(Kiln({"show", "matmul", "--args", "64,64,64"}), HasSubstr(".split("));
  EXPECT_THAT(Kiln({"trial", job + "/2"}), HasSubstr("now "));
  EXPECT_THAT(JsonLines(Kiln({"records", "export"})), SizeIs(15));
  const std::string log = folder_.Join("log.json");
  Kiln({"records", "export", "-o", log});
  EXPECT_THAT(Kiln({"records", "import", log}), HasSubstr("15 there already"));
  EXPECT_THAT(WithoutRounds(JsonLines(Kiln({"tune", "matmul", "--args", "8,8,8", "--target", "null",
                                            "--trials", "3", "--json"}))),
              SizeIs(5));
}

TEST_F(FarmTest, WorkersAreListed) {
  std::string listed;
  ASSERT_TRUE(Eventually([&] {
    listed = KilnPrints({"workers", "--tracker", tracker_});
    return listed.find("runner") != std::string::npos && listed.find("llvm") != std::string::npos;
  })) << listed;
  EXPECT_THAT(listed, AllOf(HasSubstr("builder"), HasSubstr("Pending"), HasSubstr("null")));
  EXPECT_THAT(Json::parse(KilnPrints({"workers", "--tracker", tracker_, "--json"}))["workers"],
              SizeIs(2));
  // The service exists, but is another one.
  EXPECT_THAT(RunKiln({"jobs", "--scheduler", tracker_}).error, HasSubstr("is no scheduler"));
}

TEST_F(FarmTest, AJobIsForADeviceThatIsThere) {
  EXPECT_EQ(Json::parse(Kiln({"jobs", Submit({"--trials", "2", "--device", "null"}),
                              "--json"}))["job"]["spec"]["device"],
            "null");
  const RunResult refused = RunKiln({"submit", "matmul", "--args", "64,64,64", "--target", "null",
                                     "--device", "H200", "--scheduler", scheduler_});
  EXPECT_EQ(refused.exit.code, 1);
  EXPECT_THAT(refused.error,
              HasSubstr("device 'H200' is not there for target null; there are: null"));
}

TEST_F(EmbeddedTest, AJobIsForADeviceOfThisMachine) {
  EXPECT_THAT(KilnPrints(TuneWords({"--trials", "2", "--device", "0"})), HasSubstr("trials 2/2"));
  Words words = TuneWords({"--trials", "2", "--device", "1"});
  EXPECT_THAT(RunKiln(words).error,
              HasSubstr("device '1' is not there for target null; there are: null"));
}

TEST_F(FarmTest, CtrlCLeavesTheJobRunningAndCancelEndsIt) {
  auto kiln =
      Subprocess::Spawn(KilnOptions({"tune", "matmul", "--args", "512,512,512", "--target", "null",
                                     "--trials", "1000000", "--json", "--scheduler", scheduler_}));
  ASSERT_OK(kiln);
  const std::string printed = ReadUntil(*kiln, "\"trial\"");
  const std::string job = Json::parse(printed.substr(0, printed.find('\n')))["job"];
  kill(kiln->pid(), SIGINT);
  const auto exit = kiln->Wait(absl::Seconds(30));
  ASSERT_OK(exit);
  EXPECT_EQ(exit->code, 130);
  EXPECT_THAT(Kiln({"jobs", job}), HasSubstr("state     running"));
  Kiln({"cancel", job});
  EXPECT_TRUE(Eventually(
      [&] { return Kiln({"jobs", job}).find("state     cancelled") != std::string::npos; }));
}

}  // namespace
}  // namespace kiln::client
