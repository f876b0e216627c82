// Operators pause, drain, cordon and resume workers by the real binary, on a farm of processes. No
// trial fails or is lost by it, and `kiln why` says what a job waits for.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/process/process_tree.h"
#include "base/server/daemon_testing.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1200; ++i) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(100));
  }
  return false;
}

// A tracker and a scheduler, to which each test adds its workers.
class WorkerModesTest : public KilnTest {
 protected:
  static std::unique_ptr<DaemonProcess> Started(Words flags) {
    auto daemon = std::make_unique<DaemonProcess>(kKiln, std::move(flags));
    EXPECT_OK(daemon->Start());
    return daemon;
  }
  std::unique_ptr<DaemonProcess> Worker(Words flags) const {
    flags.insert(flags.end(), {"--tracker", tracker_->address()});
    return Started(std::move(flags));
  }
  std::unique_ptr<DaemonProcess> NullRunner(const Words& more = {}) const {
    Words flags = {"runner", "--device", "null"};
    flags.insert(flags.end(), more.begin(), more.end());
    return Worker(std::move(flags));
  }
  std::unique_ptr<DaemonProcess> Builder() const {
    return Worker({"builder", "--log-level", "error", "--jobs", "1"});
  }
  Words At(Words words) const {
    words.insert(words.end(), {"--scheduler", scheduler_->address()});
    return words;
  }
  // Returns the job's id. The target null is tuned in lock step, so that few trials a round make
  // a long job.
  std::string SubmitNull(int trials) const {
    const std::string json = KilnPrints(
        At({"submit", "matmul", "--args", "16,16,16", "--target", "null", "--trials",
            fmt::format("{}", trials), "--trials-per-round", "2", "--no-warm-start", "--json"}));
    return JsonLines(json)[0]["job"];
  }
  Json Job(const std::string& job) const {
    return JsonLines(KilnPrints(At({"jobs", job, "--json"})))[0]["job"];
  }
  int TrialsDone(const std::string& job) const { return Job(job)["trials_done"]; }
  void ExpectAllTrials(const std::string& job, int trials) const {
    ASSERT_TRUE(Eventually([&] { return Job(job)["state"] == "SUCCEEDED"; })) << Job(job);
    const Json shown = JsonLines(KilnPrints(At({"jobs", job, "--json"})))[0];
    EXPECT_EQ(shown["job"]["trials_done"], trials);
    EXPECT_EQ(shown["failed_trials"], Json::array());
  }
  // Waits until the job has a reason of this kind, and returns its sentence and details.
  std::string Until(const std::string& job, const std::string& kind) const {
    Json said;
    std::string text;
    EXPECT_TRUE(Eventually([&] {
      said = JsonLines(KilnPrints(At({"why", job, "--json"})))[0];
      for (const Json& reason : said["reasons"]) {
        if (reason["kind"] != kind) continue;
        text = reason["text"].get<std::string>();
        for (const Json& detail : reason["details"]) text += "\n- " + detail.get<std::string>();
        return true;
      }
      return false;
    })) << said;
    return text;
  }
  std::string Steer(const std::string& verb, const DaemonProcess& worker,
                    const Words& more = {}) const {
    Words words = {"workers", verb, worker.address()};
    words.insert(words.end(), more.begin(), more.end());
    return KilnPrints(At(std::move(words)));
  }
  std::string Listed() const { return KilnPrints({"workers", "--tracker", tracker_->address()}); }

  const std::unique_ptr<DaemonProcess> tracker_ = Started({"tracker", "--log-level", "error"});
  const std::unique_ptr<DaemonProcess> scheduler_ =
      Worker({"scheduler", "--log-level", "error", "--db", db_});
};

TEST_F(WorkerModesTest, APauseWhileAJobRunsLosesNothing) {
  constexpr int kTrials = 300;
  const auto builder = Builder();
  const auto runner = NullRunner();
  const std::string job = SubmitNull(kTrials);
  ASSERT_TRUE(Eventually([&] { return TrialsDone(job) > 0; }));

  EXPECT_THAT(Steer("pause", *runner, {"--why", "a new driver"}),
              AllOf(HasSubstr("runner " + runner->address() + " paused (paused by "),
                    HasSubstr(": a new driver)"), HasSubstr("are done again elsewhere or later")));
  EXPECT_THAT(
      Until(job, "stopped"),
      AllOf(HasSubstr("waits for a device 'null': an operator has stopped the only runner"),
            HasSubstr("\n- " + runner->address() + ": paused by "), HasSubstr(": a new driver")));
  EXPECT_THAT(Listed(),
              AllOf(HasSubstr("\nmodes\n"), HasSubstr("paused"), HasSubstr("a new driver")));
  const int stopped_at = TrialsDone(job);
  EXPECT_LT(stopped_at, kTrials);
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_EQ(TrialsDone(job), stopped_at) << "a paused device measures nothing";

  EXPECT_THAT(Steer("resume", *runner), HasSubstr("runner " + runner->address() + " serves"));
  ExpectAllTrials(job, kTrials);
  EXPECT_THAT(KilnPrints(At({"audit"})),
              AllOf(HasSubstr("SetWorkerMode"), HasSubstr("paused"), HasSubstr("serves")));
}

// A trial takes about a second, or less if it is clearly slower than the best, so that one of the
// pauses stops one in hand.
TEST_F(WorkerModesTest, ATrialThatAPauseStopsIsMeasuredAgain) {
  constexpr int kTrials = 16;
  const auto builder = Builder();
  const auto runner = Worker({"runner", "--threads", "1", "--canary-seconds", "0"});
  const std::string json =
      KilnPrints(At({"submit", "matmul", "--args", "16,16,16", "--target", "llvm", "--trials",
                     fmt::format("{}", kTrials), "--policy", "sketch.random", "--finalists", "0",
                     "--min-repeat-ms", "300", "--repeat", "3", "--idle-ms", "0", "--json"}));
  const std::string job = JsonLines(json)[0]["job"];
  const auto has_stopped = [&] {
    return runner->Log().find("measure stopped: paused by") != std::string::npos;
  };
  for (int done = 0; done + 2 < kTrials && !has_stopped();) {
    ASSERT_TRUE(Eventually([&] { return TrialsDone(job) > done; }));
    done = TrialsDone(job);
    Steer("pause", *runner);
    Until(job, "stopped");
    Steer("resume", *runner);
  }
  EXPECT_TRUE(has_stopped()) << "no pause has met a trial in hand";
  ExpectAllTrials(job, kTrials);
}

TEST_F(WorkerModesTest, AWorkerIsDrainedOrCordonedUntilItIsResumed) {
  const auto builder = Builder();
  const auto runner = NullRunner();
  EXPECT_THAT(Steer("drain", *runner), HasSubstr(" drained (drained by "));
  const std::string job = SubmitNull(4);
  EXPECT_THAT(Until(job, "stopped"), HasSubstr(": drained by "));
  EXPECT_THAT(Listed(), HasSubstr("drained"));
  EXPECT_THAT(Steer("cordon", *runner), HasSubstr(" cordoned (cordoned by "));
  EXPECT_THAT(Until(job, "stopped"), HasSubstr(": cordoned by "));
  Steer("resume", *runner);
  ExpectAllTrials(job, 4);
  Steer("pause", *builder, {"--why", "more cores for others"});
  const std::string second = SubmitNull(4);
  EXPECT_THAT(Until(second, "stopped"),
              HasSubstr("waits for a builder 'null': an operator has stopped the only builder"));
  Steer("resume", *builder);
  ExpectAllTrials(second, 4);
}

TEST_F(WorkerModesTest, OutsideOfItsHoursARunnerGetsNoJob) {
  const absl::Time from = absl::Now() + absl::Hours(6), to = from + absl::Hours(1);
  const std::string hours = absl::FormatTime("%H:%M", from, absl::UTCTimeZone()) + "-" +
                            absl::FormatTime("%H:%M", to, absl::UTCTimeZone());
  const auto builder = Builder();
  const auto closed = NullRunner({"--hours", hours, "--hours-zone", "UTC"});
  EXPECT_THAT(Steer("resume", *closed), HasSubstr("paused (outside of its hours " + hours));
  const std::string job = SubmitNull(2'000);
  EXPECT_THAT(Until(job, "hours"),
              AllOf(HasSubstr("the only runner is paused outside of set hours"),
                    HasSubstr("outside of its hours " + hours)));
  // Another one takes the job, at its pace.
  const auto open = NullRunner({"--hours", "mon-sun", "--share", "50%"});
  EXPECT_THAT(Until(job, "share"), HasSubstr("takes at most 50% of the device's time"));
  EXPECT_THAT(Listed(), AllOf(HasSubstr("outside of its hours"), HasSubstr("takes at most 50%")));
  KilnPrints(At({"cancel", job}));
}

TEST_F(WorkerModesTest, RefusalsSayWhatToDo) {
  const auto runner = NullRunner();
  EXPECT_THAT(
      Refused(At({"workers", "pause", "nope"})),
      AllOf(HasSubstr("no worker has the id or the address 'nope'"),
            HasSubstr("this tracker knows 1 worker: "), HasSubstr(" at " + runner->address())));
  EXPECT_THAT(Refused({"workers", "pause", "nope"}), HasSubstr("--scheduler HOST:PORT"));
  EXPECT_THAT(Refused(At({"workers", "pause"})), HasSubstr("worker"));
  EXPECT_THAT(Refused(At({"workers", "halt", "nope"})), HasSubstr("halt"));
  EXPECT_THAT(Refused(At({"workers", "pause", runner->address(), "--why", std::string(200, 'x')})),
              HasSubstr("the reason has 200 bytes, at most 128 are kept"));
  EXPECT_THAT(KilnPrints(At({"workers"})), HasSubstr("scheduler " + scheduler_->address()));
  tracker_->Kill();
  EXPECT_THAT(Refused(At({"workers", "pause", runner->address()})),
              AllOf(HasSubstr("the tracker at " + tracker_->address()),
                    HasSubstr("the worker keeps its mode")));
}

// Sends SIGTERM to all descendants of a process.
void TerminateDescendants(pid_t pid) {
  for (const pid_t child : ChildrenOf(pid)) {
    TerminateDescendants(child);
    kill(child, SIGTERM);
  }
}

TEST_F(WorkerModesTest, SigtermToTheChildrenOfARunnerFailsNoTrial) {
  // Slurm ends a job so: all of its processes get the signal, the children perhaps before the
  // daemon.
  constexpr int kTrials = 12;
  const auto builder = Builder();
  const auto runner = Worker({"runner", "--device", "cpu", "--threads", "1", "--canary-seconds",
                              "0", "--log-level", "error"});
  const std::string json =
      KilnPrints(At({"submit", "matmul", "--args", "16,16,16", "--target", "llvm", "--trials",
                     fmt::format("{}", kTrials), "--policy", "sketch.random", "--cooldown-ms",
                     "300", "--finalists", "0", "--no-warm-start", "--json"}));
  const std::string job = JsonLines(json)[0]["job"];
  // A trial is in the runner's child nearly all the time.
  for (const int trials : {2, 5, 8}) {
    ASSERT_TRUE(Eventually([&] { return TrialsDone(job) >= trials; }));
    TerminateDescendants(runner->pid());
  }
  ExpectAllTrials(job, kTrials);
}

}  // namespace
}  // namespace kiln::client
