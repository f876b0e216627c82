// The stream of a process of a user that serves parts of a job.
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "rpc/field_limits.h"
#include "scheduler/callbacks/callback_hub.h"
#include "scheduler/service/service.h"

namespace kiln::scheduler {
namespace {

// Longest time until the end of the job, or of the process, is noticed.
constexpr absl::Duration kLook = absl::Milliseconds(250);
// Longest time that a process has to end its side.
constexpr absl::Duration kLastAnswer = absl::Seconds(5);

using Stream = grpc::ServerReaderWriter<v1::CallbackRequest, v1::CallbackReply>;

// Brings answers to the connection, in a thread of its own, until the process ends its side. The
// time limits of answers are the job's, not that of streams that stand still. The destructor waits
// for the end.
class AnswerReader {
 public:
  AnswerReader(Stream& stream, CallbackHub::Connection& connection)
      : stream_(stream), connection_(connection), thread_([this] {
          const Status end = ReadAll();
          std::lock_guard lock(mutex_);
          end_ = end;
          changed_.notify_all();
        }) {}

  bool ended() const {
    std::lock_guard lock(mutex_);
    return end_.has_value();
  }
  // Returns why no more answers come. Call after the end.
  Status end() const {
    std::lock_guard lock(mutex_);
    return *end_;
  }
  // Returns false if the end does not come in this time.
  bool WaitForEnd(absl::Duration longest) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, absl::ToChronoMilliseconds(longest),
                             [this] { return end_.has_value(); });
  }

 private:
  Status ReadAll() {
    v1::CallbackReply reply;
    while (stream_.Read(&reply)) {
      if (const Status checked = CheckFields(reply); !checked.ok()) {
        connection_.Refuse(checked);
        return checked;
      }
      KILN_RETURN_IF_ERROR(connection_.Answer(std::move(reply)));
      reply.Clear();
    }
    return Cancelled("the caller has disconnected");
  }

  Stream& stream_;
  CallbackHub::Connection& connection_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Status> end_;
  std::jthread thread_;  // last: it uses the other members
};

}  // namespace

grpc::Status SchedulerService::ServeCallbacks(grpc::ServerContext* context,
                                              CallbackStream* stream) {
  return Answer(*context, v1::CallbackReply(), [&] { return Serve(*context, *stream); });
}

Status SchedulerService::CheckServing(const grpc::ServerContext& context,
                                      const v1::CallbackReply& first) const {
  KILN_RETURN_IF_ERROR(CheckFields(first));
  KILN_ASSIGN_OR_RETURN(const store::JobRow job, store_.GetJob(first.job_id()));
  KILN_RETURN_IF_ERROR(
      admission_.AdmitFor(context, job.user, "/kiln.v1.Scheduler/ServeCallbacks", "job " + job.id));
  KILN_ASSIGN_OR_RETURN(const std::string user, admission_.CallerName(context, first.user()));
  if (job.user != user) {
    return Status(StatusCode::kPermissionDenied,
                  fmt::format("job {} belongs to '{}', and '{}' offers to serve it; only its user "
                              "may",
                              job.id, job.user, user));
  }
  v1::JobSpec spec;
  if (!spec.ParseFromString(job.spec))
    return DataLoss("the spec of job {} in the database is damaged", job.id);
  if (!spec.has_served()) {
    return FailedPrecondition(
        "job {} has no part that a process serves: neither a cost model nor sketch rules nor an "
        "objective nor a build function of its user",
        job.id);
  }
  if (!store::IsFinal(job.state)) return OkStatus();
  return FailedPrecondition(
      "job {} has ended: it has {}; a job that failed goes on with `kiln tune "
      "--resume {}`",
      job.id, store::JobStateName(job.state), job.id);
}

Status SchedulerService::Serve(grpc::ServerContext& context, CallbackStream& stream) {
  KILN_ASSIGN_OR_RETURN(Streams::Stream place, streams_.Open(context, "callbacks"));
  v1::CallbackReply first;
  if (!place.Exchange([&] { return stream.Read(&first); })) return GoneStatus();
  KILN_RETURN_IF_ERROR(CheckServing(context, first));
  KILN_ASSIGN_OR_RETURN(const auto connection,
                        jobs_.callbacks().Connect(first.job_id(), [&] { context.TryCancel(); }));
  const auto send = [&](const v1::CallbackRequest& request) {
    return place.Exchange([&] { return stream.Write(request); });
  };
  if (!send(v1::CallbackRequest())) return GoneStatus();
  AnswerReader answers(stream, *connection);
  const Status end = [&] {
    std::optional<uint64_t> seen;  // version of the job when its state was read last
    while (true) {
      if (stopping_) return Unavailable("the scheduler is stopping; serve the job again");
      if (context.IsCancelled()) return GoneStatus();
      if (answers.ended()) return answers.end();
      const std::optional<v1::CallbackRequest> request = connection->Take(kLook);
      if (request.has_value()) {
        if (!send(*request)) return GoneStatus();
        continue;
      }
      const uint64_t version = events_.version(first.job_id());
      if (seen == version) continue;
      seen = version;
      KILN_ASSIGN_OR_RETURN(const store::JobRow job, store_.GetJob(first.job_id()));
      if (store::IsFinal(job.state)) return OkStatus();
    }
  }();
  // The process ends its side, so that no answer is read any more. One that does not is cut off.
  if (!send(v1::CallbackRequest()) || !answers.WaitForEnd(kLastAnswer)) context.TryCancel();
  return end;
}

}  // namespace kiln::scheduler
