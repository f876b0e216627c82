// A device that becomes slower than usual, by the real binary: its worker is quarantined until the
// device is well, its jobs wait, and the records of that time are marked. The device is null, whose
// canary takes what a file says.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/server/daemon_testing.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Json = nlohmann::json;

constexpr char kUsual[] = "the canary usually takes 0.96 to 1.04 ms";
constexpr char kSentence[] = "the canary took 1.30 ms; 0.96 to 1.04 ms are usual";

// Waits for half a minute at least.
bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 300; ++i) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(100));
  }
  return condition();
}

class CanaryTest : public KilnTest {
 protected:
  std::unique_ptr<DaemonProcess> Started(Words flags) const {
    auto daemon = std::make_unique<DaemonProcess>(kKiln, std::move(flags));
    EXPECT_OK(daemon->Start());
    return daemon;
  }
  std::unique_ptr<DaemonProcess> Member(Words flags) const {
    flags.insert(flags.end(), {"--tracker", tracker_->address()});
    return Started(std::move(flags));
  }
  Words At(Words words) const {
    words.insert(words.end(), {"--scheduler", scheduler_->address()});
    return words;
  }
  void SetCanary(std::string_view seconds) const {
    ASSERT_OK(WriteFileAtomically(canary_, seconds));
  }
  // Returns the job's id.
  std::string Submit(const std::string& trials, const std::string& priority) const {
    return JsonLines(
        KilnPrints(At({"submit", "matmul", "--args", "128,128,128", "--target", "null", "--policy",
                       "sketch.random", "--finalists", "0", "--no-warm-start", "--trials", trials,
                       "--priority", priority, "--json"})))[0]["job"];
  }
  Json Job(const std::string& id) const {
    for (Json& job : JsonLines(KilnPrints(At({"jobs", "--json"})))) {
      if (job["id"] == id) return std::move(job);
    }
    ADD_FAILURE() << "there is no job " << id;
    return {};
  }
  uint32_t Trials(const std::string& id) const { return Job(id)["trials_done"]; }
  Json Runner() const {
    const Json list =
        JsonLines(KilnPrints({"workers", "--tracker", tracker_->address(), "--json"}))[0];
    for (const Json& worker : list["workers"]) {
      if (worker["kind"] == "RUNNER") return worker;
    }
    ADD_FAILURE() << "there is no runner: " << list;
    return {};
  }
  std::vector<Json> Records(const std::string& job) const {
    return JsonLines(KilnPrints(At({"records", "list", "--errors", "--json", "--job", job})));
  }
  // Returns whether the records of the span are marked, and no others.
  bool AreMarked(const std::vector<Json>& records, const Json& span) const {
    const int64_t from_s = static_cast<int64_t>(std::floor(span["from_s"].get<double>()));
    const int64_t to_s = static_cast<int64_t>(std::floor(span["to_s"].get<double>()));
    return std::ranges::all_of(records, [&](const Json& record) {
      // JSON has integers of 64 bits as texts.
      const int64_t at_s = std::stoll(record["result"]["timestamp_s"].get<std::string>());
      const std::string mark = record["mark"];
      return mark == (from_s <= at_s && at_s <= to_s ? kSentence : "");
    });
  }

  // There is no file yet, so the canary takes 1 ms.
  const std::string canary_ = folder_.Join("canary");
  const std::unique_ptr<DaemonProcess> tracker_ = Started({"tracker", "--log-level", "error"});
  const std::unique_ptr<DaemonProcess> scheduler_ =
      Member({"scheduler", "--log-level", "error", "--db", db_});
  const std::unique_ptr<DaemonProcess> builder_ =
      Member({"builder", "--log-level", "error", "--jobs", "1"});
  const std::unique_ptr<DaemonProcess> runner_ =
      Member({"runner", "--log-level", "info", "--device", "null", "--canary-seconds", "1",
              "--null-canary", canary_});
};

TEST_F(CanaryTest, ASlowDeviceIsQuarantinedUntilItIsWell) {
  ASSERT_TRUE(Eventually([&] { return runner_->Log().find(kUsual) != std::string::npos; }));
  const std::string job = Submit("1000000", "0");
  ASSERT_TRUE(Eventually([&] { return Trials(job) > 0; }));

  SetCanary("0.0013");
  ASSERT_TRUE(Eventually([&] { return Runner()["mode"] == "WORKER_QUARANTINED"; })) << Runner();
  const Json slow = Runner();
  EXPECT_EQ(slow["mode_reason"], std::string("quarantined: ") + kSentence);
  ASSERT_THAT(slow["drifts"], SizeIs(1));
  EXPECT_EQ(slow["drifts"][0]["to_s"], 0) << "the span goes on";
  // The job gives its device back, and another one gets none.
  ASSERT_TRUE(Eventually([&] { return Job(job)["waiting_for_workers"] == 1; })) << Job(job);
  const uint32_t stands_at = Trials(job);
  const std::string urgent = Submit("20", "1");
  ASSERT_TRUE(Eventually([&] { return Job(urgent)["waiting_for_workers"] == 1; })) << Job(urgent);
  EXPECT_EQ(Trials(urgent), 0u);
  EXPECT_EQ(Trials(job), stands_at);
  const Json why = JsonLines(KilnPrints(At({"why", urgent, "--json"})))[0]["reasons"][0];
  EXPECT_EQ(why["kind"], "quarantined") << why;
  ASSERT_THAT(why["details"], SizeIs(1)) << why;
  EXPECT_EQ(why["details"][0], fmt::format("{}: quarantined: {}", runner_->address(), kSentence));
  // The table breaks its lines.
  EXPECT_THAT(KilnPrints({"workers", "--tracker", tracker_->address()}),
              AllOf(HasSubstr("quarantined"), HasSubstr("the canary took")));

  SetCanary("0.001");
  ASSERT_TRUE(Eventually([&] { return Runner()["mode"] == "WORKER_SERVES"; })) << Runner();
  EXPECT_EQ(Runner()["mode_reason"], "");
  ASSERT_TRUE(Eventually([&] { return Job(urgent)["state"] == "SUCCEEDED"; })) << Job(urgent);
  EXPECT_EQ(Trials(urgent), 20u);
  EXPECT_THAT(Job(urgent)["error_counts"], IsEmpty());
  ASSERT_TRUE(Eventually([&] { return Trials(job) > stands_at; })) << "it goes on";
  KilnPrints(At({"cancel", job}));

  const Json span = Runner()["drifts"][0];
  EXPECT_EQ(span["reason"], kSentence);
  EXPECT_GE(span["to_s"], span["from_s"]);
  std::vector<Json> records;
  EXPECT_TRUE(Eventually([&] {
    records = Records(job);
    return AreMarked(records, span);
  })) << span;
  const auto is_marked = [](const Json& record) { return record["mark"] != ""; };
  EXPECT_TRUE(std::ranges::any_of(records, is_marked)) << "the job ran when the span began";
  for (const Json& record : records) EXPECT_EQ(record["result"]["error"], "NO_ERROR");
  // People read it as well.
  EXPECT_THAT(KilnPrints(At({"records", "list", "--job", job})), HasSubstr(", marked"));
  EXPECT_THAT(Records(urgent), Not(IsEmpty()));
}

}  // namespace
}  // namespace kiln::client
