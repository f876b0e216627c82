#include "runner/canary.h"

#include "base/status_testing.h"

namespace kiln::runner {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr absl::Duration kPeriod = absl::Seconds(60);
constexpr char kWell[] = "";

// A device whose canary takes what a test says, on a clock that stands still.
class CanaryTest : public testing::Test {
 protected:
  ~CanaryTest() override { canary_.reset(); }

  void Start(CanaryOptions options = {}) {
    options.period = kPeriod;
    canary_ = std::make_unique<Canary>(
        options, [this](const std::function<bool()>&) { return TakeReading(); },
        [this](const std::string& reason) {
          std::lock_guard lock(mutex_);
          told_.push_back(reason);
        },
        clock_);
  }

  StatusOr<double> TakeReading() {
    std::lock_guard lock(mutex_);
    ++readings_;
    taken_at_.push_back(clock_.MonotonicSeconds());
    changed_.notify_all();
    return reading_;
  }
  void SetReading(StatusOr<double> reading) {
    std::lock_guard lock(mutex_);
    reading_ = std::move(reading);
  }
  // Waits until the canary sleeps after so many readings.
  void WaitForReadings(int count) {
    {
      std::unique_lock lock(mutex_);
      ASSERT_TRUE(
          changed_.wait_for(lock, std::chrono::seconds(20), [&] { return readings_ >= count; }));
    }
    // A reading is noted before the canary sleeps again.
    clock_.WaitForSleepers(1);
  }
  // Lets the time pass until the next reading is due, which it is.
  void Pass(absl::Duration pause) {
    clock_.WaitForSleepers(1);
    const int before = readings();
    clock_.Advance(pause);
    WaitForReadings(before + 1);
  }
  void Learn() {
    WaitForReadings(1);
    for (int i = 1; i < 9; ++i) Pass(CanaryOptions().repeat);
  }
  int readings() {
    std::lock_guard lock(mutex_);
    return readings_;
  }
  std::vector<std::string> told() {
    std::lock_guard lock(mutex_);
    return told_;
  }
  v1::WorkerState State() {
    v1::WorkerState state;
    state.set_id("r1");
    state.set_device("NVIDIA H200");
    canary_->Fill(state);
    return state;
  }

  FakeClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  StatusOr<double> reading_ = 1e-3;
  int readings_ = 0;
  std::vector<double> taken_at_;
  std::vector<std::string> told_;
  std::unique_ptr<Canary> canary_;
};

TEST_F(CanaryTest, LearnsWithinASecondAndThenReadsOncePerPeriod) {
  const double start_s = clock_.MonotonicSeconds();
  Start();
  Learn();
  EXPECT_LE(clock_.MonotonicSeconds() - start_s, 1);
  EXPECT_EQ(State().canary_s(), 1e-3);
  Pass(kPeriod);
  Pass(kPeriod);
  EXPECT_EQ(readings(), 11);
  EXPECT_THAT(told(), IsEmpty());
  EXPECT_THAT(State().drifts(), IsEmpty());
}

TEST_F(CanaryTest, ADriftIsSaidWithinOnePeriodAndProbedUntilItIsOver) {
  Start();
  Learn();
  Pass(kPeriod);
  const double well_s = clock_.UnixSeconds();
  SetReading(1.31e-3);
  Pass(kPeriod);
  EXPECT_THAT(told(), IsEmpty()) << "one reading is no drift";
  Pass(CanaryOptions().repeat);
  Pass(CanaryOptions().repeat);
  clock_.WaitForSleepers(1);
  const std::string sentence = "the canary took 1.31 ms; 0.96 to 1.04 ms are usual";
  EXPECT_THAT(told(), ElementsAre(sentence));
  v1::WorkerState state = State();
  ASSERT_THAT(state.drifts(), SizeIs(1));
  EXPECT_EQ(state.drifts(0).worker(), "r1");
  EXPECT_EQ(state.drifts(0).device(), "NVIDIA H200");
  EXPECT_EQ(state.drifts(0).from_s(), well_s);
  EXPECT_EQ(state.drifts(0).to_s(), 0);
  EXPECT_EQ(state.drifts(0).reason(), sentence);
  EXPECT_EQ(state.canary_s(), 1.31e-3);
  // Probes come after 2 s, 4 s, 8 s and so on, and at last once a period.
  for (const int pause_s : {2, 4, 8, 16, 32, 60, 60}) Pass(absl::Seconds(pause_s));
  EXPECT_THAT(told(), SizeIs(1)) << "nothing is new";
  SetReading(1e-3);
  Pass(kPeriod);
  const double again_s = clock_.UnixSeconds();
  Pass(CanaryOptions().repeat);
  Pass(CanaryOptions().repeat);
  EXPECT_THAT(told(), ElementsAre(sentence, kWell));
  EXPECT_EQ(State().drifts(0).to_s(), again_s);
  Pass(kPeriod);
  EXPECT_THAT(told(), SizeIs(2));
}

TEST_F(CanaryTest, ADeviceThatCannotRunItIsNotWell) {
  Start();
  Learn();
  SetReading(Unavailable("3 children in a row ended before they began to work"));
  Pass(kPeriod);
  Pass(CanaryOptions().repeat);
  EXPECT_THAT(told(), IsEmpty());
  Pass(CanaryOptions().repeat);
  EXPECT_THAT(told(), ElementsAre(AllOf(HasSubstr("the canary failed 3 times in a row"),
                                        HasSubstr("ended before they began"))));
  EXPECT_THAT(State().drifts(), IsEmpty()) << "no trial was measured wrong";
  SetReading(1e-3);
  Pass(CanaryOptions().first_probe);
  EXPECT_EQ(told().back(), kWell);
}

TEST_F(CanaryTest, AFullQueueSaysNothingAboutTheDevice) {
  Start();
  Learn();
  SetReading(ResourceExhausted("256 calls wait for this device already"));
  for (int i = 0; i < 5; ++i) Pass(kPeriod);
  SetReading(FailedPrecondition("paused by ada"));
  for (int i = 0; i < 5; ++i) Pass(kPeriod);
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(CanaryTest, AFaultBringsTheNextReadingForward) {
  Start();
  Learn();
  clock_.WaitForSleepers(1);
  canary_->ProbeNow();
  WaitForReadings(10);
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(CanaryTest, StopsWhileItWaitsForTheDevice) {
  std::atomic<bool> waits = false;
  Canary canary(
      {},
      [&](const std::function<bool()>& cancelled) -> StatusOr<double> {
        waits = true;
        while (!cancelled()) std::this_thread::yield();
        return Cancelled("cancelled while waiting for the device");
      },
      [](const std::string&) { FAIL(); }, clock_);
  while (!waits) std::this_thread::yield();
  canary.Stop();
}

}  // namespace
}  // namespace kiln::runner
