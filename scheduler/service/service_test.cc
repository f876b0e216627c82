#include "scheduler/service/service.h"

#include <functional>
#include <thread>

#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "rpc/channel.h"
#include "scheduler/dispatch/workers_testing.h"
#include "scheduler/service/watch.h"
#include "scheduler/values/job_testing.h"
#include "store/memory_store.h"
#include "store/record_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

v1::ListReply TwoGpus() {
  v1::ListReply list;
  for (const char* uuid : {"GPU-aa", "GPU-bb"}) {
    v1::WorkerState& runner = *list.add_workers();
    runner.set_kind(v1::RUNNER);
    runner.set_device("Null 1");
    for (const char* key : {"null", "Null 1", uuid}) runner.add_keys(key);
  }
  return list;
}

class ServiceTest : public testing::Test {
 protected:
  explicit ServiceTest(const SchedulerService::Options& service_options = {})
      : store_(store::NewMemoryStore()) {
    Jobs::Options options;
    options.dispatch = QuickDispatch();
    jobs_ = std::make_unique<Jobs>(*store_, cluster_.factory(), events_, options);
    KILN_CHECK(jobs_->Start().ok());
    SchedulerService::Options with_workers = service_options;
    with_workers.list_workers = [] { return StatusOr<v1::ListReply>(TwoGpus()); };
    service_ = std::make_unique<SchedulerService>(*store_, *jobs_, events_, with_workers);
    auto server = GrpcServer::Start({.services = {service_.get()}});
    KILN_CHECK(server.ok(), "{}", server.status().ToString());
    server_ = *std::move(server);
    stub_ = v1::Scheduler::NewStub(MakeChannel(server_->address()));
  }
  ~ServiceTest() override {
    service_->Stop();
    jobs_->Stop();
    server_->Shutdown(absl::Seconds(1));
  }

  void AddWorkers(FakeBuilder& builder, FakeRunner& runner) {
    cluster_.AddBuilder(builder, "b1", 2);
    cluster_.AddRunner(runner, "r1");
  }

  template <typename Request, typename Reply>
  StatusOr<Reply> Call(grpc::Status (v1::Scheduler::Stub::*method)(grpc::ClientContext*,
                                                                   const Request&, Reply*),
                       const Request& request) {
    grpc::ClientContext context;
    Reply reply;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &reply);
    if (!status.ok()) return FromGrpc(status);
    return reply;
  }

  std::string Submit(const v1::JobSpec& spec) {
    v1::SubmitRequest request;
    *request.mutable_spec() = spec;
    const auto reply = Call(&v1::Scheduler::Stub::Submit, request);
    EXPECT_OK(reply);
    return reply->job_id();
  }

  struct Watched {
    std::vector<v1::JobEvent> events;
    Status status;
    std::vector<uint32_t> trials() const {
      std::vector<uint32_t> result;
      for (const auto& event : events) {
        if (event.has_record()) result.push_back(event.record().trial());
      }
      return result;
    }
  };
  // `wait` returns when the next event may be taken; false is a failure.
  Watched Watch(
      const std::string& id, uint32_t from_trial = 0,
      const std::function<bool()>& wait = [] { return true; }) {
    v1::WatchJobRequest request;
    request.set_job_id(id);
    request.set_from_trial(from_trial);
    grpc::ClientContext context;
    const auto reader = stub_->WatchJob(&context, request);
    Watched watched;
    v1::JobEvent event;
    while (reader->Read(&event)) {
      watched.events.push_back(event);
      EXPECT_TRUE(wait());
    }
    watched.status = FromGrpc(reader->Finish());
    return watched;
  }

  EventHub events_;
  std::unique_ptr<store::Store> store_;
  FakeCluster cluster_;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<SchedulerService> service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::Scheduler::Stub> stub_;
};

FakeRunner::Hook Slow(int ms) {
  return [ms](auto&, const auto&, auto&) {
    absl::SleepFor(absl::Milliseconds(ms));
    return grpc::Status::OK;
  };
}

TEST_F(ServiceTest, WatchSendsEveryRecordAndEndsWithTheFinalState) {
  FakeBuilder builder;
  FakeRunner runner(Slow(2));
  const std::string id = Submit(TestJob(30));
  std::thread late([&] {
    absl::SleepFor(absl::Milliseconds(50));
    AddWorkers(builder, runner);
  });
  const Watched live = Watch(id);
  late.join();
  ASSERT_OK(live.status);
  EXPECT_EQ(live.trials().size(), 30u);
  ASSERT_GE(live.events.size(), 32u);  // the wait, the records, the end
  EXPECT_THAT(live.events.front().status().tasks(0).spec().dag(), HasSubstr("float32[64, 64]"));
  EXPECT_EQ(live.events.back().status().state(), v1::SUCCEEDED);
  EXPECT_EQ(live.events.back().status().trials_done(), 30u);
  EXPECT_EQ(live.events.back().status().tasks(0).spec().dag(), "");
  for (const auto& event : live.events) {
    if (event.has_status()) {
      EXPECT_EQ(event.status().id(), id);
    }
  }

  const Watched after = Watch(id);
  ASSERT_OK(after.status);
  EXPECT_EQ(after.trials(), live.trials());
  // The status is read once for all records that are there, and stands in the last event again.
  for (size_t i = 0; i < after.events.size(); ++i) {
    EXPECT_EQ(after.events[i].has_status(), i == 0 || i + 1 == after.events.size()) << i;
  }
  const Watched from = Watch(id, 10);
  EXPECT_EQ(from.trials().size(), 20u);
  for (const uint32_t trial : from.trials()) EXPECT_GE(trial, 10u);
}

TEST_F(ServiceTest, TheIdOfARequestStandsWithoutItsTrace) {
  v1::SubmitRequest request;
  *request.mutable_spec() = TestJob(10);  // waits for workers
  request.set_request_id("4f3a");
  request.set_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  ASSERT_OK_AND_ASSIGN(const auto submitted, Call(&v1::Scheduler::Stub::Submit, request));
  v1::GetJobRequest of;
  of.set_job_id(submitted.job_id());
  ASSERT_OK_AND_ASSIGN(const v1::JobStatus job, Call(&v1::Scheduler::Stub::GetJob, of));
  EXPECT_EQ(job.spec().request_id(), "4f3a");
  ASSERT_OK_AND_ASSIGN(const auto list,
                       Call(&v1::Scheduler::Stub::ListJobs, v1::ListJobsRequest()));
  ASSERT_EQ(list.jobs_size(), 1);
  EXPECT_EQ(list.jobs(0).spec().request_id(), "4f3a");
  grpc::ClientContext context;
  v1::WatchJobRequest watched;
  watched.set_job_id(submitted.job_id());
  const auto reader = stub_->WatchJob(&context, watched);
  v1::JobEvent event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.status().spec().request_id(), "4f3a");
  context.TryCancel();
  reader->Finish();
  // The same request is the same job, with its trace.
  ASSERT_OK_AND_ASSIGN(const auto again, Call(&v1::Scheduler::Stub::Submit, request));
  EXPECT_EQ(again.job_id(), submitted.job_id());
}

TEST_F(ServiceTest, ASlowWatcherMissesNothingAndHoldsNothingUp) {
  FakeBuilder builder;
  FakeRunner runner;
  AddWorkers(builder, runner);
  const std::string id = Submit(TestJob(100));
  // The watcher takes a second event when the job has ended.
  const auto ended = [&] {
    return Eventually([&] { return store_->GetJob(id)->state == store::JobState::kSucceeded; });
  };
  const Watched watched = Watch(id, 0, ended);
  ASSERT_OK(watched.status);
  EXPECT_EQ(watched.trials().size(), 100u);
}

TEST_F(ServiceTest, AWatcherThatLeavesIsNoticed) {
  const std::string id = Submit(TestJob(10));  // waits for workers
  v1::WatchJobRequest request;
  request.set_job_id(id);
  grpc::ClientContext context;
  const auto reader = stub_->WatchJob(&context, request);
  v1::JobEvent event;
  ASSERT_TRUE(reader->Read(&event));
  context.TryCancel();
  while (reader->Read(&event)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // A handler that had not ended would delay the end of the server.
  const absl::Time start = absl::Now();
  server_->Shutdown(absl::Seconds(20));
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

TEST_F(ServiceTest, StoppingEndsTheWatch) {
  const std::string id = Submit(TestJob(10));
  std::thread stopper([&] {
    absl::SleepFor(absl::Milliseconds(50));
    service_->Stop();
  });
  EXPECT_THAT(Watch(id).status, StatusIs(StatusCode::kUnavailable, HasSubstr("stopping")));
  stopper.join();
}

TEST_F(ServiceTest, CancelEndsTheWatch) {
  FakeBuilder builder;
  FakeRunner runner(Slow(5));
  AddWorkers(builder, runner);
  const std::string id = Submit(TestJob(100'000));
  std::thread canceller([&] {
    EXPECT_TRUE(Eventually([&] { return runner.measured > 10; }));
    v1::CancelJobRequest request;
    request.set_job_id(id);
    EXPECT_OK(Call(&v1::Scheduler::Stub::CancelJob, request));
  });
  const Watched watched = Watch(id);
  canceller.join();
  ASSERT_OK(watched.status);
  EXPECT_EQ(watched.events.back().status().state(), v1::CANCELLED);
}

TEST_F(ServiceTest, JobsAreListedNewestFirst) {
  const std::string a = Submit(TestJob(10));
  const std::string b = Submit(TestJob(20));
  v1::ListJobsRequest request;
  ASSERT_OK_AND_ASSIGN(const auto all, Call(&v1::Scheduler::Stub::ListJobs, request));
  ASSERT_EQ(all.jobs_size(), 2);
  EXPECT_EQ(all.jobs(0).id(), b);
  EXPECT_EQ(all.jobs(1).id(), a);
  EXPECT_EQ(all.jobs(0).spec().tasks(0).dag(), "");
  request.set_limit(1);
  ASSERT_OK_AND_ASSIGN(const auto one, Call(&v1::Scheduler::Stub::ListJobs, request));
  EXPECT_EQ(one.jobs_size(), 1);
  v1::GetJobRequest get;
  get.set_job_id(a);
  ASSERT_OK_AND_ASSIGN(const auto status, Call(&v1::Scheduler::Stub::GetJob, get));
  EXPECT_EQ(status.spec().options().trials(), 10u);
  EXPECT_THAT(status.spec().tasks(0).dag(), HasSubstr("float32"));
  EXPECT_GT(status.created_s(), 0);
}

TEST_F(ServiceTest, UnfinishedJobsAreListedHoweverManyOthersAreNewer) {
  const std::string a = Submit(TestJob(10));
  const std::string b = Submit(TestJob(20));
  for (const store::JobState state : {store::JobState::kSucceeded, store::JobState::kFailed,
                                      store::JobState::kCancelled, store::JobState::kPaused}) {
    ASSERT_OK(store_->AddJob({.id = std::string(store::JobStateName(state)), .state = state}));
  }
  v1::ListJobsRequest request;
  request.set_unfinished(true);
  ASSERT_OK_AND_ASSIGN(const auto all, Call(&v1::Scheduler::Stub::ListJobs, request));
  ASSERT_EQ(all.jobs_size(), 2);
  EXPECT_EQ(all.jobs(0).id(), b);
  EXPECT_EQ(all.jobs(1).id(), a);
  request.set_limit(1);
  ASSERT_OK_AND_ASSIGN(const auto one, Call(&v1::Scheduler::Stub::ListJobs, request));
  ASSERT_EQ(one.jobs_size(), 1);
  EXPECT_EQ(one.jobs(0).id(), b);
}

TEST_F(ServiceTest, BestAndRecords) {
  FakeBuilder builder;
  FakeRunner runner;
  AddWorkers(builder, runner);
  v1::JobSpec spec = TestJob(20);
  *spec.add_tasks() = TestTask(32);
  const std::string id = Submit(spec);
  ASSERT_OK(Watch(id).status);

  v1::BestRequest of_job;
  of_job.set_job_id(id);
  ASSERT_OK_AND_ASSIGN(const auto best, Call(&v1::Scheduler::Stub::Best, of_job));
  ASSERT_EQ(best.records_size(), 2);
  EXPECT_EQ(best.records(1).task_index(), 1u);
  EXPECT_THAT(best.records(0).dag(), HasSubstr("float32[64, 64]"));

  v1::BestRequest of_workload;
  of_workload.add_workload_keys(best.records(0).workload_key());
  ASSERT_OK_AND_ASSIGN(const auto same, Call(&v1::Scheduler::Stub::Best, of_workload));
  ASSERT_EQ(same.records_size(), 1);
  EXPECT_EQ(same.records(0).id(), best.records(0).id());
  of_workload.set_target("llvm");
  ASSERT_OK_AND_ASSIGN(const auto none, Call(&v1::Scheduler::Stub::Best, of_workload));
  EXPECT_EQ(none.records_size(), 0);

  v1::GetRecordRequest get;
  get.set_id(best.records(0).id());
  ASSERT_OK_AND_ASSIGN(const auto record, Call(&v1::Scheduler::Stub::GetRecord, get));
  EXPECT_EQ(record.steps(), best.records(0).steps());
  EXPECT_EQ(record.hardware().num_cores(), 4);

  v1::ListRecordsRequest list;
  list.set_job_id(id);
  grpc::ClientContext context;
  const auto reader = stub_->ListRecords(&context, list);
  v1::Record each;
  int count = 0;
  while (reader->Read(&each)) ++count;
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(count, 20);
}

TEST_F(ServiceTest, Refusals) {
  v1::SubmitRequest submit;
  *submit.mutable_spec() = TestJob(1);
  submit.mutable_spec()->mutable_tasks(0)->set_dag("nonsense");
  EXPECT_THAT(Call(&v1::Scheduler::Stub::Submit, submit),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("task 0")));
  v1::GetJobRequest get;
  get.set_job_id("nobody");
  EXPECT_THAT(Call(&v1::Scheduler::Stub::GetJob, get),
              StatusIs(StatusCode::kNotFound, HasSubstr("nobody")));
  EXPECT_THAT(Watch("nobody").status, StatusIs(StatusCode::kNotFound, HasSubstr("nobody")));
  v1::CancelJobRequest cancel;
  cancel.set_job_id("nobody");
  EXPECT_THAT(Call(&v1::Scheduler::Stub::CancelJob, cancel),
              StatusIs(StatusCode::kNotFound, HasSubstr("nobody")));
  v1::BestRequest best;
  EXPECT_THAT(Call(&v1::Scheduler::Stub::Best, best),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("neither")));
  best.set_job_id("nobody");
  EXPECT_THAT(Call(&v1::Scheduler::Stub::Best, best),
              StatusIs(StatusCode::kNotFound, HasSubstr("nobody")));
  best.add_workload_keys("x");
  EXPECT_THAT(Call(&v1::Scheduler::Stub::Best, best),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("both")));
  v1::GetRecordRequest record;
  record.set_id(77);
  EXPECT_THAT(Call(&v1::Scheduler::Stub::GetRecord, record),
              StatusIs(StatusCode::kNotFound, HasSubstr("77")));
}

TEST_F(ServiceTest, LargeFieldsAreRefusedByName) {
  v1::SubmitRequest request;
  *request.mutable_spec() = TestJob(1);
  request.mutable_spec()->set_name(std::string(2 << 20, 'x'));
  EXPECT_THAT(Call(&v1::Scheduler::Stub::Submit, request),
              StatusIs(StatusCode::kInvalidArgument,
                       "JobSpec.name has 2097152 bytes, at most 1024 are accepted"));
}

// Streams whose client stands still.
class StandstillTest : public ServiceTest {
 protected:
  StandstillTest() : StandstillTest({.most = 3, .standstill = absl::Milliseconds(300)}) {}
  explicit StandstillTest(const Streams::Options& options) : ServiceTest({.streams = options}) {}

  struct Import {
    grpc::ClientContext context;
    v1::ImportRecordsReply reply;
    std::unique_ptr<grpc::ClientWriter<v1::ImportRecordsRequest>> stream;

    bool Write(const std::string& line) {
      v1::ImportRecordsRequest request;
      request.set_line(line);
      return stream->Write(request);
    }
  };
  std::unique_ptr<Import> Open() {
    auto import = std::make_unique<Import>();
    import->stream = stub_->ImportRecords(&import->context, &import->reply);
    return import;
  }
  std::unique_ptr<Import> Begin() {
    auto import = Open();
    EXPECT_TRUE(import->Write("# begins"));
    return import;
  }
};

TEST_F(StandstillTest, AnIdleImportHoldsUpNobodyAndEnds) {
  const auto idle = Begin();
  const auto other = Begin();
  EXPECT_TRUE(other->Write(R"({"i": [["k", "t"], [[], []]], "r": [[1], 0, 1, 1], "v": "v0.2"})"));
  other->stream->WritesDone();
  const grpc::Status done = other->stream->Finish();
  EXPECT_TRUE(done.ok()) << done.error_message();
  EXPECT_EQ(other->reply.imported(), 1u);
  const grpc::Status ended = idle->stream->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(ended.error_message(), HasSubstr("neither sent nor took anything"));
}

TEST_F(StandstillTest, SoManyStreamsAndNoMore) {
  std::vector<std::unique_ptr<Import>> open;
  for (int i = 0; i < 3; ++i) open.push_back(Begin());
  // The first handlers have begun when later calls are refused.
  EXPECT_TRUE(Eventually([&] {
    const auto one_more = Open();  // the call may be refused before it writes
    one_more->stream->WritesDone();
    const grpc::Status status = one_more->stream->Finish();
    return status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
           status.error_message().find("3 streams are open") != std::string::npos;
  }));
  for (const auto& import : open) import->context.TryCancel();
  for (const auto& import : open) import->stream->Finish();
  v1::ListJobsRequest list;
  EXPECT_OK(Call(&v1::Scheduler::Stub::ListJobs, list));
}

// A stream ends when its time is over, and not only at a later look.
TEST_F(ServiceTest, AnIdleStreamEndsAtTheLimitThatIsSaid) {
  constexpr absl::Duration kLimit = absl::Seconds(8);
  SchedulerService service(*store_, *jobs_, events_, {.streams = {.standstill = kLimit}});
  ASSERT_OK_AND_ASSIGN(const auto server, GrpcServer::Start({.services = {&service}}));
  const auto stub = v1::Scheduler::NewStub(MakeChannel(server->address()));
  absl::SleepFor(absl::Milliseconds(200));
  grpc::ClientContext context;
  v1::ImportRecordsReply reply;
  const absl::Time start = absl::Now();
  const auto stream = stub->ImportRecords(&context, &reply);
  const grpc::Status ended = stream->Finish();
  EXPECT_EQ(ended.error_message(),
            "the client neither sent nor took anything for 8 s, which is the limit");
  EXPECT_GE(absl::Now() - start, kLimit);
  // The next look at a stream that had just begun to wait would come after twice the limit.
  EXPECT_LT(absl::Now() - start, 2 * kLimit - absl::Seconds(1));
}

class SharesTest : public StandstillTest {
 protected:
  SharesTest() : StandstillTest({.most = 100, .most_of_caller = 6, .most_of_kind = 4}) {}

  // Returns the error of one more import that sends nothing.
  std::string EndOfOneMore() {
    const auto one_more = Open();
    one_more->stream->WritesDone();
    return one_more->stream->Finish().error_message();
  }
};

TEST_F(SharesTest, OneCallerDoesNotTakeAllStreams) {
  std::vector<std::unique_ptr<Import>> imports;
  for (int i = 0; i < 4; ++i) imports.push_back(Begin());
  EXPECT_TRUE(Eventually([&] {
    return EndOfOneMore() ==
           "4 streams of the kind 'import' are open from ipv4:127.0.0.1, no more are accepted from "
           "one "
           "host; close some, or try again";
  }));
  // Another kind of stream still has room, up to the limit of the caller.
  const std::string id = Submit(TestJob(8));
  v1::WatchJobRequest request;
  request.set_job_id(id);
  grpc::ClientContext contexts[3];
  std::vector<std::unique_ptr<grpc::ClientReader<v1::JobEvent>>> watches;
  v1::JobEvent event;
  for (int i = 0; i < 3; ++i) {
    watches.push_back(stub_->WatchJob(&contexts[i], request));
    EXPECT_EQ(watches.back()->Read(&event), i < 2) << i;
  }
  EXPECT_EQ(
      watches[2]->Finish().error_message(),
      "6 streams are open from ipv4:127.0.0.1, no more are accepted from one host; close some, or "
      "try again");
  for (grpc::ClientContext& context : contexts) context.TryCancel();
  for (const auto& import : imports) import->context.TryCancel();
  for (const auto& import : imports) import->stream->Finish();
}

// A watcher that has no news does not stand still.
TEST_F(StandstillTest, AWatcherMayWaitForLong) {
  const std::string id = Submit(TestJob(8));  // no workers yet
  v1::WatchJobRequest request;
  request.set_job_id(id);
  grpc::ClientContext context;
  const auto stream = stub_->WatchJob(&context, request);
  v1::JobEvent event;
  ASSERT_TRUE(stream->Read(&event));
  absl::SleepFor(absl::Milliseconds(900));
  FakeBuilder builder;
  FakeRunner runner;
  AddWorkers(builder, runner);
  while (stream->Read(&event)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(event.status().state(), v1::SUCCEEDED);
}

TEST_F(ServiceTest, ResumeGoesOnWithACancelledJob) {
  const std::string id = Submit(TestJob(8));
  v1::CancelJobRequest cancel;
  cancel.set_job_id(id);
  ASSERT_OK(Call(&v1::Scheduler::Stub::CancelJob, cancel));
  FakeBuilder builder;
  FakeRunner runner;
  AddWorkers(builder, runner);
  v1::ResumeJobRequest resume;
  resume.set_job_id(id);
  ASSERT_OK(Call(&v1::Scheduler::Stub::ResumeJob, resume));
  EXPECT_TRUE(Eventually([&] { return store_->GetJob(id)->state == store::JobState::kSucceeded; }));
  resume.set_job_id("none");
  EXPECT_THAT(Call(&v1::Scheduler::Stub::ResumeJob, resume),
              StatusIs(StatusCode::kNotFound, HasSubstr("none")));
}

TEST_F(ServiceTest, ImportCountsNewLinesDuplicatesAndErrors) {
  const std::string line =
      R"({"i": [["[\"8c53\", [1, 7]]", "llvm -keys=cpu", [4, 64, 64, 0, 0, 0, 0, 0], "", 0, []], [[], [["FU", 2, [0, 1]]]]], "r": [[0.001], 0, 0.5, 1691392900], "v": "v0.6"})";
  for (const bool again : {false, true}) {
    grpc::ClientContext context;
    v1::ImportRecordsReply reply;
    const auto writer = stub_->ImportRecords(&context, &reply);
    for (const std::string& text : {line + "\n", std::string("# comment"), std::string("{}")}) {
      v1::ImportRecordsRequest request;
      request.set_line(text);
      ASSERT_TRUE(writer->Write(request));
    }
    writer->WritesDone();
    ASSERT_TRUE(writer->Finish().ok());
    EXPECT_EQ(reply.imported(), again ? 0u : 1u);
    EXPECT_EQ(reply.duplicates(), again ? 1u : 0u);
    ASSERT_EQ(reply.errors_size(), 1);
    EXPECT_THAT(reply.errors(0), HasSubstr("line 3"));
  }
  v1::GetJobRequest get;
  get.set_job_id("import");
  ASSERT_OK_AND_ASSIGN(const auto status, Call(&v1::Scheduler::Stub::GetJob, get));
  EXPECT_EQ(status.state(), v1::SUCCEEDED);
  EXPECT_EQ(status.trials_done(), 1u);
  EXPECT_OK(Watch("import").status);
}

TEST_F(ServiceTest, LinesOfAutotvmGoInAndOutAndAway) {
  const std::string line =
      R"({"input": ["llvm", "t", [["TENSOR", [1, 8], "float32"]], {}], "config": {"index": 3, )"
      R"("code_hash": null, "entity": [["tile_k", "sp", [-1, 8]]]}, "result": [[5e-06], 0, 1.5, )"
      R"(1609326547.64094], "version": 0.2, "tvm_version": "0.8.dev0"})";
  grpc::ClientContext import_context;
  v1::ImportRecordsReply reply;
  const auto writer = stub_->ImportRecords(&import_context, &reply);
  for (const std::string& text : {line, line, std::string(R"({"i": ["llvm"], "v": 0.1})")}) {
    v1::ImportRecordsRequest request;
    request.set_line(text);
    ASSERT_TRUE(writer->Write(request));
  }
  writer->WritesDone();
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(reply.imported(), 1u);
  EXPECT_EQ(reply.autotvm(), 1u);
  EXPECT_EQ(reply.duplicates(), 1u);
  EXPECT_EQ(reply.ignored(), 1u);
  const auto listed = [&](const std::string& task) {
    v1::ListAutotvmRecordsRequest request;
    request.set_task(task);
    grpc::ClientContext context;
    const auto reader = stub_->ListAutotvmRecords(&context, request);
    std::vector<std::string> lines;
    for (v1::AutotvmLine each; reader->Read(&each);) lines.push_back(each.line());
    EXPECT_TRUE(reader->Finish().ok());
    return lines;
  };
  EXPECT_EQ(listed(""), std::vector{line});
  EXPECT_EQ(listed("t"), std::vector{line});
  EXPECT_TRUE(listed("u").empty());

  v1::ListAutotvmRecordsRequest list;
  grpc::ClientContext context;
  const auto reader = stub_->ListAutotvmRecords(&context, list);
  v1::AutotvmLine only;
  ASSERT_TRUE(reader->Read(&only));
  EXPECT_FALSE(reader->Read(&only));
  ASSERT_TRUE(reader->Finish().ok());
  v1::DeleteAutotvmRecordsRequest remove;
  remove.add_ids(only.id());
  remove.add_ids(only.id() + 1);
  ASSERT_OK_AND_ASSIGN(const auto deleted,
                       Call(&v1::Scheduler::Stub::DeleteAutotvmRecords, remove));
  EXPECT_EQ(deleted.deleted(), 1u);
  EXPECT_TRUE(listed("").empty());
}

TEST_F(ServiceTest, AKeyOfImportedRecordsIsBound) {
  const auto import = [&](const std::string& steps) {
    grpc::ClientContext context;
    v1::ImportRecordsReply reply;
    const auto writer = stub_->ImportRecords(&context, &reply);
    v1::ImportRecordsRequest request;
    request.set_line(R"({"i": [["[\"f\", 8]", "llvm -keys=cpu"], [[], )" + steps +
                     R"(]], "r": [[0.001], 0, 0.5, 1691392900], "v": "v0.6"})");
    EXPECT_TRUE(writer->Write(request));
    writer->WritesDone();
    EXPECT_TRUE(writer->Finish().ok());
    return reply;
  };
  import(R"([["SP", 1, 0, 8, [4], 1]])");
  import(R"([["SP", 1, 0, 9, [3], 1]])");
  v1::BindKeyRequest bind;
  bind.set_workload_key("[\"f\", 8]");
  bind.set_dag("input A: float32[8]\nB[i: 8] = A[i] + 1.0\n");
  ASSERT_OK_AND_ASSIGN(const auto bound, Call(&v1::Scheduler::Stub::BindKey, bind));
  EXPECT_EQ(bound.bound(), 1u);
  EXPECT_EQ(bound.unfit(), 1u);
  EXPECT_THAT(bound.first_unfit(), HasSubstr("record 2: split #0 (SP) is of a loop of 9"));
  v1::BestRequest best;
  best.set_workload_id(bound.workload_id());
  ASSERT_OK_AND_ASSIGN(const auto of_it, Call(&v1::Scheduler::Stub::Best, best));
  ASSERT_EQ(of_it.records_size(), 1);
  EXPECT_THAT(of_it.records(0).dag(), HasSubstr("B[i: 8]"));
  best.set_target("llvm -model=any");
  ASSERT_OK_AND_ASSIGN(const auto same, Call(&v1::Scheduler::Stub::Best, best));
  EXPECT_EQ(same.records_size(), 1) << "means the same";
  const auto later = import(R"([["SP", 1, 0, 8, [2], 1]])");
  EXPECT_EQ(later.fitting(), 1u);
  bind.set_dag("nonsense");
  EXPECT_THAT(Call(&v1::Scheduler::Stub::BindKey, bind),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("line 1")));
  bind.set_dag("input A: float32[3]\nB[i: 3] = A[i] + 1.0\n");
  EXPECT_THAT(Call(&v1::Scheduler::Stub::BindKey, bind),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("none of the 3 records")));
}

TEST_F(ServiceTest, ADeviceIsKeptByItsKeyAndRefusedWhereItIsNotThere) {
  v1::JobSpec spec = TestJob(1);
  spec.set_device("gpu-b");
  v1::GetJobRequest request;
  request.set_job_id(Submit(spec));
  const auto job = Call(&v1::Scheduler::Stub::GetJob, request);
  ASSERT_OK(job);
  EXPECT_EQ(job->spec().device(), "GPU-bb");
  v1::SubmitRequest wrong;
  *wrong.mutable_spec() = spec;
  wrong.mutable_spec()->set_device("H300");
  EXPECT_THAT(Call(&v1::Scheduler::Stub::Submit, wrong),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("there are: Null 1 (GPU-aa); Null 1 (GPU-bb)")));
  // A target that does not exist is refused without a wait for its runner.
  wrong.mutable_spec()->mutable_tasks(0)->set_target("vax");
  EXPECT_THAT(Call(&v1::Scheduler::Stub::Submit, wrong),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("unknown target 'vax'")));
}

// A process that serves a job over the wire.
class WireProcess {
 public:
  WireProcess(v1::Scheduler::Stub& stub, const std::string& job_id, const std::string& user)
      : stream_(stub.ServeCallbacks(&context_)) {
    v1::CallbackReply first;
    first.set_job_id(job_id);
    first.set_user(user);
    stream_->Write(first);
  }

  // Answers calls of an objective with the first latency of each point, until the stream ends or
  // so many calls have come. Returns the end of the stream.
  Status Answer(int calls = 1 << 20) {
    v1::CallbackRequest request;
    while (calls > 0 && stream_->Read(&request)) {
      // The first message says that the process is accepted, and another one without a call that
      // the job has ended.
      if (request.call_case() == v1::CallbackRequest::CALL_NOT_SET && accepted_)
        stream_->WritesDone();
      accepted_ = true;
      if (!request.has_objective()) continue;
      --calls;
      v1::CallbackReply reply;
      reply.set_number(request.number());
      const auto& latencies = request.objective().latencies_s();
      for (uint32_t i = 0; i < request.objective().points(); ++i)
        reply.add_values(latencies[static_cast<int>(i) * latencies.size() /
                                   static_cast<int>(request.objective().points())]);
      stream_->Write(reply);
    }
    if (calls == 0) context_.TryCancel();
    return FromGrpc(stream_->Finish());
  }
  // Waits until the scheduler takes the process.
  bool IsAccepted() {
    v1::CallbackRequest request;
    accepted_ = stream_->Read(&request);
    return accepted_;
  }
  bool accepted() const { return accepted_; }

  // Answers builds with their source until the job has ended. The first `at_once` are answered
  // together, the newest first.
  Status AnswerBuilds(size_t at_once) {
    v1::CallbackRequest request;
    std::vector<v1::CallbackRequest> held;
    while (stream_->Read(&request)) {
      if (!request.has_build()) {
        if (accepted_) stream_->WritesDone();
        accepted_ = true;
        continue;
      }
      held.push_back(request);
      if (held.size() < at_once) continue;
      at_once = 1;
      for (; !held.empty(); held.pop_back()) {
        v1::CallbackReply reply;
        reply.set_number(held.back().number());
        reply.set_binary("binary from " + held.back().build().source());
        stream_->Write(reply);
      }
    }
    return FromGrpc(stream_->Finish());
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::CallbackReply, v1::CallbackRequest>> stream_;
  bool accepted_ = false;
};

v1::JobSpec ServedJob() {
  v1::JobSpec spec = TestJob(20);
  spec.mutable_served()->set_objective(true);
  return spec;
}

TEST_F(ServiceTest, AProcessServesAJobUntilItsEnd) {
  FakeBuilder builder;
  FakeRunner runner;
  AddWorkers(builder, runner);
  const std::string id = Submit(ServedJob());
  WireProcess process(*stub_, id, "ada");
  EXPECT_OK(process.Answer());
  v1::GetJobRequest request;
  request.set_job_id(id);
  const auto job = Call(&v1::Scheduler::Stub::GetJob, request);
  ASSERT_OK(job);
  EXPECT_EQ(job->state(), v1::SUCCEEDED) << job->message();
  EXPECT_EQ(job->trials_done(), 20u);
}

// Two builds are under way at once, or the process would wait for the second one.
TEST_F(ServiceTest, AProcessBuildsSeveralCandidatesAtOnce) {
  FakeBuilder builder;
  FakeRunner runner;
  AddWorkers(builder, runner);
  v1::JobSpec spec = TestJob(20);
  spec.mutable_options()->set_trials_per_round(10);
  spec.mutable_served()->set_builds(2);
  const std::string id = Submit(spec);
  WireProcess process(*stub_, id, "ada");
  EXPECT_OK(process.AnswerBuilds(2));
  v1::GetJobRequest request;
  request.set_job_id(id);
  const auto job = Call(&v1::Scheduler::Stub::GetJob, request);
  ASSERT_OK(job);
  EXPECT_EQ(job->state(), v1::SUCCEEDED) << job->message();
  EXPECT_EQ(job->trials_done(), 20u);
}

TEST_F(ServiceTest, AProcessThatLeavesIsNoticedAndAnotherOneGoesOn) {
  FakeBuilder builder;
  FakeRunner runner;
  AddWorkers(builder, runner);
  const std::string id = Submit(ServedJob());
  v1::GetJobRequest request;
  request.set_job_id(id);
  {
    WireProcess first(*stub_, id, "ada");
    EXPECT_EQ(first.Answer(/*calls=*/2).code(), StatusCode::kCancelled);
  }
  EXPECT_TRUE(Eventually([&] {
    const auto job = Call(&v1::Scheduler::Stub::GetJob, request);
    return job.ok() && job->state() == v1::QUEUED &&
           job->phase().find("waits for the process that serves its objective") == 0;
  }));
  WireProcess second(*stub_, id, "ada");
  EXPECT_OK(second.Answer());
  EXPECT_EQ(Call(&v1::Scheduler::Stub::GetJob, request)->state(), v1::SUCCEEDED);
}

TEST_F(ServiceTest, AProcessThatMayNotServeIsToldWhy) {
  const auto refused = [&](const std::string& job, const std::string& user) {
    WireProcess process(*stub_, job, user);
    const Status end = process.Answer();
    EXPECT_FALSE(process.accepted());
    return end;
  };
  EXPECT_THAT(refused("nobody", "ada"), StatusIs(StatusCode::kNotFound, HasSubstr("nobody")));
  const std::string plain = Submit(TestJob(4));
  EXPECT_THAT(refused(plain, "ada"), StatusIs(StatusCode::kFailedPrecondition,
                                              HasSubstr("has no part that a process serves")));
  const std::string id = Submit(ServedJob());
  EXPECT_THAT(refused(id, "eve"),
              StatusIs(StatusCode::kPermissionDenied,
                       fmt::format("job {} belongs to 'ada', and 'eve' offers to serve it; only "
                                   "its user may",
                                   id)));
  {
    WireProcess first(*stub_, id, "ada");
    ASSERT_TRUE(first.IsAccepted());
    EXPECT_THAT(refused(id, "ada"),
                StatusIs(StatusCode::kAlreadyExists, HasSubstr("another process serves job")));
    v1::CancelJobRequest cancel;
    cancel.set_job_id(id);
    EXPECT_OK(Call(&v1::Scheduler::Stub::CancelJob, cancel));
    EXPECT_OK(first.Answer());
  }
  EXPECT_THAT(refused(id, "ada"), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("ended")));
}

TEST(ResultsIntervalTest, ManyWatchersLookSeldomer) {
  EXPECT_EQ(ResultsInterval(0), absl::Milliseconds(50));
  EXPECT_EQ(ResultsInterval(1), absl::Milliseconds(50));
  EXPECT_EQ(ResultsInterval(63), absl::Milliseconds(189));
  EXPECT_EQ(ResultsInterval(100'000), absl::Milliseconds(250));
}

}  // namespace
}  // namespace kiln::scheduler
