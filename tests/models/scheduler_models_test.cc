// Tests the calls of the service about cost models and about the schedule that a computation gets,
// over a channel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/server/grpc_server.h"
#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "client/client.h"
#include "client/remote_models.h"
#include "client/scheduler_context.h"
#include "costmodel/model_file.h"
#include "proto/scheduler.grpc.pb.h"
#include "rpc/channel.h"
#include "scheduler/dispatch/workers_testing.h"
#include "scheduler/service/service.h"
#include "scheduler/values/job_testing.h"
#include "scheduler/version_service.h"
#include "search/choice/context_testing.h"
#include "store/memory_store.h"
#include "training/measured_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A scheduler without workers.
class Service {
 public:
  Service() {
    Jobs::Options options;
    options.dispatch = QuickDispatch();
    jobs_ = std::make_unique<Jobs>(*store_, cluster_.factory(), events_, options);
    KILN_CHECK(jobs_->Start().ok());
    service_ = std::make_unique<SchedulerService>(*store_, *jobs_, events_);
    auto server = GrpcServer::Start({.services = {service_.get(), &version_}});
    KILN_CHECK(server.ok());
    server_ = *std::move(server);
    auto client = client::SchedulerClient::Connect(server_->address(), Secret());
    KILN_CHECK(client.ok(), "{}", Message(client.status()));
    client_ = *std::move(client);
  }
  ~Service() {
    service_->Stop();
    jobs_->Stop();
    server_->Shutdown(absl::Seconds(1));
  }

  store::Store& store() { return *store_; }
  client::SchedulerClient& client() { return *client_; }

 private:
  EventHub events_;
  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  FakeCluster cluster_;
  VersionService version_{AdmissionControl()};
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<SchedulerService> service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<client::SchedulerClient> client_;
};

class ServiceModelsTest : public testing::Test {
 protected:
  ServiceModelsTest() {
    KILN_CHECK(service_.store().AddJob({.id = "measured"}).ok());
    training::AddMeasured(service_.store(), "measured", training::TestTask("matmul", "64,64,64"),
                          64);
  }

  v1::TrainModelRequest Request(const std::string& name) {
    v1::TrainModelRequest request;
    request.set_name(name);
    request.mutable_records()->set_include_errors(true);
    (*request.mutable_parameters())["max_rounds"] = 10;
    return request;
  }

  Service service_;
  std::unique_ptr<client::Models> models_ = client::ModelsOf(service_.client());
};

TEST_F(ServiceModelsTest, AModelIsTrainedListedSentKeptAgainAndDeleted) {
  ASSERT_OK_AND_ASSIGN(const auto trained, models_->Train(Request("m")));
  EXPECT_EQ(trained.reply.model().name(), "m");
  EXPECT_EQ(trained.reply.model().bytes(), trained.file.size());
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile file, costmodel::ParseModelFile(trained.file));
  EXPECT_GT(file.info.programs(), 40);
  EXPECT_THAT(models_->Train(Request("m")),
              StatusIs(StatusCode::kAlreadyExists, HasSubstr("there is a cost model 'm'")));

  ASSERT_OK(models_->Put("n", trained.file, false).status());
  ASSERT_OK_AND_ASSIGN(const auto all, models_->List());
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[1].name(), "n");
  EXPECT_EQ(all[1].info(), all[0].info());
  ASSERT_OK(models_->Delete("m"));
  EXPECT_THAT(models_->Get("m"), StatusIs(StatusCode::kNotFound, HasSubstr("'m'")));
  ASSERT_OK_AND_ASSIGN(const std::string again, models_->Get("n"));
  EXPECT_EQ(again, trained.file);
  EXPECT_THAT(models_->Put("o", "no model", false),
              StatusIs(StatusCode::kDataLoss, HasSubstr("are no cost model")));
  EXPECT_THAT(models_->Put("a name", trained.file, false),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("'a name'")));
}

// The model is larger than a piece of the stream.
TEST_F(ServiceModelsTest, ALargeModelComesInPieces) {
  ASSERT_OK_AND_ASSIGN(const auto trained, models_->Train(Request("m")));
  ASSERT_OK_AND_ASSIGN(costmodel::ModelFile file, costmodel::ParseModelFile(trained.file));
  file.info.sources.assign(1, std::string(3 << 20, 'x'));
  const std::string large = costmodel::PrintModelFile(file);
  ASSERT_OK(models_->Put("large", large, false).status());
  ASSERT_OK_AND_ASSIGN(const std::string back, models_->Get("large"));
  EXPECT_EQ(back, large);
}

TEST_F(ServiceModelsTest, AFileIsTestedAndAskedAsWellAsAKeptModel) {
  ASSERT_OK_AND_ASSIGN(const auto trained, models_->Train(Request("m")));
  v1::PredictRequest predict;
  v1::ScheduledProgram& program = *predict.add_programs();
  program.set_dag(dag::PrintDag(*training::TestTask("matmul", "64,64,64").dag));
  program.set_target("llvm");
  program.set_steps("[]");
  ASSERT_OK_AND_ASSIGN(const auto kept, models_->Test({.name = "m", .bytes = {}}, {}));
  ASSERT_OK_AND_ASSIGN(const auto of_file, models_->Test({.name = {}, .bytes = trained.file}, {}));
  ASSERT_THAT(kept.tasks(), SizeIs(1));
  EXPECT_GT(kept.tasks(0).spearman(), 0.5);
  EXPECT_EQ(of_file.SerializeAsString(), kept.SerializeAsString());
  ASSERT_OK_AND_ASSIGN(const auto one, models_->Predict({.name = "m", .bytes = {}}, predict));
  ASSERT_OK_AND_ASSIGN(const auto other,
                       models_->Predict({.name = {}, .bytes = trained.file}, predict));
  EXPECT_GT(one.predictions(0).seconds(), 0);
  EXPECT_EQ(other.predictions(0).seconds(), one.predictions(0).seconds());
  EXPECT_THAT(models_->Predict({.name = "none", .bytes = {}}, predict),
              StatusIs(StatusCode::kNotFound, HasSubstr("'none'")));
}

TEST_F(ServiceModelsTest, AJobBeginsWithAModelThatIsThereAndFits) {
  ASSERT_OK(models_->Train(Request("m")).status());
  v1::JobSpec spec = TestJob(4);
  spec.mutable_options()->set_policy("sketch.xgb");
  spec.mutable_options()->set_cost_model("m");
  for (v1::TaskSpec& task : *spec.mutable_tasks()) task.set_target("llvm");
  ASSERT_OK(service_.client().Submit(spec).status());
  const auto refused = [&](const std::function<void(v1::JobSpec&)>& change) {
    v1::JobSpec changed = spec;
    change(changed);
    return service_.client().Submit(changed).status();
  };
  EXPECT_THAT(refused([](auto& s) { s.mutable_options()->set_cost_model("none"); }),
              StatusIs(StatusCode::kNotFound, HasSubstr("'none'")));
  EXPECT_THAT(refused([](auto& s) { s.mutable_options()->set_policy("sketch.random"); }),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("learns with no cost model")));
  EXPECT_THAT(refused([](auto& s) { s.mutable_tasks(0)->set_target("cuda -arch=sm_90"); }),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("was trained on llvm")));
  EXPECT_THAT(
      refused([](auto& s) { (*s.mutable_options()->mutable_model_parameters())["growth"] = 0.2; }),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("unknown parameter 'growth'")));
  EXPECT_OK(refused([](auto& s) {
    s.mutable_options()->clear_cost_model();
    (*s.mutable_options()->mutable_model_parameters())["full_growth"] = 0.2;
  }));
}

// ---- which schedule a computation gets ------------------------------------------------------

std::shared_ptr<search::Context> NewSchedulerContext(std::shared_ptr<search::Context> outer,
                                                     bool or_sample) {
  // Each context has a scheduler of its own, because all clients of a scheduler share the set
  // schedules.
  static auto& services = *new std::vector<std::unique_ptr<Service>>;
  services.push_back(std::make_unique<Service>());
  return std::make_shared<client::SchedulerContext>(
      services.back()->client(), client::SchedulerContextOptions{.or_sample = or_sample},
      std::move(outer));
}

}  // namespace
}  // namespace kiln::scheduler

namespace kiln::search {

INSTANTIATE_TEST_SUITE_P(Scheduler, ContextConformance,
                         testing::Values(ContextCase{"scheduler",
                                                     [](auto outer) {
                                                       return scheduler::NewSchedulerContext(
                                                           std::move(outer), false);
                                                     }},
                                         ContextCase{"scheduler_or_sample",
                                                     [](auto outer) {
                                                       return scheduler::NewSchedulerContext(
                                                           std::move(outer), true);
                                                     },
                                                     true, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace kiln::search

namespace kiln::scheduler {
namespace {

TEST(ServiceChoicesTest, WhatOneClientSetsAllAreAnswered) {
  Service service;
  const search::Task task = search::MatmulTask("16,16,16");
  client::SchedulerContext one(service.client(), {}), other(service.client(), {});
  ASSERT_OK(one.Update(task, search::kTilesOf4));
  ASSERT_OK_AND_ASSIGN(const search::Choice choice, other.Query(task));
  EXPECT_EQ(choice.source, search::ChoiceSource::kSet);
  EXPECT_EQ(choice.steps, search::kTilesOf4);
  ASSERT_OK_AND_ASSIGN(const auto pinned, service.client().PinnedSchedules(""));
  ASSERT_THAT(pinned, SizeIs(1));
  EXPECT_EQ(pinned[0].steps, search::kTilesOf4);
  EXPECT_GT(pinned[0].pinned_s, 0);

  v1::SetScheduleRequest request;
  request.set_dag(dag::PrintDag(*task.dag));
  request.set_target("llvm -mcpu=znver4");
  request.set_steps("[[\"SP\", 99, 0, 16, [4], 1]]");
  EXPECT_THAT(service.client().SetSchedule(request),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("do not apply")));
  request.clear_steps();
  ASSERT_OK_AND_ASSIGN(const bool was_set, service.client().SetSchedule(request));
  EXPECT_TRUE(was_set);
  ASSERT_OK_AND_ASSIGN(const search::Choice none, other.Query(task));
  EXPECT_EQ(none.source, search::ChoiceSource::kNone);
}

TEST(ServiceChoicesTest, ARecordIsFoundWithWhatMeasuredIt) {
  Service service;
  ASSERT_OK(service.store().AddJob({.id = "j"}));
  const search::Task task = training::TestTask("matmul", "16,16,16");
  store::Record record = training::RecordOf(task, {}, 2e-6);
  record.job_id = "j";
  ASSERT_OK(service.store().AddRecord(record).status());
  client::SchedulerContext context(service.client(), {});
  ASSERT_OK_AND_ASSIGN(const search::Choice choice, context.Query(task));
  EXPECT_EQ(choice.source, search::ChoiceSource::kRecord);
  EXPECT_EQ(choice.record, "1");
  EXPECT_EQ(choice.cost_s, 2e-6);
  EXPECT_EQ(choice.device, "made up");
  EXPECT_EQ(choice.hardware, task.hardware);
}

TEST(ServiceChoicesTest, AConfigurationOfAutotvmIsALineOfItsLog) {
  Service service;
  const store::AutotvmRecord record = {.target = "cuda -model=t4",
                                       .task = "dense.cuda",
                                       .args = "[1]",
                                       .kwargs = "{}",
                                       .config_index = 7,
                                       .entities = "[]",
                                       .costs_s = {1e-6},
                                       .version = 0.2};
  ASSERT_OK(service.store().ImportAutotvmRecords({&record, 1}).status());
  v1::QueryConfigRequest request;
  request.set_target("cuda");
  request.set_task("dense.cuda");
  request.set_args("[1]");
  grpc::ClientContext context;
  v1::QueryConfigReply reply;
  ASSERT_TRUE(service.client().stub()->QueryConfig(&context, request, &reply).ok());
  EXPECT_THAT(reply.line(), HasSubstr("\"index\": 7"));
  request.set_args("[2]");
  grpc::ClientContext again;
  ASSERT_TRUE(service.client().stub()->QueryConfig(&again, request, &reply).ok());
  EXPECT_THAT(reply.line(), IsEmpty());
}

}  // namespace
}  // namespace kiln::scheduler
