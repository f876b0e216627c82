// The scheduler's RPCs as functions, for the command line and any other program.
//
//   KILN_ASSIGN_OR_RETURN(auto client, SchedulerClient::Connect("127.0.0.1:9290", {}));
//   KILN_ASSIGN_OR_RETURN(const std::string job, client->Submit(spec));
//   KILN_RETURN_IF_ERROR(client->Watch(job, [](const v1::JobEvent& event) { ... }, stop));
//
// Thread-safe. Call InitGrpc (base/server/grpc_server.h) at the start of main.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/time/time.h"
#include "client/archive.h"
#include "proto/scheduler.grpc.pb.h"
#include "rpc/farm_access.h"
#include "rpc/retry_pause.h"

namespace kiln::client {

// How long a client waits, and how it repeats calls.
struct ClientLimits {
  // A stream whose scheduler neither sends nor takes anything for so long is given up.
  absl::Duration silence = absl::Minutes(2);
  // So long the scheduler may work on the last lines of an import before it answers.
  absl::Duration import_end = absl::Minutes(10);
  // Parts of the pauses between two tries.
  Random random = RealRandom();
};

class SchedulerClient : public Archive {
 public:
  // Asks the scheduler something at once. Unavailable: "cannot reach a scheduler at ...".
  static StatusOr<std::unique_ptr<SchedulerClient>> Connect(const std::string& address,
                                                            const FarmAccess& access,
                                                            ClientLimits limits = {});

  const std::string& address() const { return address_; }
  // The connection, for code that makes other calls: remote_models.h, scheduler_context.h.
  const std::shared_ptr<v1::Scheduler::Stub>& stub() const { return stub_; }

  // Returns how far the scheduler's clock is ahead of this machine's, as the first call found it.
  absl::Duration clock_lead() const { return clock_lead_; }

  // Returns the id of the new job. With keys the job is in the name of their certificate.
  StatusOr<std::string> Submit(const v1::JobSpec& spec);
  Status Cancel(const std::string& job_id);
  // The job holds no device after the trials in hand, until it is resumed.
  Status Pause(const std::string& job_id);
  // Resumes a job that is paused, failed, was cancelled, or was left unfinished.
  Status Resume(const std::string& job_id);

  // Calls `on_event` in this thread for every record of the job, each once, and every change of its
  // status, until the job has ended. A lost connection is made again, and so is a stream that is
  // silent for long. Returns Unavailable only if the connection stays lost for `patience`, or the
  // scheduler accepts the call and says nothing at all; and Cancelled once `stop` is requested.
  Status Watch(const std::string& job_id, const std::function<void(const v1::JobEvent&)>& on_event,
               std::stop_token stop, absl::Duration patience = absl::Seconds(30));

  std::string Name() const override;
  StatusOr<v1::JobStatus> Job(const std::string& id) override;
  StatusOr<std::vector<v1::JobStatus>> Jobs(std::optional<uint32_t> limit) override;
  StatusOr<std::vector<v1::Record>> Best(const v1::BestRequest& request) override;
  StatusOr<v1::Record> GetRecord(int64_t id) override;
  StatusOr<store::MergeResult> Merge(const std::string& path) override;
  Status VisitAutotvmRecords(
      const v1::ListAutotvmRecordsRequest& request,
      const std::function<Status(const store::AutotvmRecord&)>& visit) override;
  Status VisitRecords(const v1::ListRecordsRequest& request,
                      const std::function<Status(const v1::Record&)>& visit) override;
  StatusOr<uint64_t> DeleteRecords(const std::vector<int64_t>& ids) override;
  StatusOr<uint64_t> DeleteAutotvmRecords(const std::vector<int64_t>& ids) override;
  StatusOr<std::vector<store::PinnedSchedule>> PinnedSchedules(
      const std::string& workload_id) override;
  StatusOr<v1::QueryScheduleReply> QuerySchedule(const v1::QueryScheduleRequest& request) override;
  StatusOr<v1::QueryConfigReply> QueryConfig(const v1::QueryConfigRequest& request) override;
  StatusOr<bool> SetSchedule(const v1::SetScheduleRequest& request) override;
  StatusOr<v1::BindKeyReply> BindKey(const v1::BindKeyRequest& request) override;
  StatusOr<v1::ImportRecordsReply> Import(LogLines& lines) override;

 private:
  SchedulerClient(std::string address, std::shared_ptr<v1::Scheduler::Stub> stub, bool named,
                  absl::Duration clock_lead, ClientLimits limits)
      : address_(std::move(address)),
        stub_(std::move(stub)),
        named_(named),
        clock_lead_(clock_lead),
        limits_(std::move(limits)) {}

  // Calls `visit` for each message of a stream until it returns an error, which is then returned.
  template <typename Message>
  Status VisitStream(grpc::ClientContext& context, grpc::ClientReader<Message>& stream,
                     const std::function<Status(const Message&)>& visit) const;
  Status Silent(absl::Duration limit) const;

  std::string address_;
  std::shared_ptr<v1::Scheduler::Stub> stub_;
  // A certificate says who calls.
  const bool named_;
  const absl::Duration clock_lead_;
  const ClientLimits limits_;
};

bool IsFinal(v1::JobState state);

// Returns the tracker's workers. Unavailable: "cannot reach a tracker at ...".
StatusOr<v1::ListReply> ListWorkers(const std::string& tracker_address, const FarmAccess& access);

// Returns the reason of a failed connection: "Connection refused" of "failed to connect to all
// addresses; last error: ... Connection refused".
std::string ConnectionReason(std::string_view grpc_message);

}  // namespace kiln::client
