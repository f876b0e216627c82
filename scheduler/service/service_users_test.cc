// Tests the calls about users: limits, pauses, and who did what.
#include "base/server/grpc_server.h"
#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "rpc/channel.h"
#include "scheduler/dispatch/workers_testing.h"
#include "scheduler/fair_share/shared_leases.h"
#include "scheduler/service/service.h"
#include "scheduler/values/job_testing.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Stub = v1::Scheduler::Stub;

class ServiceUsersTest : public testing::Test {
 protected:
  ServiceUsersTest() {
    KILN_CHECK(shares_.Start().ok());
    Jobs::Options options;
    options.dispatch = QuickDispatch();
    options.shares = &shares_;
    jobs_ =
        std::make_unique<Jobs>(*store_, ShareFairly(cluster_.factory(), shares_), events_, options);
    KILN_CHECK(jobs_->Start().ok());
    service_ = std::make_unique<SchedulerService>(*store_, *jobs_, events_,
                                                  SchedulerService::Options{.shares = &shares_});
    auto server = GrpcServer::Start({.services = {service_.get()}});
    KILN_CHECK(server.ok(), "{}", server.status().ToString());
    server_ = *std::move(server);
    stub_ = v1::Scheduler::NewStub(MakeChannel(server_->address()));
  }
  ~ServiceUsersTest() override {
    service_->Stop();
    jobs_->Stop();
    server_->Shutdown(absl::Seconds(1));
    jobs_.reset();
  }

  template <typename Request, typename Reply>
  StatusOr<Reply> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                       const Request& request) {
    grpc::ClientContext context;
    Reply reply;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &reply);
    if (!status.ok()) return FromGrpc(status);
    return reply;
  }
  StatusOr<v1::SubmitReply> Submit(uint32_t trials) {
    v1::SubmitRequest request;
    *request.mutable_spec() = TestJob(trials);
    return Call(&Stub::Submit, request);
  }
  Status Set(const v1::UserShare& user) {
    v1::SetUserRequest request;
    *request.mutable_user() = user;
    return Call(&Stub::SetUser, request).status();
  }
  v1::UserShare User(const std::string& name) {
    const auto reply = Call(&Stub::ListUsers, v1::ListUsersRequest());
    EXPECT_OK(reply);
    for (const v1::UserShare& user : reply->users()) {
      if (user.name() == name) return user;
    }
    return {};
  }
  // Returns "USER CALL SUBJECT" of the entries, the newest first; with " REFUSED" where it was.
  std::vector<std::string> Audit(const v1::ListAuditRequest& request = {}) {
    const auto reply = Call(&Stub::ListAudit, request);
    EXPECT_OK(reply);
    std::vector<std::string> entries;
    for (const v1::AuditEntry& entry : reply->entries()) {
      entries.push_back(fmt::format("{} {} {}{}", entry.user(), entry.call(), entry.subject(),
                                    entry.refused().empty() ? "" : " REFUSED"));
      EXPECT_GT(entry.at_s(), 1.7e9);
    }
    return entries;
  }

  EventHub events_;
  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  FakeCluster cluster_;
  FairShares shares_{*store_, {}};
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<SchedulerService> service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<Stub> stub_;
};

TEST_F(ServiceUsersTest, LimitsAreSetShownAndKept) {
  v1::UserShare user;
  user.set_name("ada");
  user.set_weight(3);
  user.set_trials_per_day(30);
  user.set_jobs(5);
  ASSERT_OK(Set(user));
  const auto first = Submit(20);
  ASSERT_OK(first);
  EXPECT_THAT(Submit(11), StatusIs(StatusCode::kResourceExhausted, HasSubstr("his limit is 30")));
  const v1::UserShare now = User("ada");
  EXPECT_EQ(now.weight(), 3);
  EXPECT_EQ(now.trials_per_day(), 30u);
  EXPECT_EQ(now.jobs_now(), 1u);
  EXPECT_EQ(now.devices_now(), 0u);
  user.set_weight(-1);
  EXPECT_THAT(Set(user), StatusIs(StatusCode::kInvalidArgument, HasSubstr("weight")));
  EXPECT_THAT(Set({}), StatusIs(StatusCode::kInvalidArgument, HasSubstr("no name")));
  // The newest entry comes first, and what was refused is there.
  EXPECT_THAT(
      Audit(),
      ElementsAre(" Scheduler.SetUser user REFUSED", " Scheduler.SetUser user ada REFUSED",
                  "ada Scheduler.Submit a job REFUSED",
                  "ada Scheduler.Submit job " + first->job_id(), " Scheduler.SetUser user ada"));
  v1::ListAuditRequest of_ada;
  of_ada.set_user("ada");
  of_ada.set_limit(1);
  EXPECT_THAT(Audit(of_ada), ElementsAre("ada Scheduler.Submit a job REFUSED"));
  v1::ListAuditRequest later;
  later.set_since_s(4e9);
  EXPECT_THAT(Audit(later), testing::IsEmpty());
}

TEST_F(ServiceUsersTest, OneUserIsShownWithoutTheSumsOfHisRecords) {
  v1::UserShare user;
  for (const char* name : {"ada", "bob"}) {
    user.set_name(name);
    user.set_devices(2);
    ASSERT_OK(Set(user));
  }
  ASSERT_OK(Submit(20));
  v1::ListUsersRequest request;
  request.set_name("ada");
  ASSERT_OK_AND_ASSIGN(v1::ListUsersReply reply, Call(&Stub::ListUsers, request));
  ASSERT_EQ(reply.users_size(), 1);
  EXPECT_EQ(reply.users(0).name(), "ada");
  EXPECT_EQ(reply.users(0).jobs_now(), 1u);
  request.set_without_sums(true);
  ASSERT_OK_AND_ASSIGN(reply, Call(&Stub::ListUsers, request));
  ASSERT_EQ(reply.users_size(), 1);
  EXPECT_EQ(reply.users(0).devices(), 2u);
  EXPECT_EQ(reply.users(0).jobs_now(), 0u);
  request.set_name("nobody");
  ASSERT_OK_AND_ASSIGN(reply, Call(&Stub::ListUsers, request));
  EXPECT_EQ(reply.users_size(), 0);
}

TEST_F(ServiceUsersTest, APausedJobIsShownAsPausedAndChargedNoMore) {
  FakeBuilder builder;
  FakeRunner runner([](auto&, const auto&, auto&) {
    absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::OK;
  });
  cluster_.AddBuilder(builder, "b1", 2);
  cluster_.AddRunner(runner, "r1");
  const auto submitted = Submit(100'000);
  ASSERT_OK(submitted);
  v1::PauseJobRequest pause;
  pause.set_job_id(submitted->job_id());
  ASSERT_TRUE(Eventually([&] { return User("ada").devices_now() == 1; }));
  ASSERT_TRUE(Eventually([&] { return User("ada").used_device_s() > 0.02; }));
  ASSERT_OK(Call(&Stub::PauseJob, pause));
  ASSERT_TRUE(Eventually([&] { return User("ada").devices_now() == 0; }));
  v1::GetJobRequest get;
  get.set_job_id(submitted->job_id());
  EXPECT_EQ(Call(&Stub::GetJob, get)->state(), v1::PAUSED);
  const double used_s = User("ada").used_device_s();
  absl::SleepFor(absl::Milliseconds(30));
  EXPECT_LE(User("ada").used_device_s(), used_s);
  EXPECT_EQ(User("ada").jobs_now(), 1u);
  v1::ResumeJobRequest resume;
  resume.set_job_id(submitted->job_id());
  ASSERT_OK(Call(&Stub::ResumeJob, resume));
  EXPECT_TRUE(Eventually([&] { return User("ada").devices_now() == 1; }));
  v1::CancelJobRequest cancel;
  cancel.set_job_id(submitted->job_id());
  ASSERT_OK(Call(&Stub::CancelJob, cancel));
  EXPECT_THAT(Call(&Stub::PauseJob, pause),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("already cancelled")));
  pause.set_job_id("nobody");
  EXPECT_THAT(Call(&Stub::PauseJob, pause), StatusIs(StatusCode::kNotFound, HasSubstr("nobody")));
  const std::string job = "job " + submitted->job_id();
  EXPECT_THAT(Audit(), ElementsAre(" Scheduler.PauseJob job nobody REFUSED",
                                   " Scheduler.PauseJob " + job + " REFUSED",
                                   " Scheduler.CancelJob " + job, " Scheduler.ResumeJob " + job,
                                   " Scheduler.PauseJob " + job, "ada Scheduler.Submit " + job));
}

}  // namespace
}  // namespace kiln::scheduler
