// Final races of several tasks on several devices.
#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "scheduler/dispatch/dispatch_testing.h"

namespace kiln::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Holds calls until so many runners have one at the same time.
class Meeting {
 public:
  explicit Meeting(size_t runners) : runners_(runners) {}

  FakeRunner::Hook HookOf(int runner) {
    return [this, runner](auto& context, const auto&, auto&) {
      {
        std::lock_guard lock(mutex_);
        waiting_.insert(runner);
        if (waiting_.size() == runners_) met_ = true;
      }
      while (!met_ && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(2));
      return grpc::Status::OK;
    };
  }
  void BeginAnew() {
    std::lock_guard lock(mutex_);
    waiting_.clear();
    met_ = false;
  }
  bool met() const { return met_; }

 private:
  const size_t runners_;
  std::mutex mutex_;
  std::set<int> waiting_;
  std::atomic<bool> met_{false};
};

// A job of three tasks, each with some trials.
class DispatchRacesTest : public DispatchTest {
 protected:
  static constexpr int kTasks = 3;

  DispatchRacesTest() {
    job_.tasks.resize(kTasks, job_.tasks[0]);
    for (int i = 0; i < kTasks; ++i) job_.tasks[i].description = fmt::format("task {}", i);
    // The store has the first task already.
    std::vector<store::TaskRow> rows(kTasks - 1);
    for (uint32_t i = 0; i < rows.size(); ++i) rows[i].index = i + 1;
    EXPECT_OK(store_->AddTasks(kJobId, rows));
  }

  void AddTimed(FakeRunner& runner, const std::string& id, double canary_s) {
    runner.workers.push_back(std::make_unique<FakeWorker>(runner, v1::RUNNER, id));
    runner.workers.back()->state().set_canary_s(canary_s);
    cluster_.runners.AddWorker(runner.workers.back()->state());
  }

  // Starts a dispatcher that keeps its leases, and whose calls may wait for each other.
  void StartPatiently() {
    DispatchOptions options = QuickDispatch();
    options.measure_slack = options.reference_slack = std::chrono::milliseconds(30'000);
    options.idle_release = std::chrono::milliseconds(60'000);
    Start(options);
  }

  // Measures four trials of each task, and returns their races.
  std::vector<Finalists> RunTrialsOfAll() {
    uint32_t number = 0;
    for (int task = 0; task < kTasks; ++task) {
      for (int i = 0; i < 4; ++i) {
        search::Trial trial = MakeTrial(number++);
        trial.task = task;
        dispatcher_->Submit(std::move(trial));
      }
    }
    for (uint32_t i = 0; i < number; ++i) EXPECT_OK(NextOutcome());
    std::vector<Finalists> lists(kTasks);
    for (int task = 0; task < kTasks; ++task) lists[task].task = task;
    for (const store::Record& record : Records())
      lists[record.task_index].entries.push_back({record.id, record.steps});
    return lists;
  }

  // Returns the devices that raced each task.
  std::vector<std::set<std::string>> DevicesOfRaces() {
    std::vector<std::set<std::string>> devices(kTasks);
    for (const store::Record& record : Records()) {
      EXPECT_GE(record.remeasurements, 2u) << record.id;
      devices[record.task_index].insert(record.remeasured_device);
    }
    return devices;
  }
};

TEST_F(DispatchRacesTest, RacesOfDifferentTasksRunAtTheSameTime) {
  FakeBuilder builder;
  Meeting meeting(3);
  FakeRunner r1(meeting.HookOf(1)), r2(meeting.HookOf(2)), r3(meeting.HookOf(3));
  AddBuilder(builder, "b1", 4);
  AddRunner(r1, "r1");
  StartPatiently();
  AddRunner(r2, "r2");
  AddRunner(r3, "r3");
  std::vector<Finalists> lists = RunTrialsOfAll();
  EXPECT_TRUE(meeting.met()) << "each of three devices measures trials";
  meeting.BeginAnew();
  ASSERT_OK(dispatcher_->MeasureAgain(std::move(lists)));
  EXPECT_TRUE(meeting.met()) << "each of three devices races a task";
  for (const std::set<std::string>& devices : DevicesOfRaces())
    EXPECT_EQ(devices.size(), 1u) << "all readings of a race are of one device";
  EXPECT_THAT(dispatcher_->notices(), IsEmpty());
}

TEST_F(DispatchRacesTest, ADeviceUnlikeTheOthersMeasuresTrialsAndRunsNoRaces) {
  FakeBuilder builder;
  Meeting meeting(3);
  FakeRunner slow(meeting.HookOf(1)), r2(meeting.HookOf(2)), r3(meeting.HookOf(3));
  AddBuilder(builder, "b1", 4);
  AddTimed(slow, "slow", 1.5e-3);
  StartPatiently();
  AddTimed(r2, "r2", 1e-3);
  AddTimed(r3, "r3", 1.01e-3);
  std::vector<Finalists> lists = RunTrialsOfAll();
  EXPECT_GT(slow.measured, 0);
  ASSERT_EQ(dispatcher_->notices().size(), 1u);
  EXPECT_THAT(dispatcher_->notices()[0], HasSubstr("its canary takes 1.500 ms, and 1.0"));
  const int before = slow.measured;
  ASSERT_OK(dispatcher_->MeasureAgain(std::move(lists)));
  EXPECT_EQ(slow.measured, before);
  for (const std::set<std::string>& devices : DevicesOfRaces()) {
    EXPECT_EQ(devices.size(), 1u);
    EXPECT_EQ(devices.count("slow"), 0u);
  }
}

TEST_F(DispatchRacesTest, ADeviceUnlikeTheOthersRacesWhenTheyAreGone) {
  FakeBuilder builder;
  Meeting meeting(2);
  FakeRunner slow(meeting.HookOf(1)), other(meeting.HookOf(2));
  AddBuilder(builder, "b1", 4);
  AddTimed(slow, "slow", 1.5e-3);
  StartPatiently();
  AddTimed(other, "other", 1e-3);
  std::vector<Finalists> lists = RunTrialsOfAll();
  EXPECT_EQ(dispatcher_->notices().size(), 1u);
  cluster_.runners.RemoveWorker("other");
  ASSERT_OK(dispatcher_->MeasureAgain(std::move(lists)));
  for (const std::set<std::string>& devices : DevicesOfRaces())
    EXPECT_THAT(devices, ElementsAre("slow"));
}

}  // namespace
}  // namespace kiln::scheduler
