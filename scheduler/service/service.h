// The Scheduler gRPC service: gives access to Jobs and the store over the wire. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/keys/identity.h"
#include "base/server/grpc_status.h"
#include "proto/scheduler.grpc.pb.h"
#include "proto/tracker.pb.h"
#include "rpc/admission_control.h"
#include "scheduler/fair_share/fair_shares.h"
#include "scheduler/jobs/event_hub.h"
#include "scheduler/jobs/jobs.h"
#include "scheduler/service/audit.h"
#include "scheduler/service/concurrency_limiter.h"
#include "scheduler/service/streams.h"
#include "store/store.h"

namespace kiln::scheduler {

using WorkerList = std::function<StatusOr<v1::ListReply>()>;
// Makes the tracker's call SetWorkerMode.
using WorkerModeCall =
    std::function<StatusOr<v1::SetWorkerModeReply>(const v1::SetWorkerModeRequest&)>;
// Makes a way into the scheduler's pages for one browser of the caller; none where there are no
// certificates.
using DashboardDoor =
    std::function<StatusOr<v1::OpenDashboardReply>(const std::optional<Identity>& caller)>;

class SchedulerService : public v1::Scheduler::Service {
 public:
  struct Options {
    AdmissionControl admission = {};
    Streams::Options streams = {};
    // Choosing a schedule for a new computation may take any time and memory, so calls are limited.
    ConcurrencyLimiter::Options choices = {
        .what = "choice of a schedule", .at_work = 2, .in_line = 16, .longest = absl::Seconds(20)};
    ConcurrencyLimiter::Options models = {
        .what = "use of a cost model", .at_work = 2, .in_line = 16};
    // Asks the tracker which device a job's device name stands for, and whether the device is
    // there. Null: the device name is taken as a key without asking.
    WorkerList list_workers = {};
    // Passes an operator's wish for a worker on to the tracker. Null: such calls are refused.
    WorkerModeCall set_worker_mode = {};
    // Shares and limits of users. Null: the calls about users are refused.
    FairShares* shares = nullptr;
    // Lets browsers into the pages. Null: there are none, and the call is refused.
    DashboardDoor open_dashboard = {};
    Clock* clock = &Clock::Real();
  };

  // All references outlive this object.
  SchedulerService(store::Store& store, Jobs& jobs, EventHub& events)
      : SchedulerService(store, jobs, events, Options()) {}
  SchedulerService(store::Store& store, Jobs& jobs, EventHub& events, const Options& options)
      : store_(store),
        jobs_(jobs),
        events_(events),
        clock_(*options.clock),
        admission_(options.admission),
        streams_(options.streams),
        choices_(options.choices),
        models_(options.models),
        list_workers_(options.list_workers),
        set_worker_mode_(options.set_worker_mode),
        shares_(options.shares),
        open_dashboard_(options.open_dashboard),
        audit_(store, clock_) {}

  // Ends calls that wait with Unavailable, now and later. Call before the server's Shutdown.
  void Stop();
  // Keeps a refusal of the server for the audit (rpc/refusal_note.h). Does not wait.
  void NoteRefused(std::string_view user, std::string_view call, const Status& why) {
    audit_.NoteRefused(user, call, why);
  }

  grpc::Status Submit(grpc::ServerContext* context, const v1::SubmitRequest* request,
                      v1::SubmitReply* reply) override;
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                      v1::JobStatus* reply) override;
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsReply* reply) override;
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::JobEvent>* writer) override;
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                         v1::CancelJobReply* reply) override;
  grpc::Status ResumeJob(grpc::ServerContext* context, const v1::ResumeJobRequest* request,
                         v1::ResumeJobReply* reply) override;

  // ---- users: service_users.cc
  grpc::Status PauseJob(grpc::ServerContext* context, const v1::PauseJobRequest* request,
                        v1::PauseJobReply* reply) override;
  grpc::Status ListUsers(grpc::ServerContext* context, const v1::ListUsersRequest* request,
                         v1::ListUsersReply* reply) override;
  grpc::Status SetUser(grpc::ServerContext* context, const v1::SetUserRequest* request,
                       v1::SetUserReply* reply) override;
  grpc::Status ListAudit(grpc::ServerContext* context, const v1::ListAuditRequest* request,
                         v1::ListAuditReply* reply) override;

  // In service_workers.cc.
  grpc::Status SetWorkerMode(grpc::ServerContext* context, const v1::SetWorkerModeRequest* request,
                             v1::SetWorkerModeReply* reply) override;

  // In service_dashboard.cc.
  grpc::Status OpenDashboard(grpc::ServerContext* context, const v1::OpenDashboardRequest* request,
                             v1::OpenDashboardReply* reply) override;

  // In service_callbacks.cc.
  grpc::Status ServeCallbacks(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::CallbackRequest, v1::CallbackReply>* stream) override;
  grpc::Status Best(grpc::ServerContext* context, const v1::BestRequest* request,
                    v1::BestReply* reply) override;
  grpc::Status GetRecord(grpc::ServerContext* context, const v1::GetRecordRequest* request,
                         v1::Record* reply) override;
  grpc::Status ListRecords(grpc::ServerContext* context, const v1::ListRecordsRequest* request,
                           grpc::ServerWriter<v1::Record>* writer) override;
  grpc::Status ListAutotvmRecords(grpc::ServerContext* context,
                                  const v1::ListAutotvmRecordsRequest* request,
                                  grpc::ServerWriter<v1::AutotvmLine>* writer) override;
  grpc::Status DeleteRecords(grpc::ServerContext* context, const v1::DeleteRecordsRequest* request,
                             v1::DeleteRecordsReply* reply) override;
  grpc::Status DeleteAutotvmRecords(grpc::ServerContext* context,
                                    const v1::DeleteAutotvmRecordsRequest* request,
                                    v1::DeleteRecordsReply* reply) override;
  grpc::Status ImportRecords(grpc::ServerContext* context,
                             grpc::ServerReader<v1::ImportRecordsRequest>* reader,
                             v1::ImportRecordsReply* reply) override;
  grpc::Status BindKey(grpc::ServerContext* context, const v1::BindKeyRequest* request,
                       v1::BindKeyReply* reply) override;

  // ---- cost models: service_models.cc
  grpc::Status TrainModel(grpc::ServerContext* context, const v1::TrainModelRequest* request,
                          v1::TrainModelReply* reply) override;
  grpc::Status ListModels(grpc::ServerContext* context, const v1::ListModelsRequest* request,
                          v1::ListModelsReply* reply) override;
  grpc::Status GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request,
                        grpc::ServerWriter<v1::ModelPart>* writer) override;
  grpc::Status PutModel(grpc::ServerContext* context, grpc::ServerReader<v1::ModelPart>* reader,
                        v1::CostModel* reply) override;
  grpc::Status DeleteModel(grpc::ServerContext* context, const v1::DeleteModelRequest* request,
                           v1::DeleteModelReply* reply) override;
  grpc::Status TestModel(grpc::ServerContext* context, const v1::TestModelRequest* request,
                         v1::TestModelReply* reply) override;
  grpc::Status Predict(grpc::ServerContext* context, const v1::PredictRequest* request,
                       v1::PredictReply* reply) override;

  // ---- choice of a schedule: service_choices.cc
  grpc::Status QuerySchedule(grpc::ServerContext* context, const v1::QueryScheduleRequest* request,
                             v1::QueryScheduleReply* reply) override;
  grpc::Status SetSchedule(grpc::ServerContext* context, const v1::SetScheduleRequest* request,
                           v1::SetScheduleReply* reply) override;
  grpc::Status ListPinned(grpc::ServerContext* context, const v1::ListPinnedRequest* request,
                          v1::ListPinnedReply* reply) override;
  grpc::Status QueryConfig(grpc::ServerContext* context, const v1::QueryConfigRequest* request,
                           v1::QueryConfigReply* reply) override;

 private:
  // Returns the status of `work` if the admission admits the request, else the admission's refusal.
  template <typename Request, typename Work>
  grpc::Status Answer(const grpc::ServerContext& context, const Request& request,
                      const Work& work) const {
    Status status = admission_.Admit(context, request);
    if (status.ok()) status = work();
    return ToGrpc(status);
  }
  // An act of a caller, for the audit.
  struct Act {
    // Name of the call without its service.
    std::string call;
    // The thing that it is done to: "job 3f2a".
    std::string subject = {};
    // The user whom the request names; counts where there are no certificates.
    std::string told_user = {};
  };
  // Does the same as Answer, and keeps who did it. `work` may complete the act. A caller who is not
  // admitted leaves no entry.
  template <typename Request, typename Work>
  grpc::Status AnswerAudited(const grpc::ServerContext& context, const Request& request, Act act,
                             const Work& work) {
    return Answer(context, request, [&] { return Keep(context, act, work(act)); });
  }
  // Keeps the act and its result, which it returns.
  Status Keep(const grpc::ServerContext& context, const Act& act, Status result);
  Status RunWhileCallerWaits(const grpc::ServerContext& context,
                             const std::function<Status(const std::stop_token&)>& work) const;
  // Does the same, but as one of few calls at once.
  Status RunLimited(const grpc::ServerContext& context, ConcurrencyLimiter& calls,
                    const std::function<Status(const std::stop_token&)>& work) const;
  // OK if the caller may do to the job what the call `method` does; NotFound if there is none.
  Status AdmitForJob(const grpc::ServerContext& context, const std::string& job_id,
                     std::string_view method) const;
  Status SettleDevice(const grpc::ServerContext& context, v1::JobSpec& spec) const;
  Status Best(const v1::BestRequest& request, v1::BestReply& reply);
  Status BestOfJob(const v1::BestRequest& request, v1::BestReply& reply);
  Status List(const v1::ListRecordsRequest& request, grpc::ServerContext& context,
              grpc::ServerWriter<v1::Record>& writer);
  Status ListAutotvm(const v1::ListAutotvmRecordsRequest& request, grpc::ServerContext& context,
                     grpc::ServerWriter<v1::AutotvmLine>& writer);
  // Sends one message of a stream. The stream ends if this returns an error.
  template <typename Message>
  Status Send(const Message& message, grpc::ServerContext& context, Streams::Stream& stream,
              grpc::ServerWriter<Message>& writer) {
    if (stopping_) return Unavailable("the scheduler is stopping; try again");
    if (context.IsCancelled() || !stream.Exchange([&] { return writer.Write(message); }))
      return GoneStatus();
    return OkStatus();
  }
  static Status GoneStatus() { return Cancelled("the caller has disconnected"); }
  Status Watch(const v1::WatchJobRequest& request, grpc::ServerContext& context,
               grpc::ServerWriter<v1::JobEvent>& writer);
  Status Import(grpc::ServerContext& context, grpc::ServerReader<v1::ImportRecordsRequest>& reader,
                v1::ImportRecordsReply& reply);
  Status Bind(const v1::BindKeyRequest& request, v1::BindKeyReply& reply);
  using CallbackStream = grpc::ServerReaderWriter<v1::CallbackRequest, v1::CallbackReply>;
  // Carries calls to the process that has opened the stream, until the job has ended.
  Status Serve(grpc::ServerContext& context, CallbackStream& stream);
  // Returns the wish as the tracker gets it: in the caller's name, with the time.
  StatusOr<v1::SetWorkerModeRequest> Signed(const grpc::ServerContext& context,
                                            const v1::SetWorkerModeRequest& request) const;
  // Returns OK if the process may serve the job that it names.
  Status CheckServing(const grpc::ServerContext& context, const v1::CallbackReply& first) const;
  Status SendModel(const v1::GetModelRequest& request, grpc::ServerContext& context,
                   grpc::ServerWriter<v1::ModelPart>& writer);
  Status TakeModel(grpc::ServerContext& context, grpc::ServerReader<v1::ModelPart>& reader,
                   v1::CostModel& reply);
  int64_t NowSeconds() const { return absl::ToUnixSeconds(clock_.Now()); }

  store::Store& store_;
  Jobs& jobs_;
  EventHub& events_;
  Clock& clock_;
  const AdmissionControl admission_;
  Streams streams_;
  ConcurrencyLimiter choices_;
  ConcurrencyLimiter models_;
  const WorkerList list_workers_;
  const WorkerModeCall set_worker_mode_;
  FairShares* const shares_;
  const DashboardDoor open_dashboard_;
  Audit audit_;
  std::atomic<bool> stopping_{false};
};

}  // namespace kiln::scheduler
