#include "scheduler/dispatch/own_builds.h"

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "base/status_testing.h"
#include "rpc/artifact_digest.h"
#include "scheduler/dispatch/dispatch_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

// The user's function as the dispatcher calls it. By default its binaries are the sources.
class OwnBuildsTest : public DispatchTest {
 protected:
  using Function =
      std::function<StatusOr<v1::CallbackReply>(const v1::BuildCall&, const std::stop_token&)>;

  void StartWith(Function function, int at_once = 2) {
    job_.own_builds = {.at_once = at_once,
                       .build = [function = std::move(function)](v1::BuildCall call, absl::Duration,
                                                                 const std::stop_token& stop) {
                         return function(call, stop);
                       }};
    AddBuilder(builder_, "b1");
    AddRunner(runner_, "r1");
    Start();
  }
  static v1::CallbackReply BinaryOf(const v1::BuildCall& call) {
    v1::CallbackReply reply;
    reply.set_binary("binary from " + call.source());
    return reply;
  }
  static std::string Steps(uint32_t trial) {
    return fmt::format(R"([["SP", 2, 0, 512, [{}], 1]])", trial + 1);
  }

  std::atomic<int> sources_{0}, full_builds_{0};
  std::mutex mutex_;
  std::set<std::string> measured_;  // binaries; guarded by mutex_
  std::set<std::string> broken_;    // artifacts with another digest than their own
  FakeBuilder builder_{[this](auto&, const v1::BuildRequest& request, auto&) {
    ++(request.source_only() ? sources_ : full_builds_);
    return grpc::Status::OK;
  }};
  FakeRunner runner_{[this](auto&, const v1::MeasureRequest& request, auto&) {
    std::lock_guard lock(mutex_);
    measured_.insert(request.artifact().binary());
    if (request.artifact().digest() != DigestOf(request.artifact()))
      broken_.insert(request.artifact().binary());
    return grpc::Status::OK;
  }};
};

TEST_F(OwnBuildsTest, TheUsersBinariesAreMeasuredAgainstTheBuildersReference) {
  StartWith([&](const v1::BuildCall& call, const auto&) {
    EXPECT_EQ(call.target(), "null");
    EXPECT_EQ(call.source(), "source of " + call.steps());
    return BinaryOf(call);
  });
  EXPECT_EQ(RunTrials(0, 12).size(), 12u);
  EXPECT_EQ(sources_, 12);
  EXPECT_EQ(full_builds_, 1);  // the reference
  for (uint32_t i = 0; i < 12; ++i)
    EXPECT_TRUE(measured_.contains("binary from source of " + Steps(i))) << i;
  EXPECT_TRUE(broken_.empty());
  for (const store::Record& record : Records()) {
    EXPECT_EQ(record.error, v1::NO_ERROR) << record.message;
    EXPECT_EQ(record.builder, "b1, compiled by the user");
  }
}

TEST_F(OwnBuildsTest, AFailureOfTheFunctionFailsItsTrialAlone) {
  StartWith([&](const v1::BuildCall& call, const auto&) -> StatusOr<v1::CallbackReply> {
    v1::CallbackReply reply;
    if (call.steps() == Steps(0)) {
      reply.set_error("ValueError: no (mine.py:3)");
      return reply;
    }
    if (call.steps() == Steps(1)) return DeadlineExceeded("did not answer");
    if (call.steps() == Steps(2)) return reply;
    return BinaryOf(call);
  });
  EXPECT_EQ(RunTrials(0, 4).size(), 4u);
  std::map<uint32_t, store::Record> records;
  for (const store::Record& record : Records()) records[record.trial] = record;
  EXPECT_EQ(records[0].error, v1::COMPILE_HOST_ERROR);
  EXPECT_EQ(records[0].message,
            "the build function of the user raised an error: ValueError: no (mine.py:3)");
  EXPECT_EQ(records[1].error, v1::BUILD_TIMEOUT_ERROR);
  EXPECT_EQ(records[1].message, "the build function of the user made no binary within 0.2 s");
  EXPECT_EQ(records[2].error, v1::COMPILE_HOST_ERROR);
  EXPECT_THAT(records[2].message, HasSubstr("returned no bytes, expected a shared object"));
  EXPECT_EQ(records[3].error, v1::NO_ERROR);
}

TEST_F(OwnBuildsTest, SeveralCallsAreUnderWayAndAnAbandonedTrialEndsItsCall) {
  std::atomic<int> at_once{0}, most{0}, stopped{0};
  std::atomic<bool> hold{true};
  StartWith(
      [&](const v1::BuildCall& call, const std::stop_token& stop) -> StatusOr<v1::CallbackReply> {
        const int now = ++at_once;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        while (hold && !stop.stop_requested()) absl::SleepFor(absl::Milliseconds(1));
        --at_once;
        if (!stop.stop_requested()) return BinaryOf(call);
        ++stopped;
        return Cancelled("stopped");
      },
      /*at_once=*/3);
  for (uint32_t i = 0; i < 6; ++i) dispatcher_->Submit(MakeTrial(i));
  ASSERT_TRUE(Eventually([&] { return at_once == 3 && sources_ == 6; }));
  EXPECT_EQ(dispatcher_->Abandon(0).size(), 6u);
  EXPECT_TRUE(Eventually([&] { return stopped == 3; }));
  hold = false;
  EXPECT_EQ(RunTrials(10, 14).size(), 4u);
  EXPECT_EQ(most, 3);
  EXPECT_EQ(Records().size(), 4u);
}

TEST_F(OwnBuildsTest, FinalistsAreBuiltByTheFunctionAsWell) {
  StartWith([](const v1::BuildCall& call, const auto&) { return BinaryOf(call); });
  EXPECT_EQ(RunTrials(0, 2).size(), 2u);
  {
    std::lock_guard lock(mutex_);
    measured_.clear();
  }
  Finalists list;
  for (const store::Record& record : Records()) list.entries.push_back({record.id, record.steps});
  ASSERT_OK(dispatcher_->MeasureAgain({list}));
  EXPECT_EQ(full_builds_, 1);
  EXPECT_EQ(measured_, (std::set<std::string>{"binary from source of " + Steps(0),
                                              "binary from source of " + Steps(1)}));
}

TEST_F(OwnBuildsTest, ABuilderThatKnowsNoSourceIsNotUsed) {
  FakeBuilder old;
  old.makes_source = false;
  job_.own_builds = {.at_once = 1, .build = [](const v1::BuildCall& call, auto, const auto&) {
                       return StatusOr<v1::CallbackReply>(BinaryOf(call));
                     }};
  AddBuilder(old, "b0");
  AddRunner(runner_, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 1).size(), 1u);
  EXPECT_EQ(Records()[0].error, v1::UNKNOWN_ERROR);
  EXPECT_THAT(Records()[0].message, HasSubstr("has no source of the program"));
}

TEST_F(OwnBuildsTest, AFarmThatAsksForSignaturesRefusesTheJob) {
  FakeBuilder signs([](auto&, const v1::BuildRequest& request, v1::BuildReply& reply) {
    if (request.source_only()) return grpc::Status::OK;
    reply.mutable_artifact()->set_trial(request.trial());
    reply.mutable_artifact()->set_signature("signature");
    return grpc::Status::OK;
  });
  job_.own_builds = {.at_once = 1, .build = [](const v1::BuildCall& call, auto, const auto&) {
                       return StatusOr<v1::CallbackReply>(BinaryOf(call));
                     }};
  AddBuilder(signs, "b1");
  AddRunner(runner_, "r1");
  Start();
  dispatcher_->Submit(MakeTrial(0));
  EXPECT_THAT(NextOutcome().status(),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("builder b1 signs programs, so this farm's runners take no")));
  EXPECT_EQ(runner_.measured, 0);
}

TEST(OwnBuildsReply, ABinaryOfTheUserHasNoSignatureOfTheBuilder) {
  v1::BuildReply reply;
  reply.set_source("int main");
  reply.mutable_artifact()->set_trial("7");
  reply.mutable_artifact()->set_certificate("c");
  reply.mutable_artifact()->set_signature("s");
  reply.set_build_s(1);
  v1::CallbackReply answer;
  answer.set_binary("ELF");
  SetOwnBinary({}, answer, 2, reply);
  EXPECT_EQ(reply.build_s(), 3);
  EXPECT_EQ(reply.times().compile_s(), 2);
  EXPECT_EQ(reply.source(), "");
  EXPECT_EQ(reply.artifact().binary(), "ELF");
  EXPECT_EQ(reply.artifact().digest(), DigestOf(reply.artifact()));
  EXPECT_EQ(
      reply.artifact().trial() + reply.artifact().certificate() + reply.artifact().signature(), "");
}

}  // namespace
}  // namespace kiln::scheduler
