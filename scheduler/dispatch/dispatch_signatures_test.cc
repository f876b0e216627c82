// Trial ids that builders sign and runners ask for.
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/hash/digest.h"
#include "base/keys/authority_folder.h"
#include "base/keys/keys_testing.h"
#include "base/status_testing.h"
#include "rpc/artifact_signature.h"
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

// Two farms, each with a key for builders.
class ForgedSignatureTest : public DispatchTest {
 protected:
  ForgedSignatureTest() {
    for (AuthorityFolder* farm : {&farm_, &foreign_}) {
      KILN_CHECK(farm->Issue({"box", Role::kWork}, 100, false).ok());
    }
  }

  // Signs with the farm's key the artifact that the fake builder is about to make.
  static FakeBuilder::Hook SignedBy(const AuthorityFolder& farm) {
    return [&farm](auto&, const v1::BuildRequest& request, v1::BuildReply& reply) {
      v1::Artifact& artifact = *reply.mutable_artifact();
      artifact.set_digest(Sha256Hex(request.dag() + request.steps()));
      KILN_CHECK(
          SignArtifact(*ReadKeyFolder(farm.FolderOf("box")), "null", request.trial(), artifact)
              .ok());
      return grpc::Status::OK;
    };
  }

  // Returns options with which the dispatcher judges signatures by the farm's authority.
  DispatchOptions Judging(std::chrono::milliseconds backoff) {
    DispatchOptions options = QuickDispatch();
    options.first_backoff = options.longest_backoff = backoff;
    options.signatures = std::make_shared<ArtifactCheck>(
        *LiveKeys::Open(farm_.FolderOf("box"), clock_), std::vector<std::string>{"llvm"}, clock_);
    return options;
  }

  FakeClock clock_{kTestNow};
  const TempDir temporary_ = *TempDir::Make("forged-signature-test");
  AuthorityFolder farm_ = *AuthorityFolder::Init(temporary_.Join("farm"), {&clock_, nullptr});
  AuthorityFolder foreign_ = *AuthorityFolder::Init(temporary_.Join("other"), {&clock_, nullptr});
};

TEST_F(ForgedSignatureTest, TheBuilderIsLeftAloneAndNotTheRunner) {
  FakeBuilder liar(SignedBy(foreign_)), honest(SignedBy(farm_));
  FakeRunner runner([](auto&, const v1::MeasureRequest& request, v1::MeasureReply&) {
    EXPECT_EQ(request.trial(), request.artifact().trial());
    return grpc::Status::OK;
  });
  AddBuilder(liar, "liar");
  AddBuilder(honest, "honest");
  AddRunner(runner, "r1");
  Start(Judging(std::chrono::minutes(10)));
  EXPECT_EQ(RunTrials(0, 20).size(), 20u);
  EXPECT_EQ(runner.measured, 20);
  // Each of its two slots once.
  EXPECT_LE(liar.calls, 2);
  for (const store::Record& record : Records()) {
    EXPECT_EQ(record.error, v1::NO_ERROR) << record.message;
    EXPECT_EQ(record.builder, "honest");
  }
}

TEST_F(ForgedSignatureTest, ATrialThatNobodyElseBuildsIsGivenUpBeforeARunnerSeesIt) {
  // The reference is as it should be.
  FakeBuilder::Hook lie = SignedBy(foreign_), truth = SignedBy(farm_);
  FakeBuilder builder([&](auto& context, const v1::BuildRequest& request, v1::BuildReply& reply) {
    return request.trial() == kReferenceTrial ? truth(context, request, reply)
                                              : lie(context, request, reply);
  });
  FakeRunner runner;
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start(Judging(std::chrono::milliseconds(5)));
  EXPECT_EQ(RunTrials(0, 1).size(), 1u);
  EXPECT_EQ(runner.measured, 0);
  ASSERT_EQ(Records().size(), 1u);
  EXPECT_EQ(Records()[0].error, v1::UNKNOWN_ERROR);
  EXPECT_THAT(Records()[0].message, HasSubstr("trial 0: who signed the program"));
}

// The builder signs its first programs rightly, and a runner finds the next one. That trial is
// built by another builder, and the runner is not left alone.
TEST_F(ForgedSignatureTest, AProgramThatARunnerRefusesIsBuiltElsewhere) {
  const FakeBuilder::Hook lie = SignedBy(foreign_), truth = SignedBy(farm_);
  std::atomic<int> told{0}, forged{0};
  FakeBuilder liar([&](auto& context, const v1::BuildRequest& request, v1::BuildReply& reply) {
    const bool lies = request.trial() != kReferenceTrial && ++told > BuilderTrust::kFirst;
    forged += lies;
    return lies ? lie(context, request, reply) : truth(context, request, reply);
  });
  FakeBuilder honest(truth);
  ArtifactCheck check(*LiveKeys::Open(farm_.FolderOf("box"), clock_), {"llvm"}, clock_);
  std::atomic<int> refused{0};
  FakeRunner runner([&](auto&, const v1::MeasureRequest& request, v1::MeasureReply&) {
    const Status status = check.Check(request.artifact(), request.trial(), "artifact");
    refused += !status.ok();
    if (status.ok()) return grpc::Status::OK;
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, std::string(Message(status)));
  });
  AddBuilder(liar, "liar");
  AddBuilder(honest, "honest");
  AddRunner(runner, "r1");
  Start(Judging(std::chrono::minutes(10)));
  EXPECT_EQ(RunTrials(0, 100).size(), 100u);
  EXPECT_GE(refused, 1);
  // Some were on their way when the first one was refused, and each slot may send one after it. The
  // scheduler may look at one before: of two slots the later program may come as the eighth.
  EXPECT_LE(forged, refused + 3);
  for (const store::Record& record : Records()) {
    EXPECT_EQ(record.error, v1::NO_ERROR) << record.message;
  }
}

}  // namespace
}  // namespace kiln::scheduler
