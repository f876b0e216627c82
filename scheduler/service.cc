#include "scheduler/service.h"

#include "base/grpc_status.h"
#include "base/log.h"
#include "compiler/dag/ops/known_workloads.h"
#include "compiler/schedule/step.h"
#include "scheduler/watch.h"
#include "store/import_log.h"
#include "store/wire/record_message.h"

namespace kiln::scheduler {
namespace {

constexpr std::chrono::milliseconds kLook{250};

// What the keys of a log may stand for, beside what was tuned here.
std::vector<store::Computation> LibraryComputations() {
  std::vector<store::Computation> all;
  for (const dag::KnownComputation& known : dag::KnownComputations()) {
    all.push_back(
        {.id = known.id, .key = known.key, .dag = known.text, .flop_count = known.flop_count});
  }
  return all;
}

Status GoneStatus() { return Cancelled("the caller has gone"); }

}  // namespace

void SchedulerService::Stop() {
  stopping_ = true;
  events_.Close();
  std::lock_guard lock(import_mutex_);
  import_ended_.notify_all();
}

// ---- jobs -----------------------------------------------------------------------------------

grpc::Status SchedulerService::Submit(grpc::ServerContext*, const v1::SubmitRequest* request,
                                      v1::SubmitReply* reply) {
  const auto id = jobs_.Submit(request->spec());
  if (!id.ok()) return ToGrpc(id.status());
  reply->set_job_id(*id);
  return grpc::Status::OK;
}

grpc::Status SchedulerService::GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                                      v1::JobStatus* reply) {
  const auto get = [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(const store::JobRow job, store_.GetJob(request->job_id()));
    KILN_ASSIGN_OR_RETURN(*reply, jobs_.StatusOf(job));
    return OkStatus();
  };
  return ToGrpc(get());
}

grpc::Status SchedulerService::ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                                        v1::ListJobsReply* reply) {
  const auto list = [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(const auto jobs, store_.ListJobs(request->limit()));
    for (const store::JobRow& job : jobs) {
      KILN_ASSIGN_OR_RETURN(*reply->add_jobs(), jobs_.StatusOf(job));
      DropDagTexts(*reply->mutable_jobs(reply->jobs_size() - 1));
    }
    return OkStatus();
  };
  return ToGrpc(list());
}

grpc::Status SchedulerService::WatchJob(grpc::ServerContext* context,
                                        const v1::WatchJobRequest* request,
                                        grpc::ServerWriter<v1::JobEvent>* writer) {
  WatchOptions options;
  options.job_id = request->job_id();
  options.from_trial = request->from_trial();
  options.cancelled = [context] { return context->IsCancelled(); };
  options.write = [writer](const v1::JobEvent& event) { return writer->Write(event); };
  return ToGrpc(scheduler::WatchJob(store_, jobs_, events_, options));
}

grpc::Status SchedulerService::CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                                         v1::CancelJobReply*) {
  return ToGrpc(jobs_.Cancel(request->job_id()));
}

// ---- records --------------------------------------------------------------------------------

grpc::Status SchedulerService::Best(grpc::ServerContext*, const v1::BestRequest* request,
                                    v1::BestReply* reply) {
  return ToGrpc(Best(*request, *reply));
}

Status SchedulerService::Best(const v1::BestRequest& request, v1::BestReply& reply) {
  const store::WorkloadRef workload = {.id = request.workload_id(), .key = request.workload_key()};
  if ((workload.id.empty() && workload.key.empty()) == request.job_id().empty()) {
    return InvalidArgument("found {}, expected a workload or a job id",
                           request.job_id().empty() ? "neither" : "both");
  }
  if (!request.job_id().empty()) return BestOfJob(request, reply);
  KILN_ASSIGN_OR_RETURN(const auto best, store_.BestRecords(workload, request.target()));
  for (const store::Record& record : best) *reply.add_records() = store::RecordMessage(record);
  return OkStatus();
}

Status SchedulerService::BestOfJob(const v1::BestRequest& request, v1::BestReply& reply) {
  KILN_RETURN_IF_ERROR(store_.GetJob(request.job_id()).status());
  KILN_ASSIGN_OR_RETURN(const auto tasks, store_.TasksOfJob(request.job_id()));
  for (const store::TaskRow& task : tasks) {
    KILN_ASSIGN_OR_RETURN(const auto best, store_.BestOfJob(request.job_id(), task.index));
    if (!best.has_value()) continue;
    if (!request.target().empty() && best->target != request.target()) continue;
    *reply.add_records() = store::RecordMessage(*best);
  }
  return OkStatus();
}

grpc::Status SchedulerService::GetRecord(grpc::ServerContext*, const v1::GetRecordRequest* request,
                                         v1::Record* reply) {
  const auto record = store_.GetRecord(request->id());
  if (!record.ok()) return ToGrpc(record.status());
  *reply = store::RecordMessage(*record);
  return grpc::Status::OK;
}

grpc::Status SchedulerService::ListRecords(grpc::ServerContext* context,
                                           const v1::ListRecordsRequest* request,
                                           grpc::ServerWriter<v1::Record>* writer) {
  const store::RecordFilter filter = store::FilterOf(*request);
  const auto list = [&]() -> Status {
    if (!filter.job_id.empty()) KILN_RETURN_IF_ERROR(store_.GetJob(filter.job_id).status());
    return store_.ForEachRecord(filter, [&](const store::Record& record) -> Status {
      if (stopping_) return Unavailable("the scheduler is stopping; try again");
      if (context->IsCancelled() || !writer->Write(store::RecordMessage(record)))
        return GoneStatus();
      return OkStatus();
    });
  };
  return ToGrpc(list());
}

grpc::Status SchedulerService::DeleteRecords(grpc::ServerContext*,
                                             const v1::DeleteRecordsRequest* request,
                                             v1::DeleteRecordsReply* reply) {
  const std::vector<int64_t> ids(request->ids().begin(), request->ids().end());
  const auto deleted = store::DeleteRecordsOfEndedJobs(store_, ids);
  if (!deleted.ok()) return ToGrpc(deleted.status());
  reply->set_deleted(static_cast<uint64_t>(*deleted));
  return grpc::Status::OK;
}

Status SchedulerService::TakeImportTurn(const grpc::ServerContext& context) {
  std::unique_lock lock(import_mutex_);
  while (!import_ended_.wait_for(lock, kLook, [this] { return stopping_ || !importing_; })) {
    if (context.IsCancelled()) return GoneStatus();
  }
  if (stopping_) return Unavailable("the scheduler is stopping; try again");
  importing_ = true;
  return OkStatus();
}

grpc::Status SchedulerService::ImportRecords(grpc::ServerContext* context,
                                             grpc::ServerReader<v1::ImportRecordsRequest>* reader,
                                             v1::ImportRecordsReply* reply) {
  const Status turn = TakeImportTurn(*context);
  if (!turn.ok()) return ToGrpc(turn);
  const Status status = Import(*reader, *reply);
  std::lock_guard lock(import_mutex_);
  importing_ = false;
  import_ended_.notify_all();
  return ToGrpc(status);
}

Status SchedulerService::Import(grpc::ServerReader<v1::ImportRecordsRequest>& reader,
                                v1::ImportRecordsReply& reply) {
  KILN_RETURN_IF_ERROR(store_.AddComputations(LibraryComputations()));
  KILN_ASSIGN_OR_RETURN(auto importer,
                        store::LogImporter::Begin(store_, absl::ToUnixMillis(clock_.Now()),
                                                  schedule::CheckStepsText));
  v1::ImportRecordsRequest request;
  while (!stopping_ && reader.Read(&request)) {
    std::string_view line = request.line();
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    KILN_RETURN_IF_ERROR(importer.AddLine(line));
  }
  KILN_ASSIGN_OR_RETURN(const store::ImportResult result, importer.Finish());
  reply.set_imported(static_cast<uint64_t>(result.imported));
  reply.set_duplicates(static_cast<uint64_t>(result.duplicates));
  reply.set_refused(static_cast<uint64_t>(result.refused));
  reply.mutable_errors()->Add(result.errors.begin(), result.errors.end());
  events_.Notify(std::string(store::kImportJob));
  return OkStatus();
}

}  // namespace kiln::scheduler
