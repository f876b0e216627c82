// The scheduler of a farm with keys: jobs are in the name of a certificate, and their owners'.
#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/server/grpc_server.h"
#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "rpc/channel.h"
#include "rpc/farm_access.h"
#include "rpc/refusal_note.h"
#include "scheduler/dispatch/workers_testing.h"
#include "scheduler/service/service.h"
#include "scheduler/values/job_testing.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ServiceKeysTest : public testing::Test {
 protected:
  ServiceKeysTest() {
    Issue("box1", Role::kWork);
    Jobs::Options options;
    options.dispatch = QuickDispatch();
    jobs_ = std::make_unique<Jobs>(*store_, cluster_.factory(), events_, options);
    KILN_CHECK(jobs_->Start().ok());
    const FarmAccess access = AccessOf("box1");
    const AdmissionControl admission = access.MakeAdmission("scheduler");
    service_ = std::make_unique<SchedulerService>(
        *store_, *jobs_, events_,
        SchedulerService::Options{.admission = admission,
                                  .set_worker_mode = [this](const auto& request) {
                                    wishes_.push_back(request.user());
                                    return v1::SetWorkerModeReply();
                                  }});
    const auto note = [this](std::string_view user, std::string_view call, const Status& why) {
      service_->NoteRefused(user, call, why);
    };
    auto server =
        GrpcServer::Start({.services = {service_.get()},
                           .check_caller = NoteRefusals(admission.MakeCallerCheck(), note),
                           .check_certificate = admission.MakeCertificateCheck(),
                           .keys = access.keys()});
    KILN_CHECK(server.ok(), "{}", server.status().ToString());
    server_ = *std::move(server);
  }
  ~ServiceKeysTest() override {
    service_->Stop();
    jobs_->Stop();
    server_->Shutdown(absl::Seconds(1));
  }

  void Issue(const std::string& name, Role role) {
    KILN_CHECK(farm_.Issue({name, role}, 10, false).ok());
  }
  FarmAccess AccessOf(const std::string& name) {
    return FarmAccess(*LiveKeys::Open(farm_.FolderOf(name), Clock::Real()));
  }
  std::unique_ptr<v1::Scheduler::Stub> As(const std::string& name) {
    return v1::Scheduler::NewStub(MakeChannel(server_->address(), AccessOf(name)));
  }

  template <typename Request, typename Reply>
  static StatusOr<Reply> Call(v1::Scheduler::Stub& stub,
                              grpc::Status (v1::Scheduler::Stub::*method)(grpc::ClientContext*,
                                                                          const Request&, Reply*),
                              const Request& request) {
    grpc::ClientContext context;
    Reply reply;
    const grpc::Status status = (stub.*method)(&context, request, &reply);
    if (!status.ok()) return FromGrpc(status);
    return reply;
  }
  static StatusOr<std::string> Submit(v1::Scheduler::Stub& stub, const std::string& user) {
    v1::SubmitRequest request;
    *request.mutable_spec() = TestJob(1);
    request.mutable_spec()->set_user(user);
    KILN_ASSIGN_OR_RETURN(const auto reply, Call(stub, &v1::Scheduler::Stub::Submit, request));
    return reply.job_id();
  }
  static Status Cancel(v1::Scheduler::Stub& stub, const std::string& job) {
    v1::CancelJobRequest request;
    request.set_job_id(job);
    return Call(stub, &v1::Scheduler::Stub::CancelJob, request).status();
  }
  static Status Resume(v1::Scheduler::Stub& stub, const std::string& job) {
    v1::ResumeJobRequest request;
    request.set_job_id(job);
    return Call(stub, &v1::Scheduler::Stub::ResumeJob, request).status();
  }
  static Status Serve(v1::Scheduler::Stub& stub, const std::string& job, const std::string& user) {
    grpc::ClientContext context;
    const auto stream = stub.ServeCallbacks(&context);
    v1::CallbackReply first;
    first.set_job_id(job);
    first.set_user(user);
    stream->Write(first);
    v1::CallbackRequest request;
    while (stream->Read(&request)) {
    }
    return FromGrpc(stream->Finish());
  }

  const TempDir folder_ = *TempDir::Make("service-keys");
  AuthorityFolder farm_ = *AuthorityFolder::Init(folder_.Join("keys"), {&Clock::Real(), nullptr});
  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  FakeCluster cluster_;
  EventHub events_;
  // Names in which the tracker was asked for modes of workers.
  std::vector<std::string> wishes_;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<SchedulerService> service_;
  std::unique_ptr<GrpcServer> server_;
};

auto Denied(const std::string& found, const std::string& expected) {
  return StatusIs(StatusCode::kPermissionDenied, AllOf(HasSubstr(found), HasSubstr(expected)));
}

TEST_F(ServiceKeysTest, AJobIsInTheNameOfItsCertificateAndForItsOwner) {
  Issue("alice", Role::kSubmit);
  Issue("bob", Role::kSubmit);
  Issue("olga", Role::kOperate);
  Issue("rita", Role::kRead);
  const auto alice = As("alice"), bob = As("bob"), olga = As("olga"), rita = As("rita");
  ASSERT_OK_AND_ASSIGN(const std::string job, Submit(*alice, ""));
  EXPECT_EQ(store_->GetJob(job)->user, "alice");
  ASSERT_OK_AND_ASSIGN(const std::string second, Submit(*alice, "alice"));
  EXPECT_THAT(Submit(*bob, "alice"),
              Denied("in the name of 'alice', and its caller's certificate is that of bob",
                     "leave the name out"));
  EXPECT_THAT(Submit(*rita, ""), Denied("rita has the role read", "--role submit --replace"));
  // Looking is for all.
  v1::GetJobRequest get;
  get.set_job_id(job);
  EXPECT_OK(Call(*rita, &v1::Scheduler::Stub::GetJob, get));
  // Acting on a job is for its owner, and for operators.
  const std::string others = fmt::format("for job {} of alice asks for the role operate", job);
  EXPECT_THAT(Cancel(*bob, job), Denied("bob has the role submit", others));
  EXPECT_THAT(Resume(*bob, job), Denied("bob has the role submit", others));
  EXPECT_OK(Cancel(*alice, job));
  EXPECT_OK(Resume(*alice, job));
  EXPECT_OK(Cancel(*olga, job));
  EXPECT_OK(Cancel(*olga, second));
  EXPECT_THAT(Cancel(*alice, "none"), StatusIs(StatusCode::kNotFound, HasSubstr("none")));
  // The owner's code runs for the job, so not even an operator serves it.
  for (const auto& stub : {bob.get(), olga.get()}) {
    EXPECT_THAT(Serve(*stub, job, "alice"), Denied("belongs to alice", "is for its owner alone"));
  }
  EXPECT_THAT(Serve(*alice, job, ""), StatusIs(StatusCode::kFailedPrecondition,
                                               HasSubstr("has no part that a process serves")));
}

// Strangers and members whose role is another are in the audit, and fill it with few entries.
TEST_F(ServiceKeysTest, RefusalsAreAuditedAndFew) {
  Issue("rita", Role::kRead);
  Issue("olga", Role::kOperate);
  Issue("former", Role::kAdmin);
  ASSERT_OK(farm_.Revoke("former"));
  const auto rita = As("rita"), olga = As("olga"), former = As("former");
  const auto nobody = v1::Scheduler::NewStub(MakeStrangersChannel(server_->address()));
  for (int i = 0; i < 30; ++i) {
    EXPECT_FALSE(Submit(*rita, "olga").ok());
    EXPECT_FALSE(Cancel(*nobody, "a job").ok());
  }
  // His name is not believed any more, once the server has seen the list.
  EXPECT_TRUE(Eventually([&] {
    return Call(*former, &v1::Scheduler::Stub::ListJobs, v1::ListJobsRequest()).status().code() ==
           StatusCode::kUnauthenticated;
  }));
  EXPECT_THAT(Cancel(*former, "a job"), StatusIs(StatusCode::kUnauthenticated, testing::_));
  ASSERT_OK_AND_ASSIGN(const v1::ListAuditReply reply,
                       Call(*olga, &v1::Scheduler::Stub::ListAudit, v1::ListAuditRequest()));
  std::map<std::string, int> entries;
  for (const v1::AuditEntry& entry : reply.entries()) {
    ++entries[fmt::format("{} {}", entry.user(), entry.call())];
    EXPECT_THAT(entry.refused(), testing::AnyOf(HasSubstr("rita has the role read"),
                                                HasSubstr("asks for a certificate")));
  }
  EXPECT_THAT(entries, testing::ElementsAre(testing::Pair(" Scheduler.CancelJob", 10),
                                            testing::Pair("rita Scheduler.Submit", 10)));
}

TEST_F(ServiceKeysTest, AModelIsReplacedByOperatorsAlone) {
  Issue("alice", Role::kSubmit);
  Issue("olga", Role::kOperate);
  ASSERT_OK(store_->AddModel({.name = "m", .file = "a model"}, false));
  const auto alice = As("alice"), olga = As("olga");
  v1::TrainModelRequest request;
  request.set_name("m");
  request.mutable_records()->set_target("llvm");
  for (const bool grown : {false, true}) {
    request.clear_replace();
    request.clear_if_grown();
    grown ? request.set_if_grown(0.5) : request.set_replace(true);
    EXPECT_THAT(Call(*alice, &v1::Scheduler::Stub::TrainModel, request),
                Denied("alice has the role submit", "for cost model 'm' of the farm"));
  }
  // There is nothing to train on.
  EXPECT_THAT(
      Call(*olga, &v1::Scheduler::Stub::TrainModel, request).status().code(),
      testing::AllOf(testing::Ne(StatusCode::kOk), testing::Ne(StatusCode::kPermissionDenied)));
  request.set_name("another");
  EXPECT_NE(Call(*alice, &v1::Scheduler::Stub::TrainModel, request).status().code(),
            StatusCode::kPermissionDenied);
  ASSERT_OK_AND_ASSIGN(const auto entries, store_->Audit("alice", 0, 10));
  EXPECT_THAT(entries,
              testing::Contains(testing::Field(&store::AuditRow::call, "Scheduler.TrainModel")));
}

TEST_F(ServiceKeysTest, WorkersAreSteeredByOperatorsInTheirOwnName) {
  Issue("alice", Role::kSubmit);
  Issue("olga", Role::kOperate);
  v1::SetWorkerModeRequest request;
  request.set_worker("r1");
  request.set_mode(v1::WORKER_PAUSED);
  request.set_user("alice: a new driver");
  EXPECT_THAT(Call(*As("alice"), &v1::Scheduler::Stub::SetWorkerMode, request),
              Denied("alice has the role submit", "operate"));
  EXPECT_THAT(wishes_, testing::IsEmpty());
  EXPECT_OK(Call(*As("olga"), &v1::Scheduler::Stub::SetWorkerMode, request));
  EXPECT_THAT(wishes_, testing::ElementsAre(AllOf(testing::StartsWith("olga at "),
                                                  testing::EndsWith("Z: a new driver"))));
  ASSERT_OK_AND_ASSIGN(const auto entries, store_->Audit("olga", 0, 10));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].subject, "worker r1: paused, a new driver");
}

TEST_F(ServiceKeysTest, AJobWithOwnBuildsIsRefusedBeforeItRuns) {
  Issue("alice", Role::kSubmit);
  v1::SubmitRequest request;
  *request.mutable_spec() = TestJob(1);
  request.mutable_spec()->clear_user();
  request.mutable_spec()->mutable_served()->set_builds(4);
  EXPECT_THAT(Call(*As("alice"), &v1::Scheduler::Stub::Submit, request),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("nobody signs")));
}

}  // namespace
}  // namespace kiln::scheduler
