// The Scheduler gRPC service: Jobs and the store behind the wire contract. Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "proto/scheduler.grpc.pb.h"
#include "scheduler/event_hub.h"
#include "scheduler/jobs.h"
#include "store/store.h"

namespace kiln::scheduler {

class SchedulerService : public v1::Scheduler::Service {
 public:
  // All outlive this.
  SchedulerService(store::Store& store, Jobs& jobs, EventHub& events, Clock& clock = Clock::Real())
      : store_(store), jobs_(jobs), events_(events), clock_(clock) {}

  // Calls that wait end with Unavailable, now and later. Call before the server's Shutdown.
  void Stop();

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
  grpc::Status Best(grpc::ServerContext* context, const v1::BestRequest* request,
                    v1::BestReply* reply) override;
  grpc::Status GetRecord(grpc::ServerContext* context, const v1::GetRecordRequest* request,
                         v1::Record* reply) override;
  grpc::Status ListRecords(grpc::ServerContext* context, const v1::ListRecordsRequest* request,
                           grpc::ServerWriter<v1::Record>* writer) override;
  grpc::Status DeleteRecords(grpc::ServerContext* context, const v1::DeleteRecordsRequest* request,
                             v1::DeleteRecordsReply* reply) override;
  grpc::Status ImportRecords(grpc::ServerContext* context,
                             grpc::ServerReader<v1::ImportRecordsRequest>* reader,
                             v1::ImportRecordsReply* reply) override;

 private:
  Status Best(const v1::BestRequest& request, v1::BestReply& reply);
  Status BestOfJob(const v1::BestRequest& request, v1::BestReply& reply);
  Status Import(grpc::ServerReader<v1::ImportRecordsRequest>& reader,
                v1::ImportRecordsReply& reply);
  Status TakeImportTurn(const grpc::ServerContext& context);

  store::Store& store_;
  Jobs& jobs_;
  EventHub& events_;
  Clock& clock_;
  std::atomic<bool> stopping_{false};

  std::mutex import_mutex_;  // one import at a time: it numbers the trials of its job
  std::condition_variable import_ended_;
  bool importing_ = false;
};

}  // namespace kiln::scheduler
