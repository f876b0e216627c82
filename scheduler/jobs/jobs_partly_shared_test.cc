// Jobs that ask for some of the same tasks, at the same time: each of these tasks is tuned once.
#include <atomic>
#include <map>

#include "base/numbers/rng.h"
#include "scheduler/jobs/jobs_testing.h"

namespace kiln::scheduler {
namespace {

// Returns a job of a product of each size.
v1::JobSpec JobOf(const std::vector<int>& sizes, uint32_t trials, int32_t priority = 0) {
  v1::JobSpec spec = TestJob(trials);
  spec.clear_tasks();
  for (const int size : sizes) *spec.add_tasks() = TestTask(size);
  spec.mutable_options()->set_task_strategy("round-robin");
  spec.set_priority(priority);
  return spec;
}

// Holds the calls for products of one size, until it is 0.
FakeRunner::Hook HeldBy(const std::atomic<int>& held_size) {
  return [&held_size](auto& context, const v1::MeasureRequest& request, auto&) {
    const int64_t size = request.artifact().plan().args(0).shape(0);
    while (held_size == size && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(2));
    return grpc::Status::OK;
  };
}

// Holds the calls for products of other sizes than 64 until `hold` is cleared.
FakeRunner::Hook HeldBut64(const std::atomic<bool>& hold) {
  return [&hold](auto& context, const v1::MeasureRequest& request, auto&) {
    const int64_t size = request.artifact().plan().args(0).shape(0);
    while (hold && size != 64 && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(2));
    return grpc::Status::OK;
  };
}

// Several jobs have devices at once, each as many as it takes.
class PartlySharedTest : public JobsTest {
 protected:
  void ServeMany(FakeBuilder& builder, FakeRunner& runner, int max_running = 4) {
    AddBuilder(builder, "b1", 16);
    for (int i = 0; i < 12; ++i) AddRunner(runner, fmt::format("r{}", i));
    Start(max_running);
  }
  size_t TrialsOf(const std::string& id, uint32_t task) {
    const auto counts = store_->CountTrials(id);
    EXPECT_OK(counts);
    const auto at = counts->by_task.find(task);
    return at == counts->by_task.end() ? 0 : static_cast<size_t>(at->second);
  }
  std::string TunerOf(const std::string& id, int task) {
    return Status(id).tasks(task).tuned_by_job();
  }
  // Waits until another job tunes the task.
  bool IsHeld(const std::string& id, int task, const std::string& by) {
    return Eventually([&] { return TunerOf(id, task) == by; });
  }
  void ExpectResults(const std::string& id) {
    const v1::JobStatus status = Status(id);
    EXPECT_EQ(status.state(), v1::SUCCEEDED) << status.message();
    for (const v1::TaskStatus& task : status.tasks()) {
      EXPECT_NE(task.best_record_id(), 0) << id << " " << task.spec().dag();
      EXPECT_GT(task.best_cost_s(), 0);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, PartlySharedTest, testing::Values(false, true), StoreName);

TEST_P(PartlySharedTest, ATaskOfTwoJobsThatRunAtOnceIsTunedOnce) {
  FakeBuilder builder;
  std::atomic<int> held_size{32};
  FakeRunner runner(HeldBy(held_size));
  ServeMany(builder, runner);
  const std::string first = Submit(JobOf({64, 32}, 60));
  ASSERT_TRUE(Eventually([&] { return State(first) == v1::RUNNING; }));
  const std::string second = Submit(JobOf({64, 16}, 40));
  ASSERT_TRUE(IsHeld(second, 0, first));
  EXPECT_EQ(TunerOf(second, 1), "");
  EXPECT_EQ(TunerOf(first, 0), "");
  // The second job tunes its other task, and then waits without a device.
  ASSERT_TRUE(Eventually([&] { return State(second) == v1::QUEUED; }));
  EXPECT_EQ(TrialsOf(second, 0), 0u);
  EXPECT_EQ(TrialsOf(second, 1), 20u);
  EXPECT_EQ(Status(second).phase(),
            "waits for the results of job " + first + ", which tunes the same task");
  EXPECT_EQ(TunerOf(second, 0), first);
  EXPECT_EQ(TunerOf(second, 1), "");
  held_size = 0;
  for (const std::string& id : {first, second}) {
    ASSERT_TRUE(Ends(id));
    ExpectResults(id);
  }
  ExpectExactly(first, 60);
  ASSERT_GE(TrialsOf(first, 0), 20u) << "an even share of the second job's trials";
  ExpectExactly(second, 20);
  EXPECT_EQ(TrialsOf(second, 0), 0u);
  EXPECT_EQ(Status(second).message(), "known: 20 trials of job " + first);
  EXPECT_EQ(Status(second).tasks(0).best_record_id(), Status(first).tasks(0).best_record_id());
}

TEST_P(PartlySharedTest, TheResultsOfTheOtherJobAreSeenAsTheyCome) {
  FakeBuilder builder;
  std::atomic<bool> hold{true};
  FakeRunner runner(HeldBut64(hold));
  ServeMany(builder, runner);
  const std::string first = Submit(JobOf({64, 48}, 60));
  ASSERT_TRUE(Eventually([&] { return TrialsOf(first, 0) > 0; }));
  const std::string second = Submit(JobOf({64, 16}, 40));
  // The first job waits for its other task, so it can't end before the second one has seen it.
  EXPECT_TRUE(Eventually([&] {
    const v1::TaskStatus task = Status(second).tasks(0);
    return task.known_record_id() != 0 && task.best_record_id() == task.known_record_id();
  }));
  hold = false;
  for (const std::string& id : {first, second}) {
    ASSERT_TRUE(Ends(id));
    ExpectResults(id);
  }
  EXPECT_EQ(TrialsOf(second, 0), 0u);
}

TEST_P(PartlySharedTest, IfTheFirstJobIsCancelledTheOtherTunesTheTask) {
  FakeBuilder builder;
  std::atomic<bool> hold{true};
  FakeRunner runner(HeldBut64(hold));
  ServeMany(builder, runner);
  const std::string first = Submit(JobOf({64, 32}, 60));
  ASSERT_TRUE(Eventually([&] { return State(first) == v1::RUNNING; }));
  const std::string second = Submit(JobOf({64, 16}, 40));
  ASSERT_TRUE(IsHeld(second, 0, first));
  ASSERT_OK(jobs_->Cancel(first));
  ASSERT_TRUE(IsHeld(second, 0, ""));
  EXPECT_EQ(State(second), v1::RUNNING);
  hold = false;
  ASSERT_TRUE(Ends(second));
  ExpectResults(second);
  ExpectExactly(second, 40);
  EXPECT_GT(TrialsOf(second, 0), 0u);
  EXPECT_EQ(Status(second).message(), "");
}

TEST_P(PartlySharedTest, AJobThatWaitsGoesOnIfTheFirstJobIsCancelled) {
  FakeBuilder builder;
  std::atomic<int> held_size{32};
  FakeRunner runner(HeldBy(held_size));
  ServeMany(builder, runner);
  const std::string first = Submit(JobOf({64, 32}, 60));
  ASSERT_TRUE(Eventually([&] { return State(first) == v1::RUNNING; }));
  const std::string second = Submit(JobOf({64, 16}, 40));
  ASSERT_TRUE(IsHeld(second, 0, first));
  ASSERT_TRUE(Eventually([&] { return State(second) == v1::QUEUED; }));
  ASSERT_OK(jobs_->Cancel(first));
  ASSERT_TRUE(Ends(second));
  ExpectResults(second);
  ExpectExactly(second, 40);
  EXPECT_GT(TrialsOf(second, 0), 0u);
  EXPECT_EQ(Status(second).message(), "");
}

TEST_P(PartlySharedTest, ARestartKeepsWhoTunes) {
  FakeBuilder builder;
  std::atomic<int> held_size{32};
  FakeRunner runner(HeldBy(held_size));
  ServeMany(builder, runner);
  v1::JobSpec spec = JobOf({64, 32}, 60);
  spec.set_user("zoe");
  const std::string first = Submit(spec);
  ASSERT_TRUE(Eventually([&] { return State(first) == v1::RUNNING; }));
  const std::string second = Submit(JobOf({64, 16}, 40));
  ASSERT_TRUE(IsHeld(second, 0, first));
  ASSERT_TRUE(Eventually([&] { return State(second) == v1::QUEUED; }));
  Restart();
  ASSERT_TRUE(IsHeld(second, 0, first));
  EXPECT_EQ(TunerOf(first, 0), "");
  held_size = 0;
  for (const std::string& id : {first, second}) {
    ASSERT_TRUE(Ends(id));
    ExpectResults(id);
  }
  ExpectExactly(first, 60);
  ExpectExactly(second, 20);
  EXPECT_EQ(TrialsOf(second, 0), 0u);
}

TEST_P(PartlySharedTest, AMoreUrgentJobTakesTheTaskOver) {
  FakeBuilder builder;
  std::atomic<bool> hold{true};
  FakeRunner runner(HeldBut64(hold));
  ServeMany(builder, runner);
  const std::string first = Submit(JobOf({64, 32}, 40));
  ASSERT_TRUE(Eventually([&] { return TrialsOf(first, 0) == 1; })) << "its opening";
  const std::string urgent = Submit(JobOf({64, 16}, 60, 1));
  ASSERT_TRUE(IsHeld(first, 0, urgent));
  EXPECT_EQ(TunerOf(urgent, 0), "");
  hold = false;
  ASSERT_TRUE(Ends(urgent));
  ExpectExactly(urgent, 60);
  ASSERT_TRUE(Ends(first));
  ExpectResults(first);
  EXPECT_EQ(TrialsOf(first, 0), 1u);
  EXPECT_EQ(Status(first).message(), "known: 20 trials of job " + urgent);
}

// Whatever jobs come, and whichever of them are cancelled, all others end with results.
TEST_P(PartlySharedTest, RandomJobsAllEnd) {
  Rng rng(17);
  FakeBuilder builder;
  FakeRunner runner(Slow(1));
  ServeMany(builder, runner, 3);
  std::vector<std::string> ids;
  std::map<std::string, bool> cancelled;
  for (int i = 0; i < 10; ++i) {
    std::vector<int> sizes = {16, 24, 32, 48};
    Shuffle(rng, sizes);
    sizes.resize(static_cast<size_t>(UniformIn(rng, 1, 3)));
    ids.push_back(Submit(JobOf(sizes, static_cast<uint32_t>(UniformIn(rng, 4, 24)),
                               static_cast<int32_t>(UniformInt(rng, 2)))));
    if (!Chance(rng, 0.3)) continue;
    const std::string& one = PickFrom(rng, ids);
    cancelled[one] = jobs_->Cancel(one).ok();
  }
  for (const std::string& id : ids) {
    ASSERT_TRUE(Ends(id)) << id << " " << Status(id).phase();
    if (!cancelled[id]) ExpectResults(id);
  }
}

}  // namespace
}  // namespace kiln::scheduler
