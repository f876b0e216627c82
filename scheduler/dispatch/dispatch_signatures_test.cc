// Trial ids that builders sign and runners ask for.
#include <map>
#include <mutex>
#include <set>

#include "base/status_testing.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/dispatch_testing.h"
#include "scheduler/dispatch/workers_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

// Signs as the farm's builders do, without a key.
grpc::Status Sign(grpc::ServerContext&, const v1::BuildRequest& request, v1::BuildReply& reply) {
  reply.mutable_artifact()->set_trial(request.trial());
  reply.mutable_artifact()->set_signature("signature");
  return grpc::Status::OK;
}

TEST_F(DispatchTest, EachProgramIsSignedForItsTrialAndMeasuredInIt) {
  FakeBuilder builder(Sign);
  std::mutex mutex;
  std::map<std::string, std::set<std::string>> trials_of;
  std::string reference;
  FakeRunner runner([&](auto&, const v1::MeasureRequest& request, v1::MeasureReply&) {
    std::lock_guard lock(mutex);
    EXPECT_EQ(request.trial(), request.artifact().trial());
    EXPECT_EQ(request.operations(), 48);
    trials_of[request.artifact().binary()].insert(request.trial());
    if (request.has_reference()) reference = request.reference().trial();
    return grpc::Status::OK;
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  job_.tasks[0].operations = 48;
  Start();
  EXPECT_EQ(RunTrials(0, 3).size(), 3u);
  Finalists list;
  std::map<std::string, std::set<std::string>> want;
  for (const store::Record& record : Records()) {
    list.entries.push_back({record.id, record.steps});
    want[record.steps] = {fmt::format("job/{}", record.trial)};
  }
  {
    std::lock_guard lock(mutex);
    EXPECT_EQ(trials_of, want);
    EXPECT_EQ(reference, "reference");
  }
  // Finalists whose programs are not kept are built again, under ids of their own.
  for (const store::Record& record : Records()) {
    want[record.steps].insert(fmt::format("job/record {}", record.id));
  }
  ASSERT_OK(dispatcher_->MeasureAgain({list}));
  std::lock_guard lock(mutex);
  EXPECT_EQ(trials_of, want);
}

TEST_F(DispatchTest, AProgramThatIsSignedForAnotherTrialIsNotMeasured) {
  FakeBuilder builder([](auto& context, const v1::BuildRequest& request, v1::BuildReply& reply) {
    (void)Sign(context, request, reply);
    if (request.steps() != store::kNoSteps) reply.mutable_artifact()->set_trial("other/5");
    return grpc::Status::OK;
  });
  FakeRunner runner;
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 1).size(), 1u);
  EXPECT_EQ(runner.measured, 0);
  ASSERT_EQ(Records().size(), 1u);
  EXPECT_EQ(Records()[0].error, v1::UNKNOWN_ERROR);
  EXPECT_THAT(Records()[0].message,
              HasSubstr("it signed trial 0 for trial 'other/5', expected trial 'job/0'"));
}

}  // namespace
}  // namespace kiln::scheduler
