// A record says when each step of its trial was, and the calls of the trial carry its trace.
#include <string>

#include "base/clock.h"
#include "base/status_testing.h"
#include "rpc/trace_context.h"
#include "scheduler/dispatch/dispatch_testing.h"
#include "scheduler/dispatch/workers_testing.h"
#include "store/wire/record_message.h"

namespace kiln::scheduler {
namespace {

class InstantsTest : public DispatchTest {
 protected:
  // Builds take 1 s of the clock, runs 2 s.
  InstantsTest()
      : builder_([this](grpc::ServerContext&, const v1::BuildRequest& request, v1::BuildReply&) {
          if (request.traceparent().empty()) return grpc::Status::OK;
          build_trace_ = request.traceparent();
          clock_.Advance(absl::Seconds(1));
          return grpc::Status::OK;
        }),
        runner_([this](grpc::ServerContext&, const v1::MeasureRequest& request, v1::MeasureReply&) {
          run_trace_ = request.traceparent();
          clock_.Advance(absl::Seconds(2));
          return grpc::Status::OK;
        }) {
    AddBuilder(builder_, "b1", 1);
    AddRunner(runner_, "r1");
  }
  ~InstantsTest() override { dispatcher_.reset(); }

  v1::TrialResult Run(uint32_t number) {
    DispatchOptions options = QuickDispatch();
    options.clock = &clock_;
    Start(options);
    EXPECT_EQ(RunTrials(number, number + 1).size(), 1u);
    return store::RecordMessage(Records().at(0)).result();
  }

  FakeClock clock_;
  std::string build_trace_, run_trace_;
  FakeBuilder builder_;
  FakeRunner runner_;
};

TEST_F(InstantsTest, ARecordSaysWhenItsStepsWere) {
  const int64_t begin_us = absl::ToUnixMicros(clock_.Now());
  const v1::TrialResult result = Run(5);
  EXPECT_EQ(result.instants().chosen_us(), begin_us);
  EXPECT_EQ(result.instants().build_sent_us(), begin_us);
  EXPECT_EQ(result.instants().build_received_us(), begin_us + 1'000'000);
  EXPECT_EQ(result.instants().run_sent_us(), begin_us + 1'000'000);
  EXPECT_EQ(result.instants().run_received_us(), begin_us + 3'000'000);
  EXPECT_EQ(result.instants().committed_us(), begin_us + 3'000'000);
}

TEST_F(InstantsTest, TheCallsOfATrialCarryItsTrace) {
  const v1::TrialResult result = Run(5);
  EXPECT_EQ(build_trace_, PrintTraceparent(TraceOfTrial(kJobId, 5, TrialSpan::kBuild)));
  EXPECT_EQ(run_trace_, PrintTraceparent(TraceOfTrial(kJobId, 5, TrialSpan::kRun)));
  EXPECT_EQ(result.trace_id(), TraceOfTrial(kJobId, 5).trace_id);
}

}  // namespace
}  // namespace kiln::scheduler
