// Calls a scheduler with a store in memory, which runs no job. A job that was taken is there, has a
// status, and is there after a restart. Imported lines are counted exactly.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "scheduler/service/service.h"
#include "store/memory_store.h"
#include "tests/fuzz/targets/calls.h"
#include "tests/fuzz/targets/calls.pb.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace kiln::fuzz {
namespace {

using scheduler::SchedulerService;

constexpr int kMaxCalls = 8;

// Passes streaming calls on to the scheduler of an input. Only those calls need a server.
class Relay : public v1::Scheduler::Service {
 public:
  void Connect(SchedulerService* service) { service_ = service; }

  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::JobEvent>* writer) override {
    return service_->WatchJob(context, request, writer);
  }
  grpc::Status ListRecords(grpc::ServerContext* context, const v1::ListRecordsRequest* request,
                           grpc::ServerWriter<v1::Record>* writer) override {
    return service_->ListRecords(context, request, writer);
  }
  grpc::Status ListAutotvmRecords(grpc::ServerContext* context,
                                  const v1::ListAutotvmRecordsRequest* request,
                                  grpc::ServerWriter<v1::AutotvmLine>* writer) override {
    return service_->ListAutotvmRecords(context, request, writer);
  }
  grpc::Status ImportRecords(grpc::ServerContext* context,
                             grpc::ServerReader<v1::ImportRecordsRequest>* reader,
                             v1::ImportRecordsReply* reply) override {
    return service_->ImportRecords(context, reader, reply);
  }
  grpc::Status ServeCallbacks(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::CallbackRequest, v1::CallbackReply>* stream) override {
    return service_->ServeCallbacks(context, stream);
  }
  grpc::Status GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request,
                        grpc::ServerWriter<v1::ModelPart>* writer) override {
    return service_->GetModel(context, request, writer);
  }
  grpc::Status PutModel(grpc::ServerContext* context, grpc::ServerReader<v1::ModelPart>* reader,
                        v1::CostModel* reply) override {
    return service_->PutModel(context, reader, reply);
  }

 private:
  SchedulerService* service_ = nullptr;
};

// One channel for all inputs, because servers start slowly.
struct Channel {
  Relay relay;
  std::unique_ptr<v1::Scheduler::Stub> stub =
      v1::Scheduler::NewStub(StartInProcess(relay).InProcessChannel({}));
};

Channel& TheChannel() {
  static auto& channel = *new Channel;
  return channel;
}

StatusOr<v1::ListReply> SomeWorkers() {
  v1::ListReply list;
  v1::WorkerState& runner = *list.add_workers();
  runner.set_kind(v1::RUNNER);
  runner.set_device("NVIDIA H200");
  for (const char* key : {"null", "llvm", "cuda", "NVIDIA H200", "GPU-aa"}) runner.add_keys(key);
  return list;
}

std::unique_ptr<scheduler::Jobs> StartJobs(store::Store& store, scheduler::EventHub& events) {
  scheduler::Jobs::Options options;
  options.max_running = 0;
  auto jobs = std::make_unique<scheduler::Jobs>(
      store, [](const scheduler::LeaseSpec&) { return scheduler::Leases(); }, events, options);
  const Status started = jobs->Start();
  KILN_CHECK(started.ok(), "{}", Message(started));
  return jobs;
}

// The scheduler of one input.
class Session {
 public:
  Session() : store_(store::NewMemoryStore()), jobs_(StartJobs(*store_, events_)) {
    SchedulerService::Options options;
    options.list_workers = SomeWorkers;
    service_ = std::make_unique<SchedulerService>(*store_, *jobs_, events_, options);
    TheChannel().relay.Connect(service_.get());
  }

  void Make(SchedulerCall& call);
  // Checks that the next process would find the same jobs.
  void CheckRestart() {
    jobs_ = StartJobs(*store_, events_);
    for (const std::string& id : taken_) {
      const auto job = store_->GetJob(id);
      KILN_CHECK(job.ok(), "{}", Message(job.status()));
      const auto status = jobs_->StatusOf(*job);
      KILN_CHECK(status.ok(), "{}", Message(status.status()));
    }
  }

 private:
  template <typename Request, typename Reply>
  grpc::Status Call(grpc::Status (SchedulerService::*method)(grpc::ServerContext*, const Request*,
                                                             Reply*),
                    const Request& request, Reply& reply) {
    grpc::ServerContext context;
    const grpc::Status status = (service_.get()->*method)(&context, &request, &reply);
    CheckAnswer(status);
    return status;
  }
  template <typename Reply, typename Request>
  void Call(grpc::Status (SchedulerService::*method)(grpc::ServerContext*, const Request*, Reply*),
            const Request& request) {
    Reply reply;
    Call(method, request, reply);
  }
  // Reads all messages.
  template <typename Event, typename Reader>
  std::vector<Event> ReadAll(Reader& reader) {
    std::vector<Event> events;
    for (Event event; reader.Read(&event);) events.push_back(event);
    CheckAnswerFromChannel(reader.Finish());
    return events;
  }

  // Replaces "#2" by the id of the second job that was taken.
  void Name(std::string& job_id) const {
    if (!job_id.starts_with('#')) return;
    const size_t number = static_cast<size_t>(std::atoi(job_id.c_str() + 1));
    if (number >= 1 && number <= taken_.size()) job_id = taken_[number - 1];
  }
  void Submit(const v1::SubmitRequest& request);
  void Cancel(const std::string& job_id);
  void Watch(const v1::WatchJobRequest& request);
  void Import(const ImportRecordsRequests& requests);
  void Serve(const ServeCallbacksReplies& replies);
  void PutModel(const PutModelRequests& requests);
  void ListJobs(const v1::ListJobsRequest& request);

  std::unique_ptr<store::Store> store_;
  scheduler::EventHub events_;
  std::unique_ptr<scheduler::Jobs> jobs_;
  std::unique_ptr<SchedulerService> service_;
  std::vector<std::string> taken_;
};

void Session::Submit(const v1::SubmitRequest& request) {
  v1::SubmitReply reply;
  if (!Call(&SchedulerService::Submit, request, reply).ok()) return;
  KILN_CHECK(!reply.job_id().empty());
  v1::GetJobRequest get;
  get.set_job_id(reply.job_id());
  v1::JobStatus status;
  KILN_CHECK(Call(&SchedulerService::GetJob, get, status).ok());
  KILN_CHECK(status.id() == reply.job_id() && status.tasks_size() > 0);
  if (std::ranges::find(taken_, reply.job_id()) == taken_.end()) taken_.push_back(reply.job_id());
  if (request.request_id().empty()) return;
  v1::SubmitReply repeated;
  KILN_CHECK(Call(&SchedulerService::Submit, request, repeated).ok());
  KILN_CHECK(repeated.job_id() == reply.job_id(), "request {}", request.request_id());
}

void Session::Cancel(const std::string& job_id) {
  v1::CancelJobRequest request;
  request.set_job_id(job_id);
  Call<v1::CancelJobReply>(&SchedulerService::CancelJob, request);
}

// Watches a job. A job that does not end would be watched for ever, so it is cancelled when the
// watch has begun.
void Session::Watch(const v1::WatchJobRequest& request) {
  grpc::ClientContext context;
  const auto reader = TheChannel().stub->WatchJob(&context, request);
  v1::JobEvent event;
  const bool there = reader->Read(&event);
  if (there) Cancel(request.job_id());
  const auto rest = ReadAll<v1::JobEvent>(*reader);
  if (!rest.empty()) event = rest.back();
  KILN_CHECK(!there || event.status().state() >= v1::SUCCEEDED, "{}", event.ShortDebugString());
}

void Session::Import(const ImportRecordsRequests& requests) {
  grpc::ClientContext context;
  v1::ImportRecordsReply reply;
  const auto writer = TheChannel().stub->ImportRecords(&context, &reply);
  for (const v1::ImportRecordsRequest& request : requests.requests()) {
    if (!writer->Write(request)) break;
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  CheckAnswerFromChannel(status);
  if (!status.ok()) return;
  const auto lines = static_cast<uint64_t>(requests.requests_size());
  KILN_CHECK(reply.imported() + reply.duplicates() + reply.refused() <= lines, "{}",
             reply.ShortDebugString());
}

// Answers calls with the replies in their order, then disconnects. A job that calls no more is
// cancelled.
void Session::Serve(const ServeCallbacksReplies& replies) {
  grpc::ClientContext context;
  const auto stream = TheChannel().stub->ServeCallbacks(&context);
  std::string job_id;
  for (v1::CallbackReply reply : replies.replies()) {
    Name(*reply.mutable_job_id());
    if (job_id.empty()) job_id = reply.job_id();
    v1::CallbackRequest request;
    if (!stream->Write(reply)) break;
    Cancel(job_id);
    if (!stream->Read(&request)) break;
  }
  context.TryCancel();
  stream->Finish();
}

void Session::PutModel(const PutModelRequests& requests) {
  grpc::ClientContext context;
  v1::CostModel reply;
  const auto writer = TheChannel().stub->PutModel(&context, &reply);
  for (const v1::ModelPart& part : requests.requests()) {
    if (!writer->Write(part)) break;
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  CheckAnswerFromChannel(status);
  if (!status.ok()) return;
  v1::ListModelsReply models;
  KILN_CHECK(Call(&SchedulerService::ListModels, v1::ListModelsRequest(), models).ok());
  KILN_CHECK(std::ranges::any_of(
      models.models(), [&](const v1::CostModel& model) { return model.name() == reply.name(); }));
}

void Session::ListJobs(const v1::ListJobsRequest& request) {
  v1::ListJobsReply reply;
  KILN_CHECK(Call(&SchedulerService::ListJobs, request, reply).ok());
  // A job that has ended may be left out then.
  if (request.limit() > 0 || request.unfinished()) return;
  const std::set<std::string> taken(taken_.begin(), taken_.end());
  size_t found = 0;
  for (const v1::JobStatus& job : reply.jobs()) found += taken.contains(job.id());
  KILN_CHECK(found == taken.size(), "{} of {} jobs are listed", found, taken.size());
}

void Session::Make(SchedulerCall& call) {
  grpc::ClientContext context;
  switch (call.call_case()) {
    case SchedulerCall::kSubmit:
      return Submit(call.submit());
    case SchedulerCall::kGetJob:
      Name(*call.mutable_get_job()->mutable_job_id());
      return Call<v1::JobStatus>(&SchedulerService::GetJob, call.get_job());
    case SchedulerCall::kWatchJob:
      Name(*call.mutable_watch_job()->mutable_job_id());
      return Watch(call.watch_job());
    case SchedulerCall::kCancelJob:
      Name(*call.mutable_cancel_job()->mutable_job_id());
      return Cancel(call.cancel_job().job_id());
    case SchedulerCall::kResumeJob:
      Name(*call.mutable_resume_job()->mutable_job_id());
      return Call<v1::ResumeJobReply>(&SchedulerService::ResumeJob, call.resume_job());
    case SchedulerCall::kBest:
      Name(*call.mutable_best()->mutable_job_id());
      return Call<v1::BestReply>(&SchedulerService::Best, call.best());
    case SchedulerCall::kGetRecord:
      return Call<v1::Record>(&SchedulerService::GetRecord, call.get_record());
    case SchedulerCall::kListRecords: {
      Name(*call.mutable_list_records()->mutable_job_id());
      const auto reader = TheChannel().stub->ListRecords(&context, call.list_records());
      ReadAll<v1::Record>(*reader);
      return;
    }
    case SchedulerCall::kListAutotvmRecords: {
      const auto reader =
          TheChannel().stub->ListAutotvmRecords(&context, call.list_autotvm_records());
      ReadAll<v1::AutotvmLine>(*reader);
      return;
    }
    case SchedulerCall::kDeleteRecords:
      return Call<v1::DeleteRecordsReply>(&SchedulerService::DeleteRecords, call.delete_records());
    case SchedulerCall::kDeleteAutotvmRecords:
      return Call<v1::DeleteRecordsReply>(&SchedulerService::DeleteAutotvmRecords,
                                          call.delete_autotvm_records());
    case SchedulerCall::kImportRecords:
      return Import(call.import_records());
    case SchedulerCall::kServeCallbacks:
      return Serve(call.serve_callbacks());
    case SchedulerCall::kBindKey:
      return Call<v1::BindKeyReply>(&SchedulerService::BindKey, call.bind_key());
    case SchedulerCall::kTrainModel:
      return Call<v1::TrainModelReply>(&SchedulerService::TrainModel, call.train_model());
    case SchedulerCall::kListModels:
      return Call<v1::ListModelsReply>(&SchedulerService::ListModels, call.list_models());
    case SchedulerCall::kGetModel: {
      const auto reader = TheChannel().stub->GetModel(&context, call.get_model());
      ReadAll<v1::ModelPart>(*reader);
      return;
    }
    case SchedulerCall::kPutModel:
      return PutModel(call.put_model());
    case SchedulerCall::kDeleteModel:
      return Call<v1::DeleteModelReply>(&SchedulerService::DeleteModel, call.delete_model());
    case SchedulerCall::kTestModel:
      return Call<v1::TestModelReply>(&SchedulerService::TestModel, call.test_model());
    case SchedulerCall::kPredict:
      return Call<v1::PredictReply>(&SchedulerService::Predict, call.predict());
    case SchedulerCall::kQuerySchedule:
      return Call<v1::QueryScheduleReply>(&SchedulerService::QuerySchedule, call.query_schedule());
    case SchedulerCall::kSetSchedule:
      return Call<v1::SetScheduleReply>(&SchedulerService::SetSchedule, call.set_schedule());
    case SchedulerCall::kListPinned:
      return Call<v1::ListPinnedReply>(&SchedulerService::ListPinned, call.list_pinned());
    case SchedulerCall::kQueryConfig:
      return Call<v1::QueryConfigReply>(&SchedulerService::QueryConfig, call.query_config());
    default:
      return ListJobs(call.list_jobs());
  }
}

}  // namespace

std::unique_ptr<google::protobuf::Message> NewCalls() { return std::make_unique<SchedulerCalls>(); }

}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln::fuzz;
  SchedulerCalls calls;
  if (!ParseCalls(InputText(data, size), calls)) return -1;
  Session session;
  for (int i = 0; i < std::min(calls.calls_size(), kMaxCalls); ++i) {
    session.Make(*calls.mutable_calls(i));
  }
  session.CheckRestart();
  return 0;
}
