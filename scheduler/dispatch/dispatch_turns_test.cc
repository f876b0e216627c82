// Building and measuring take turns if both happen on one machine.
#include <atomic>

#include "base/clock.h"
#include "base/status_testing.h"
#include "device/exclusive_phases.h"
#include "scheduler/dispatch/dispatch_testing.h"
#include "scheduler/dispatch/workers_testing.h"

namespace kiln::scheduler {
namespace {

// Builders, searches and runners share one machine.
class ExclusivePhasesTest : public DispatchTest {
 protected:
  // Returns how often a build and a measurement overlapped.
  int OverlapsOf(bool on_cpu) {
    FakeBuilder builder(Build());
    FakeRunner runner(Measure());
    AddBuilder(builder, "b1");
    AddRunner(runner, "r1");
    ExclusivePhases phases({.length = absl::Milliseconds(20), .linger = absl::Milliseconds(2)},
                           Clock::Real());
    DispatchOptions options = QuickDispatch();
    options.phases = &phases;
    job_.on_cpu = on_cpu;
    Start(options);
    EXPECT_EQ(RunTrials(0, 40).size(), 40u);
    dispatcher_ = nullptr;  // before the fakes that it calls
    return overlaps_;
  }

 private:
  FakeBuilder::Hook Build() {
    return [this](grpc::ServerContext&, const v1::BuildRequest&, v1::BuildReply&) {
      Note(building_, measuring_);
      return grpc::Status::OK;
    };
  }
  FakeRunner::Hook Measure() {
    return [this](grpc::ServerContext&, const v1::MeasureRequest&, v1::MeasureReply&) {
      Note(measuring_, building_);
      return grpc::Status::OK;
    };
  }

  void Note(std::atomic<int>& mine, const std::atomic<int>& others) {
    ++mine;
    absl::SleepFor(absl::Milliseconds(3));
    if (others > 0) ++overlaps_;
    --mine;
  }

  std::atomic<int> building_{0}, measuring_{0}, overlaps_{0};
};

TEST_F(ExclusivePhasesTest, NothingIsBuiltWhileACpuIsMeasured) {
  EXPECT_EQ(OverlapsOf(/*on_cpu=*/true), 0);
}

TEST_F(ExclusivePhasesTest, AGpuIsMeasuredWhileOthersAreBuilt) {
  EXPECT_GT(OverlapsOf(/*on_cpu=*/false), 0);
}

TEST_F(ExclusivePhasesTest, StopsWhileItWaitsForItsTurn) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  FakeClock clock;
  ExclusivePhases phases({}, clock);
  const ExclusivePhases::Hold measurement = phases.Enter(ExclusivePhases::Kind::kMeasurement);
  DispatchOptions options = QuickDispatch();
  options.phases = &phases;
  Start(options);
  dispatcher_->Submit(MakeTrial(0));
  clock.WaitForSleepers(1);  // the build
  EXPECT_EQ(builder.calls, 0);
  dispatcher_.reset();
  EXPECT_TRUE(Records().empty());
}

}  // namespace
}  // namespace kiln::scheduler
