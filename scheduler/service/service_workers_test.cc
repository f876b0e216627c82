// Tests that an operator's wish for a worker goes to the tracker, in his name, and into the audit.
#include "base/clock.h"
#include "base/server/grpc_server.h"
#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "rpc/channel.h"
#include "scheduler/dispatch/workers_testing.h"
#include "scheduler/service/service.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Stub = v1::Scheduler::Stub;

class ServiceWorkersTest : public testing::Test {
 protected:
  ServiceWorkersTest() {
    SchedulerService::Options options;
    options.clock = &clock_;
    options.set_worker_mode = [this](const v1::SetWorkerModeRequest& request) {
      asked_.push_back(request);
      return answer_;
    };
    Serve(options);
  }
  ~ServiceWorkersTest() override {
    service_->Stop();
    server_->Shutdown(absl::Seconds(1));
  }

  void Serve(const SchedulerService::Options& options) {
    server_.reset();
    service_ = std::make_unique<SchedulerService>(*store_, jobs_, events_, options);
    auto server = GrpcServer::Start({.services = {service_.get()}});
    KILN_CHECK(server.ok(), "{}", server.status().ToString());
    server_ = *std::move(server);
    stub_ = v1::Scheduler::NewStub(MakeChannel(server_->address()));
  }
  StatusOr<v1::SetWorkerModeReply> Ask(const std::string& worker, v1::WorkerMode mode,
                                       const std::string& user) {
    v1::SetWorkerModeRequest request;
    request.set_worker(worker);
    request.set_mode(mode);
    request.set_user(user);
    grpc::ClientContext context;
    v1::SetWorkerModeReply reply;
    const grpc::Status status = stub_->SetWorkerMode(&context, request, &reply);
    if (!status.ok()) return FromGrpc(status);
    return reply;
  }
  // Returns "USER CALL SUBJECT" of the entries, the newest first; with the reason of a refusal.
  std::vector<std::string> Audit() {
    std::vector<std::string> entries;
    const auto rows = store_->Audit("", 0, 100);
    EXPECT_OK(rows);
    for (const store::AuditRow& row : *rows) {
      entries.push_back(fmt::format("{} {} {}{}", row.user, row.call, row.subject,
                                    row.refused.empty() ? "" : " REFUSED " + row.refused));
    }
    return entries;
  }

  FakeClock clock_{
      absl::FromCivil(absl::CivilSecond(2026, 11, 29, 14, 2, 11), absl::UTCTimeZone())};
  std::vector<v1::SetWorkerModeRequest> asked_;
  StatusOr<v1::SetWorkerModeReply> answer_ = v1::SetWorkerModeReply();
  EventHub events_;
  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  FakeCluster cluster_;
  Jobs jobs_{*store_, cluster_.factory(), events_, Jobs::Options()};
  std::unique_ptr<SchedulerService> service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<Stub> stub_;
};

TEST_F(ServiceWorkersTest, TheTrackerGetsTheWishWithItsTime) {
  answer_->add_workers("a1b2c3");
  ASSERT_OK_AND_ASSIGN(const v1::SetWorkerModeReply reply,
                       Ask("a1b2", v1::WORKER_PAUSED, "ada: a new driver"));
  EXPECT_THAT(reply.workers(), ElementsAre("a1b2c3"));
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].worker(), "a1b2");
  EXPECT_EQ(asked_[0].mode(), v1::WORKER_PAUSED);
  EXPECT_EQ(asked_[0].user(), "ada at 2026-11-29T14:02:11Z: a new driver");
  EXPECT_OK(Ask("a1b2", v1::WORKER_SERVES, ""));
  EXPECT_EQ(asked_[1].user(), "an operator at 2026-11-29T14:02:11Z");
  EXPECT_THAT(Audit(), ElementsAre(" Scheduler.SetWorkerMode worker a1b2c3: serves",
                                   "ada Scheduler.SetWorkerMode worker a1b2c3: paused, a new "
                                   "driver"));
}

TEST_F(ServiceWorkersTest, ATimeThatIsToldIsNotBelieved) {
  ASSERT_OK(Ask("w", v1::WORKER_DRAINS, "ada at 2001-01-01T00:00:00Z: x"));
  EXPECT_EQ(asked_[0].user(), "ada at 2026-11-29T14:02:11Z: x");
}

TEST_F(ServiceWorkersTest, TheTrackersRefusalIsTheAnswer) {
  answer_ = NotFound("no worker has the id 'w'; this tracker knows 1 worker: a1 at box:9490");
  EXPECT_THAT(Ask("w", v1::WORKER_PAUSED, "ada"),
              StatusIs(StatusCode::kNotFound, HasSubstr("knows 1 worker: a1 at box:9490")));
  answer_ = Unavailable("the tracker at head:9190 cannot be asked");
  EXPECT_THAT(Ask("w", v1::WORKER_PAUSED, "ada"),
              StatusIs(StatusCode::kUnavailable, HasSubstr("head:9190")));
  EXPECT_THAT(Audit(), ElementsAre("ada Scheduler.SetWorkerMode worker w: paused REFUSED the "
                                   "tracker at head:9190 cannot be asked",
                                   HasSubstr("REFUSED no worker has the id 'w'")));
}

TEST_F(ServiceWorkersTest, TextsThatDoNotFitAreRefused) {
  EXPECT_THAT(Ask("w", v1::WORKER_PAUSED, "ada: " + std::string(129, 'x')),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("the reason has 129 bytes, at most 128 are kept")));
  EXPECT_THAT(Ask("w", v1::WORKER_PAUSED, std::string(97, 'x')),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("the operator's name has 97")));
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_OK(Ask("w", v1::WORKER_PAUSED, "ada: " + std::string(128, 'x')));
  EXPECT_OK(Ask("w", v1::WORKER_PAUSED, "ada: two\nlines"));
  EXPECT_THAT(asked_[1].user(), Not(HasSubstr("\n")));
}

TEST_F(ServiceWorkersTest, WithoutATrackerTheCallIsRefused) {
  Serve({});
  EXPECT_THAT(Ask("w", v1::WORKER_PAUSED, "ada"),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("asks no tracker")));
}

}  // namespace
}  // namespace kiln::scheduler
