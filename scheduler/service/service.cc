#include "scheduler/service/service.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/server/grpc_status.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/fit.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "device/measured_as.h"
#include "rpc/device_choice.h"
#include "rpc/field_limits.h"
#include "scheduler/jobs/job_model.h"
#include "scheduler/service/caller_watch.h"
#include "scheduler/service/told_status.h"
#include "scheduler/service/watch.h"
#include "scheduler/values/computations.h"
#include "scheduler/values/request_trace.h"
#include "store/autotvm_log.h"
#include "store/import_log.h"
#include "store/task_results.h"
#include "store/wire/import_message.h"
#include "store/wire/record_message.h"

namespace kiln::scheduler {
namespace {

// 0 asks for all jobs, like a number that is not set.
std::optional<uint32_t> LimitOf(const v1::ListJobsRequest& request) {
  return request.limit() == 0 ? std::nullopt : std::optional(request.limit());
}

// Returns the jobs that the request asks for, the newest first.
StatusOr<std::vector<store::JobRow>> JobsFor(const v1::ListJobsRequest& request,
                                             store::Store& store) {
  if (!request.unfinished()) return store.ListJobs(LimitOf(request));
  KILN_ASSIGN_OR_RETURN(std::vector<store::JobRow> jobs, store.LoadUnfinishedJobs());
  std::erase_if(jobs,
                [](const store::JobRow& job) { return job.state == store::JobState::kPaused; });
  std::ranges::reverse(jobs);
  const size_t most = LimitOf(request).value_or(jobs.size());
  if (jobs.size() > most) jobs.erase(jobs.begin() + static_cast<ptrdiff_t>(most), jobs.end());
  return jobs;
}

// Returns "record 7" or "12 records from 7".
template <typename Ids>
std::string RecordsText(const Ids& ids) {
  if (ids.empty()) return "no record";
  return ids.size() == 1 ? fmt::format("record {}", ids[0])
                         : fmt::format("{} records from {}", ids.size(), ids[0]);
}

constexpr std::chrono::milliseconds kLook{250};
constexpr int kMaxLooks = 30;  // tries to see a first runner

}  // namespace

void SchedulerService::Stop() {
  stopping_ = true;
  events_.Close();
  audit_.Flush();
}

// Ends long work when its caller goes, and when the service stops.
Status SchedulerService::RunWhileCallerWaits(
    const grpc::ServerContext& context,
    const std::function<Status(const std::stop_token&)>& work) const {
  const CallerWatch caller([&] { return stopping_ || context.IsCancelled(); });
  Status status = work(caller.token());
  if (status.code() != StatusCode::kCancelled || !stopping_) return status;
  return Unavailable("the scheduler is stopping; try again");
}

Status SchedulerService::RunLimited(
    const grpc::ServerContext& context, ConcurrencyLimiter& calls,
    const std::function<Status(const std::stop_token&)>& work) const {
  Status status = calls.Do([&] { return stopping_ || context.IsCancelled(); }, work);
  if (status.code() != StatusCode::kCancelled || !stopping_) return status;
  return Unavailable("the scheduler is stopping; try again");
}

// ---- jobs -----------------------------------------------------------------------------------

// Replaces the device's name by its key, or refuses and names the existing devices. Waits a moment
// for the first runner, because the farm may have just been started.
Status SchedulerService::SettleDevice(const grpc::ServerContext& context, v1::JobSpec& spec) const {
  if (spec.device().empty() || spec.tasks().empty() || !list_workers_) return OkStatus();
  const std::string& target = spec.tasks(0).target();
  // No runner will come for a text that is no target.
  KILN_RETURN_IF_ERROR(Annotate(target::ParseTarget(target).status(), "task 0"));
  const std::string kind = target.substr(0, target.find(' '));
  v1::ListReply there;
  for (int looks = 0; looks < kMaxLooks && !stopping_ && !context.IsCancelled(); ++looks) {
    KILN_ASSIGN_OR_RETURN(there, list_workers_());
    if (HasRunnerFor(kind, there)) break;
    std::this_thread::sleep_for(kLook);
  }
  KILN_ASSIGN_OR_RETURN(*spec.mutable_device(), ChooseDevice(spec.device(), kind, there));
  return OkStatus();
}

grpc::Status SchedulerService::Submit(grpc::ServerContext* context,
                                      const v1::SubmitRequest* request, v1::SubmitReply* reply) {
  const Act submit{.call = "Submit", .subject = "a job", .told_user = request->spec().user()};
  return AnswerAudited(*context, *request, submit, [&](Act& act) -> Status {
    v1::JobSpec spec = request->spec();
    KILN_ASSIGN_OR_RETURN(*spec.mutable_user(), admission_.CallerName(*context, spec.user()));
    if (admission_.has_members() && spec.served().builds() > 0) {
      return FailedPrecondition(
          "the job has a build function, whose programs nobody signs, and the runners of a farm "
          "with keys take signed programs alone; measure it on a farm without keys");
    }
    KILN_RETURN_IF_ERROR(SettleDevice(*context, spec));
    KILN_RETURN_IF_ERROR(CheckCostModel(store_, spec));
    const std::string kept = KeptRequest(request->request_id(), request->traceparent());
    return RunWhileCallerWaits(*context, [&](const std::stop_token& gone) -> Status {
      KILN_ASSIGN_OR_RETURN(*reply->mutable_job_id(), jobs_.Submit(spec, kept, gone));
      act.subject = "job " + reply->job_id();
      return OkStatus();
    });
  });
}

Status SchedulerService::AdmitForJob(const grpc::ServerContext& context, const std::string& job_id,
                                     std::string_view method) const {
  KILN_ASSIGN_OR_RETURN(const store::JobRow job, store_.GetJob(job_id));
  return admission_.AdmitFor(context, job.user, method, "job " + job.id);
}

Status SchedulerService::Keep(const grpc::ServerContext& context, const Act& act, Status result) {
  const auto caller = admission_.Caller(context);
  const bool has_name = caller.ok() && caller->has_value();
  audit_.Add(has_name ? (*caller)->name : act.told_user, "Scheduler." + act.call, act.subject,
             result);
  return result;
}

grpc::Status SchedulerService::GetJob(grpc::ServerContext* context,
                                      const v1::GetJobRequest* request, v1::JobStatus* reply) {
  return Answer(*context, *request, [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(const store::JobRow job, store_.GetJob(request->job_id()));
    KILN_ASSIGN_OR_RETURN(*reply, ToldStatus(jobs_, job));
    return OkStatus();
  });
}

grpc::Status SchedulerService::ListJobs(grpc::ServerContext* context,
                                        const v1::ListJobsRequest* request,
                                        v1::ListJobsReply* reply) {
  return Answer(*context, *request, [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(const auto jobs, JobsFor(*request, store_));
    for (const store::JobRow& job : jobs) {
      if (context->IsCancelled()) return GoneStatus();
      KILN_ASSIGN_OR_RETURN(*reply->add_jobs(), ToldStatus(jobs_, job));
      DropDagTexts(*reply->mutable_jobs(reply->jobs_size() - 1));
    }
    return OkStatus();
  });
}

grpc::Status SchedulerService::WatchJob(grpc::ServerContext* context,
                                        const v1::WatchJobRequest* request,
                                        grpc::ServerWriter<v1::JobEvent>* writer) {
  return Answer(*context, *request, [&] { return Watch(*request, *context, *writer); });
}

Status SchedulerService::Watch(const v1::WatchJobRequest& request, grpc::ServerContext& context,
                               grpc::ServerWriter<v1::JobEvent>& writer) {
  KILN_ASSIGN_OR_RETURN(Streams::Stream stream, streams_.Open(context, "watch"));
  WatchOptions options;
  options.job_id = request.job_id();
  options.from_trial = request.from_trial();
  options.cancelled = [&] { return context.IsCancelled(); };
  options.write = [&](const v1::JobEvent& event) {
    return stream.Exchange([&] { return writer.Write(event); });
  };
  return scheduler::WatchJob(store_, jobs_, events_, options);
}

grpc::Status SchedulerService::CancelJob(grpc::ServerContext* context,
                                         const v1::CancelJobRequest* request, v1::CancelJobReply*) {
  const Act act{.call = "CancelJob", .subject = "job " + request->job_id()};
  return AnswerAudited(*context, *request, act, [&](Act&) -> Status {
    KILN_RETURN_IF_ERROR(AdmitForJob(*context, request->job_id(), "/kiln.v1.Scheduler/CancelJob"));
    return RunWhileCallerWaits(*context, [&](const std::stop_token& gone) {
      return jobs_.Cancel(request->job_id(), gone);
    });
  });
}

grpc::Status SchedulerService::ResumeJob(grpc::ServerContext* context,
                                         const v1::ResumeJobRequest* request, v1::ResumeJobReply*) {
  const Act act{.call = "ResumeJob", .subject = "job " + request->job_id()};
  return AnswerAudited(*context, *request, act, [&](Act&) -> Status {
    KILN_RETURN_IF_ERROR(AdmitForJob(*context, request->job_id(), "/kiln.v1.Scheduler/ResumeJob"));
    return RunWhileCallerWaits(*context, [&](const std::stop_token& gone) {
      return jobs_.Resume(request->job_id(), gone);
    });
  });
}

// ---- records --------------------------------------------------------------------------------

grpc::Status SchedulerService::Best(grpc::ServerContext* context, const v1::BestRequest* request,
                                    v1::BestReply* reply) {
  return Answer(*context, *request, [&] { return Best(*request, *reply); });
}

Status SchedulerService::Best(const v1::BestRequest& request, v1::BestReply& reply) {
  const store::WorkloadRef workload = store::WorkloadOf(request);
  if (workload.empty() == request.job_id().empty()) {
    return InvalidArgument("found {}, expected a workload or a job id",
                           request.job_id().empty() ? "neither" : "both");
  }
  KILN_RETURN_IF_ERROR(device::CheckDeployment(request.as_deployed()));
  if (!request.job_id().empty()) return BestOfJob(request, reply);
  KILN_ASSIGN_OR_RETURN(const auto best, store_.BestRecords(workload, ""));
  for (const store::Record& record : best) {
    if (!IsFor(request.target(), record)) continue;
    if (!device::IsAsDeployed(record.measured_as, request.as_deployed())) continue;
    *reply.add_records() = store::RecordMessage(record);
  }
  return OkStatus();
}

Status SchedulerService::BestOfJob(const v1::BestRequest& request, v1::BestReply& reply) {
  KILN_RETURN_IF_ERROR(store_.GetJob(request.job_id()).status());
  KILN_ASSIGN_OR_RETURN(const auto tasks, store_.TasksOfJob(request.job_id()));
  store::TaskResults results(store_);
  for (const store::TaskRow& task : tasks) {
    KILN_ASSIGN_OR_RETURN(const auto best, results.Best(task));
    if (!best.has_value()) continue;
    if (!IsFor(request.target(), *best)) continue;
    if (!device::IsAsDeployed(best->measured_as, request.as_deployed())) continue;
    *reply.add_records() = store::RecordMessage(*best);
  }
  return OkStatus();
}

grpc::Status SchedulerService::GetRecord(grpc::ServerContext* context,
                                         const v1::GetRecordRequest* request, v1::Record* reply) {
  return Answer(*context, *request, [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(const store::Record record, store_.GetRecord(request->id()));
    *reply = store::RecordMessage(record);
    return OkStatus();
  });
}

grpc::Status SchedulerService::ListRecords(grpc::ServerContext* context,
                                           const v1::ListRecordsRequest* request,
                                           grpc::ServerWriter<v1::Record>* writer) {
  return Answer(*context, *request, [&] { return List(*request, *context, *writer); });
}

grpc::Status SchedulerService::DeleteRecords(grpc::ServerContext* context,
                                             const v1::DeleteRecordsRequest* request,
                                             v1::DeleteRecordsReply* reply) {
  const Act act{.call = "DeleteRecords", .subject = RecordsText(request->ids())};
  return AnswerAudited(*context, *request, act, [&](Act&) -> Status {
    const std::vector<int64_t> ids(request->ids().begin(), request->ids().end());
    KILN_ASSIGN_OR_RETURN(const int64_t deleted, store::DeleteRecordsOfEndedJobs(store_, ids));
    reply->set_deleted(static_cast<uint64_t>(deleted));
    return OkStatus();
  });
}

grpc::Status SchedulerService::DeleteAutotvmRecords(grpc::ServerContext* context,
                                                    const v1::DeleteAutotvmRecordsRequest* request,
                                                    v1::DeleteRecordsReply* reply) {
  const Act act{.call = "DeleteAutotvmRecords", .subject = RecordsText(request->ids())};
  return AnswerAudited(*context, *request, act, [&](Act&) -> Status {
    const std::vector<int64_t> ids(request->ids().begin(), request->ids().end());
    KILN_ASSIGN_OR_RETURN(const int64_t deleted, store_.DeleteAutotvmRecords(ids));
    reply->set_deleted(static_cast<uint64_t>(deleted));
    return OkStatus();
  });
}

Status SchedulerService::List(const v1::ListRecordsRequest& request, grpc::ServerContext& context,
                              grpc::ServerWriter<v1::Record>& writer) {
  KILN_ASSIGN_OR_RETURN(Streams::Stream stream, streams_.Open(context, "list of records"));
  const store::RecordFilter filter = store::FilterOf(request);
  if (!filter.job_id.empty()) KILN_RETURN_IF_ERROR(store_.GetJob(filter.job_id).status());
  return store_.ForEachRecord(filter, [&](const store::Record& record) {
    return Send(store::RecordMessage(record), context, stream, writer);
  });
}

grpc::Status SchedulerService::ListAutotvmRecords(grpc::ServerContext* context,
                                                  const v1::ListAutotvmRecordsRequest* request,
                                                  grpc::ServerWriter<v1::AutotvmLine>* writer) {
  return Answer(*context, *request, [&] { return ListAutotvm(*request, *context, *writer); });
}

Status SchedulerService::ListAutotvm(const v1::ListAutotvmRecordsRequest& request,
                                     grpc::ServerContext& context,
                                     grpc::ServerWriter<v1::AutotvmLine>& writer) {
  KILN_ASSIGN_OR_RETURN(Streams::Stream stream, streams_.Open(context, "list of records"));
  return store_.ForEachAutotvmRecord(store::FilterOf(request),
                                     [&](const store::AutotvmRecord& record) {
                                       v1::AutotvmLine line;
                                       line.set_line(store::PrintAutotvmLine(record));
                                       line.set_id(record.id);
                                       return Send(line, context, stream, writer);
                                     });
}

grpc::Status SchedulerService::ImportRecords(grpc::ServerContext* context,
                                             grpc::ServerReader<v1::ImportRecordsRequest>* reader,
                                             v1::ImportRecordsReply* reply) {
  const Status admitted = admission_.AdmitStream(*context);
  if (!admitted.ok()) return ToGrpc(admitted);
  return ToGrpc(Keep(*context, {.call = "ImportRecords", .subject = "records"},
                     Import(*context, *reader, *reply)));
}

Status SchedulerService::Import(grpc::ServerContext& context,
                                grpc::ServerReader<v1::ImportRecordsRequest>& reader,
                                v1::ImportRecordsReply& reply) {
  KILN_ASSIGN_OR_RETURN(Streams::Stream stream, streams_.Open(context, "import"));
  KILN_RETURN_IF_ERROR(store_.AddComputations(LibraryComputations()));
  KILN_ASSIGN_OR_RETURN(
      auto importer,
      store::LogImporter::Begin(store_, absl::ToUnixMillis(clock_.Now()),
                                {.steps = schedule::CheckStepsText, .fits = schedule::CheckFit}));
  v1::ImportRecordsRequest request;
  while (!stopping_ && stream.Exchange([&] { return reader.Read(&request); })) {
    KILN_RETURN_IF_ERROR(CheckFields(request));
    std::string_view line = request.line();
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    KILN_RETURN_IF_ERROR(importer.AddLine(line));
  }
  if (stopping_) return Unavailable("the scheduler is stopping; try again");
  if (context.IsCancelled()) return GoneStatus();
  KILN_ASSIGN_OR_RETURN(const store::ImportResult result, importer.Finish());
  reply = store::ReplyOf(result);
  events_.Notify(std::string(store::kImportJob));
  return OkStatus();
}

grpc::Status SchedulerService::BindKey(grpc::ServerContext* context,
                                       const v1::BindKeyRequest* request, v1::BindKeyReply* reply) {
  const Act act{.call = "BindKey", .subject = "key " + request->workload_key()};
  return AnswerAudited(*context, *request, act, [&](Act&) { return Bind(*request, *reply); });
}

Status SchedulerService::Bind(const v1::BindKeyRequest& request, v1::BindKeyReply& reply) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(request.dag()));
  const std::vector<store::Computation> all = UnderAllKeys(*dag);
  KILN_RETURN_IF_ERROR(store_.AddComputations(all));
  store::Computation bound = all.front();
  bound.key = request.workload_key();
  KILN_ASSIGN_OR_RETURN(const store::BindResult result,
                        store::BindImported(store_, bound, schedule::CheckFit));
  reply = store::ReplyOf(result, bound);
  events_.Notify(std::string(store::kImportJob));
  return OkStatus();
}

}  // namespace kiln::scheduler
