// `kiln why` and the estimates of `kiln jobs`, by the real binary, on a farm whose parts come one
// after the other. Its device is null, so that a trial takes no time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/server/daemon_testing.h"
#include "client/cli/kiln_testing.h"
#include "store/sqlite_store.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class WhyTest : public KilnTest {
 protected:
  std::unique_ptr<DaemonProcess> Started(Words flags) const {
    auto daemon = std::make_unique<DaemonProcess>(kKiln, std::move(flags));
    EXPECT_OK(daemon->Start());
    return daemon;
  }
  std::unique_ptr<DaemonProcess> Worker(Words flags) const {
    flags.insert(flags.end(), {"--tracker", tracker_->address()});
    return Started(std::move(flags));
  }
  Words At(Words words) const {
    words.insert(words.end(), {"--scheduler", scheduler_->address()});
    return words;
  }
  // Returns the job's id.
  std::string Submit(const std::string& trials, const Words& more = {}) const {
    Words words = {"submit", "matmul",   "--args", "16,16,16", "--target",
                   "null",   "--trials", trials,   "--json",   "--no-warm-start"};
    words.insert(words.end(), more.begin(), more.end());
    return JsonLines(KilnPrints(At(words)))[0]["job"];
  }
  // Waits until the job has a reason of this kind, and returns what people read.
  std::string Until(const std::string& job, std::string_view kind) const {
    std::string json;
    for (int i = 0; i < 150; ++i) {
      json = KilnPrints(At({"why", job, "--json"}));
      const auto lines = JsonLines(json);
      for (const auto& reason : lines[0]["reasons"]) {
        if (reason["kind"].get<std::string>() != kind) continue;
        // The lines are broken to fit.
        std::string text = reason["text"];
        for (const auto& detail : reason["details"]) text += "\n- " + detail.get<std::string>();
        return text + "\n" + reason["remedy"].get<std::string>();
      }
      absl::SleepFor(absl::Milliseconds(100));
    }
    ADD_FAILURE() << "job " << job << " never says " << kind << ": " << json;
    return json;
  }
  std::string Jobs() const { return KilnPrints(At({"jobs"})); }

  const std::unique_ptr<DaemonProcess> tracker_ = Started({"tracker", "--log-level", "error"});
  const std::unique_ptr<DaemonProcess> scheduler_ =
      Worker({"scheduler", "--log-level", "error", "--max-jobs", "2", "--db", db_});
};

TEST_F(WhyTest, ReasonsAsTheFarmGrows) {
  const std::string served = Submit("4", {"--served-objective"});
  EXPECT_THAT(Until(served, "process"),
              AllOf(StartsWith("job " + served + " needs a process of "),
                    HasSubstr("it waits for the process that serves its objective\n"),
                    HasSubstr(fmt::format("`client.serve(\"{}\", ...)`", served))));

  const std::string first = Submit("8", {"--priority", "1"});
  EXPECT_EQ(Until(first, "no-device"),
            fmt::format("job {} asks for a device 'null', and no runner has one\n"
                        "- no runner is there at all\n"
                        "start `kiln runner` on a machine with such a device; or submit with a "
                        "--device that `kiln workers` lists",
                        first));
  // The scheduler works on two jobs, and the long one is the second.
  const std::string second = Submit("1000000");
  Until(second, "no-device");
  const std::string third = Submit("1000000");
  const std::string queued = Until(third, "queue");
  EXPECT_THAT(
      queued,
      AllOf(StartsWith(fmt::format("job {} is number 1 of 1 in the queue by priority and age; "
                                   "the scheduler runs 2 jobs, and takes another when one",
                                   third)),
            HasSubstr("\n- job " + first + " of "), HasSubstr("priority 1, 0/8 trials: runs\n"),
            HasSubstr("\n- job " + second + " of "), HasSubstr("--priority above 0")));

  // The only device goes to the higher priority.
  const auto runner = Worker({"runner", "--log-level", "error", "--device", "null"});
  EXPECT_EQ(Until(first, "no-builder"),
            fmt::format("job {} has trials to build, and no builder serves 'null'\n"
                        "start `kiln builder` on any machine of the farm",
                        first));
  EXPECT_THAT(
      Until(second, "busy"),
      AllOf(StartsWith(fmt::format("job {} waits for a device 'null': all 1 are busy\n- job {} of ",
                                   second, first)),
            HasSubstr("devices go to the highest --priority first")));

  const auto builder = Worker({"builder", "--log-level", "error", "--jobs", "1"});
  EXPECT_EQ(Until(first, "succeeded"), fmt::format("job {0} has ended: 8 trials are done\n"
                                                   "`kiln best {0}` shows its programs",
                                                   first));
  KilnPrints(At({"cancel", third}));
  EXPECT_THAT(Until(third, "cancelled"),
              StartsWith(fmt::format("job {} was cancelled, after ", third)));
  // The null device is faster than any builder.
  EXPECT_THAT(
      Until(second, "builders"),
      StartsWith("job " + second + " is slowed by builds: all 1 slot of builders for 'null'"));

  // The pace of the last minute is the ground of an estimate.
  std::string jobs = Jobs();
  for (int i = 0; i < 150 && jobs.find("ends in") == std::string::npos; ++i) {
    absl::SleepFor(absl::Milliseconds(100));
    jobs = Jobs();
  }
  EXPECT_THAT(jobs, HasSubstr("ends in")) << "perhaps broken after it";
  const std::string page = KilnPrints(At({"why", second}));
  EXPECT_THAT(page, AllOf(StartsWith("job " + second + ", running, ends in about "),
                          HasSubstr("\n\nwhy   job " + second + " is slowed by builds: "),
                          HasSubstr("\nhelp  start `kiln builder` on another machine")));
  EXPECT_THAT(KilnPrints(At({"jobs", second})), HasSubstr("estimate  ends in about "));
  EXPECT_THAT(Refused(At({"why", "nope"})), HasSubstr("nope"));
}

TEST_F(WhyTest, TheQueueIsCountedBehindAnyNumberOfJobs) {
  // The scheduler works on two jobs.
  for (int i = 0; i < 2; ++i) Until(Submit("1000000"), "no-device");
  const std::string first = Submit("1000000");
  ASSERT_OK(scheduler_->Stop());
  {
    ASSERT_OK_AND_ASSIGN(const auto store, store::OpenSqliteStore(db_));
    for (int i = 0; i < 600; ++i) {
      ASSERT_OK(
          store->AddJob({.id = fmt::format("ended{}", i), .state = store::JobState::kSucceeded}));
    }
  }
  ASSERT_OK(scheduler_->Start());
  const std::string second = Submit("1000000");
  EXPECT_THAT(Until(first, "queue"), HasSubstr("is number 1 of 2 in the queue"));
  EXPECT_THAT(Until(second, "queue"), HasSubstr("is number 2 of 2 in the queue"));
  EXPECT_THAT(Until("ended0", "succeeded"), HasSubstr("job ended0 has ended"));
}

// A database alone tells of jobs that have ended.
TEST_F(KilnTest, WhyOfADatabase) {
  Kiln({"tune", "matmul", "--args", "16,16,16", "--target", "null", "--trials", "2"});
  const std::string job = JsonLines(Kiln({"jobs", "--json"}))[0]["id"];
  EXPECT_EQ(Kiln({"why", job}), fmt::format("job {0}, succeeded\n\n"
                                            "why   job {0} has ended: 2 trials are done\n"
                                            "help  `kiln best {0}` shows its programs\n",
                                            job));
  EXPECT_THAT(Error({"why", "nope"}), HasSubstr("nope"));
}

}  // namespace
}  // namespace kiln::client
