// A dispatcher with fake workers and a store in memory, and trials for it.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status_testing.h"
#include "compiler/schedule/step.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/workers_testing.h"
#include "store/memory_store.h"

namespace kiln::scheduler {

inline constexpr char kJobId[] = "job";
inline constexpr double kNever_s = std::numeric_limits<double>::infinity();

inline search::Trial MakeTrial(uint32_t number) {
  search::Trial trial;
  trial.number = number;
  // Nothing replays these steps: the fakes only look at the text.
  auto steps = schedule::ParseSteps(fmt::format(R"([["SP", 2, 0, 512, [{}], 1]])", number + 1));
  KILN_CHECK(steps.ok(), "{}", steps.status().ToString());
  trial.candidate.steps = *std::move(steps);
  trial.candidate.hash = number;
  return trial;
}

class DispatchTest : public testing::Test {
 protected:
  DispatchTest() : store_(store::NewMemoryStore()) {
    store::JobRow row;
    row.id = kJobId;
    store::TaskRow task;
    KILN_CHECK(store_->AddJob(row, {&task, 1}).ok());
    job_.id = kJobId;
    job_.options.set_trials(100);
    job_.options.set_build_timeout_ms(200);
    job_.options.mutable_measure()->set_timeout_ms(200);
    job_.options.mutable_measure()->set_early_stop_ratio(10);
    job_.tasks.resize(1);
    job_.tasks[0].workload_id = "5a1d";
    job_.tasks[0].workload_key = "[\"key\"]";
    job_.tasks[0].dag = "a dag";
    job_.tasks[0].target = "null";
  }

  void AddBuilder(FakeBuilder& builder, const std::string& id, uint32_t slots = 2) {
    cluster_.AddBuilder(builder, id, slots);
  }
  void AddRunner(FakeRunner& runner, const std::string& id) { cluster_.AddRunner(runner, id); }

  // Starts the dispatcher. The first runner must have been added before.
  void Start(DispatchOptions options = QuickDispatch()) {
    auto lease = cluster_.runners.Acquire(absl::Seconds(5), {});
    KILN_CHECK(lease.ok(), "{}", lease.status().ToString());
    dispatcher_ = std::make_unique<Dispatcher>(job_, options, cluster_.builders, cluster_.runners,
                                               *std::move(lease), *store_, [this] { ++commits_; });
  }

  // Submits trials [begin, end) and takes all their outcomes.
  std::set<uint32_t> RunTrials(uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) dispatcher_->Submit(MakeTrial(i));
    std::set<uint32_t> numbers;
    for (uint32_t i = begin; i < end; ++i) {
      const auto outcome = NextOutcome();
      EXPECT_OK(outcome);
      if (!outcome.ok()) break;
      numbers.insert(outcome->trial.number);
    }
    return numbers;
  }

  StatusOr<search::Outcome> NextOutcome() {
    KILN_ASSIGN_OR_RETURN(std::optional<search::Outcome> outcome, dispatcher_->Next(kNever_s));
    KILN_CHECK(outcome.has_value(), "nobody called Wake");
    return *std::move(outcome);
  }

  std::vector<store::Record> Records() { return *store_->RecordsOfJob(kJobId, 0); }

  std::unique_ptr<store::Store> store_;
  FakeCluster cluster_;
  Dispatcher::Job job_;
  std::atomic<int> commits_{0};
  std::unique_ptr<Dispatcher> dispatcher_;  // last: it uses the other members
};

}  // namespace kiln::scheduler
