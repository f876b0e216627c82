#include "client/client.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/hash/unique_id.h"
#include "base/server/grpc_status.h"
#include "base/server/net.h"
#include "client/protocol.h"
#include "client/reach.h"
#include "client/service_call.h"
#include "client/silence_guard.h"
#include "proto/tracker.grpc.pb.h"
#include "proto/version.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/trace_context.h"
#include "store/autotvm_log.h"

namespace kiln::client {
namespace {

constexpr auto kConnectTimeout = std::chrono::seconds(5);
// While a key is bound, the scheduler checks every record of the key.
constexpr auto kBindTimeout = std::chrono::seconds(600);
// How long a submission is repeated if its reply was lost.
constexpr absl::Duration kSubmitPatience = absl::Seconds(10);
constexpr int kRequestDigits = 32;

// Makes one call of a service over a channel that may not be connected yet. A server that has no
// answer in plain text may have one over TLS, which says what it asks for.
template <typename Service, typename Reply, typename Request>
StatusOr<Reply> FirstCall(const std::string& address, const FarmAccess& access,
                          const std::shared_ptr<grpc::Channel>& channel,
                          grpc::Status (Service::Stub::*method)(grpc::ClientContext*,
                                                                const Request&, Reply*),
                          const Request& request) {
  StatusOr<Reply> reply;
  const auto stub = Service::NewStub(channel);
  const auto call = [&] {
    reply = Call(*stub, method, request, kConnectTimeout);
    return reply.status();
  };
  const Status reached = Reach(call, Clock::Real());
  if (reached.code() != StatusCode::kUnavailable || access.keys() != nullptr) return reply;
  const auto strangers = Service::NewStub(MakeStrangersChannel(address));
  const Status told = Call(*strangers, method, Request(), kConnectTimeout).status();
  if (told.code() == StatusCode::kUnauthenticated) return told;
  return reply;
}

absl::Duration ClockLead(const v1::VersionReply& told, absl::Time now) {
  if (told.now_s() == 0) return absl::ZeroDuration();
  return absl::UnixEpoch() + absl::Seconds(told.now_s()) - now;
}

// Returns the error of a first call that got no answer.
Status CannotReach(std::string_view service, const std::string& address, const Status& status,
                   std::string_view advice) {
  if (status.code() == StatusCode::kUnimplemented) {
    return Unavailable("{} answers, but is no {}, or one of an older kiln: {}", address, service,
                       advice);
  }
  if (status.code() != StatusCode::kUnavailable && status.code() != StatusCode::kDeadlineExceeded) {
    return status;
  }
  const std::string reason =
      status.code() == StatusCode::kUnavailable ? ConnectionReason(Message(status)) : "no answer";
  return Unavailable("cannot reach a {} at {}: {}; {}", service, address, reason, advice);
}

// The trial numbers that were received. After a lost connection the stream is asked for again from
// the first missing one.
class Received {
 public:
  // Returns false if the number was added before.
  bool Add(uint32_t trial) { return trials_.insert(trial).second; }
  uint32_t FirstMissing() {
    while (trials_.count(first_missing_) > 0) ++first_missing_;
    return first_missing_;
  }

 private:
  std::set<uint32_t> trials_;
  uint32_t first_missing_ = 0;
};

}  // namespace

std::string ConnectionReason(std::string_view grpc_message) {
  // OpenSSL's words for an answer in plain text.
  if (grpc_message.find("WRONG_VERSION_NUMBER") != std::string_view::npos ||
      grpc_message.find("wrong version number") != std::string_view::npos) {
    return "it answers in plain text, and with --keys or KILN_KEYS a client asks for TLS: it was "
           "started without --keys";
  }
  constexpr std::string_view kMarks[] = {"remote host: ", "last error: "};
  for (std::string_view mark : kMarks) {
    const size_t at = grpc_message.rfind(mark);
    if (at != std::string_view::npos) return std::string(grpc_message.substr(at + mark.size()));
  }
  return std::string(grpc_message);
}

bool IsFinal(v1::JobState state) {
  return state == v1::SUCCEEDED || state == v1::FAILED || state == v1::CANCELLED;
}

StatusOr<std::unique_ptr<SchedulerClient>> SchedulerClient::Connect(const std::string& address,
                                                                    const FarmAccess& access,
                                                                    ClientLimits limits) {
  KILN_ASSIGN_OR_RETURN(const HostPort host_port, ParseHostPort(address));
  const auto channel = MakeChannel(host_port.ToString(), access);
  const auto told = FirstCall<v1::Versions>(host_port.ToString(), access, channel,
                                            &v1::Versions::Stub::Get, v1::VersionRequest());
  if (!told.ok()) {
    return CannotReach("scheduler", address, told.status(),
                       "start one with `kiln scheduler` or leave out --scheduler");
  }
  KILN_RETURN_IF_ERROR(CheckProtocol(*told, address));
  return std::unique_ptr<SchedulerClient>(
      new SchedulerClient(address, v1::Scheduler::NewStub(channel), access.keys() != nullptr,
                          ClockLead(*told, absl::Now()), std::move(limits)));
}

Status SchedulerClient::Silent(absl::Duration limit) const {
  return DeadlineExceeded(
      "the scheduler at {} accepted the call and has said nothing for {}: it may be stuck; look at "
      "its log, or start it again",
      address_, absl::FormatDuration(limit));
}

template <typename Message>
Status SchedulerClient::VisitStream(grpc::ClientContext& context,
                                    grpc::ClientReader<Message>& stream,
                                    const std::function<Status(const Message&)>& visit) const {
  SilenceGuard guard(context, limits_.silence);
  Message message;
  while (guard.Exchange([&] { return stream.Read(&message); })) {
    const Status status = visit(message);
    if (status.ok()) continue;
    context.TryCancel();
    (void)stream.Finish();
    return status;
  }
  const Status ended = FromGrpc(stream.Finish());
  return guard.fired() ? Silent(guard.last_limit()) : ended;
}

StatusOr<std::string> SchedulerClient::Submit(const v1::JobSpec& spec) {
  v1::SubmitRequest request;
  *request.mutable_spec() = spec;
  if (named_) request.mutable_spec()->clear_user();
  request.set_request_id(UniqueId(kRequestDigits));
  const char* const parent = std::getenv("TRACEPARENT");
  request.set_traceparent(PrintTraceparent(NewSpan(parent == nullptr ? "" : parent)));
  const absl::Time begin = absl::Now();
  RetryPause retry(limits_.random);
  while (true) {
    const auto reply = Call(*stub_, &v1::Scheduler::Stub::Submit, request);
    if (reply.ok()) return reply->job_id();
    const bool again =
        reply.status().code() == StatusCode::kUnavailable && absl::Now() - begin < kSubmitPatience;
    if (!again) return reply.status();
    absl::SleepFor(retry.Next());
  }
}

Status SchedulerClient::Cancel(const std::string& job_id) {
  v1::CancelJobRequest request;
  request.set_job_id(job_id);
  return Call(*stub_, &v1::Scheduler::Stub::CancelJob, request).status();
}

Status SchedulerClient::Pause(const std::string& job_id) {
  v1::PauseJobRequest request;
  request.set_job_id(job_id);
  return Call(*stub_, &v1::Scheduler::Stub::PauseJob, request).status();
}

Status SchedulerClient::Resume(const std::string& job_id) {
  v1::ResumeJobRequest request;
  request.set_job_id(job_id);
  return Call(*stub_, &v1::Scheduler::Stub::ResumeJob, request).status();
}

Status SchedulerClient::Watch(const std::string& job_id,
                              const std::function<void(const v1::JobEvent&)>& on_event,
                              std::stop_token stop, absl::Duration patience) {
  Received received;
  bool ended = false;
  absl::Time last_contact = absl::Now();
  RetryPause retry(limits_.random);
  while (!stop.stop_requested()) {
    v1::WatchJobRequest request;
    request.set_job_id(job_id);
    request.set_from_trial(received.FirstMissing());
    grpc::ClientContext context;
    std::stop_callback cancel(stop, [&] { context.TryCancel(); });
    const auto stream = stub_->WatchJob(&context, request);
    SilenceGuard guard(context, limits_.silence);
    bool heard = false;
    v1::JobStatus status;  // the last one that came, which holds until the next one
    v1::JobEvent event;
    while (guard.Exchange([&] { return stream->Read(&event); })) {
      heard = true;
      retry.Reset();
      last_contact = absl::Now();
      if (event.has_record() && !received.Add(event.record().trial())) event.clear_record();
      if (event.has_status()) {
        status = event.status();
      } else {
        *event.mutable_status() = status;
      }
      ended = IsFinal(event.status().state());
      on_event(event);
    }
    const grpc::Status finished = stream->Finish();
    if (finished.ok() && ended) return OkStatus();
    if (stop.stop_requested()) break;
    if (guard.fired()) {
      // A quiet job has no events, but each stream begins with one.
      if (heard) continue;
      return Unavailable("{}; job {} goes on if the scheduler works",
                         Message(Silent(guard.last_limit())), job_id);
    }
    // A stream that ends early without an error means that the scheduler is stopping.
    const Status error = finished.ok()
                             ? Unavailable("the scheduler ended the stream of job {}", job_id)
                             : FromGrpc(finished);
    if (error.code() != StatusCode::kUnavailable) return error;
    if (absl::Now() - last_contact > patience) {
      return Unavailable("lost the scheduler at {}: {}; job {} goes on when it is back", address_,
                         ConnectionReason(Message(error)), job_id);
    }
    absl::SleepFor(retry.Next());
  }
  return Cancelled("stopped watching job {}", job_id);
}

std::string SchedulerClient::Name() const { return "the scheduler at " + address_; }

StatusOr<v1::JobStatus> SchedulerClient::Job(const std::string& id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  return Call(*stub_, &v1::Scheduler::Stub::GetJob, request);
}

StatusOr<std::vector<v1::JobStatus>> SchedulerClient::Jobs(std::optional<uint32_t> limit) {
  v1::ListJobsRequest request;
  request.set_limit(limit.value_or(0));
  KILN_ASSIGN_OR_RETURN(const auto reply, Call(*stub_, &v1::Scheduler::Stub::ListJobs, request));
  return std::vector<v1::JobStatus>(reply.jobs().begin(), reply.jobs().end());
}

StatusOr<std::vector<v1::Record>> SchedulerClient::Best(const v1::BestRequest& request) {
  const auto reply = Call(*stub_, &v1::Scheduler::Stub::Best, request);
  if (reply.status().code() == StatusCode::kNotFound && request.job_id().empty()) {
    return std::vector<v1::Record>();
  }
  KILN_RETURN_IF_ERROR(reply.status());
  return std::vector<v1::Record>(reply->records().begin(), reply->records().end());
}

StatusOr<v1::Record> SchedulerClient::GetRecord(int64_t id) {
  v1::GetRecordRequest request;
  request.set_id(id);
  return Call(*stub_, &v1::Scheduler::Stub::GetRecord, request);
}

Status SchedulerClient::VisitRecords(const v1::ListRecordsRequest& request,
                                     const std::function<Status(const v1::Record&)>& visit) {
  grpc::ClientContext context;
  return VisitStream<v1::Record>(context, *stub_->ListRecords(&context, request), visit);
}

Status SchedulerClient::VisitAutotvmRecords(
    const v1::ListAutotvmRecordsRequest& request,
    const std::function<Status(const store::AutotvmRecord&)>& visit) {
  grpc::ClientContext context;
  const auto visit_line = [&](const v1::AutotvmLine& line) -> Status {
    KILN_ASSIGN_OR_RETURN(store::AutotvmRecord record, store::ParseAutotvmLine(line.line()));
    record.id = line.id();
    return visit(record);
  };
  return VisitStream<v1::AutotvmLine>(context, *stub_->ListAutotvmRecords(&context, request),
                                      visit_line);
}

StatusOr<uint64_t> SchedulerClient::DeleteRecords(const std::vector<int64_t>& ids) {
  v1::DeleteRecordsRequest request;
  request.mutable_ids()->Add(ids.begin(), ids.end());
  KILN_ASSIGN_OR_RETURN(const auto reply,
                        Call(*stub_, &v1::Scheduler::Stub::DeleteRecords, request));
  return reply.deleted();
}

StatusOr<uint64_t> SchedulerClient::DeleteAutotvmRecords(const std::vector<int64_t>& ids) {
  v1::DeleteAutotvmRecordsRequest request;
  request.mutable_ids()->Add(ids.begin(), ids.end());
  KILN_ASSIGN_OR_RETURN(const auto reply,
                        Call(*stub_, &v1::Scheduler::Stub::DeleteAutotvmRecords, request));
  return reply.deleted();
}

StatusOr<std::vector<store::PinnedSchedule>> SchedulerClient::PinnedSchedules(
    const std::string& workload_id) {
  v1::ListPinnedRequest request;
  request.set_workload_id(workload_id);
  KILN_ASSIGN_OR_RETURN(const auto reply, Call(*stub_, &v1::Scheduler::Stub::ListPinned, request));
  std::vector<store::PinnedSchedule> schedules;
  for (const v1::PinnedSchedule& one : reply.schedules()) {
    schedules.push_back({.workload_id = one.workload_id(),
                         .target = one.target(),
                         .steps = one.steps(),
                         .pinned_s = one.pinned_s()});
  }
  return schedules;
}

StatusOr<v1::QueryScheduleReply> SchedulerClient::QuerySchedule(
    const v1::QueryScheduleRequest& request) {
  return Call(*stub_, &v1::Scheduler::Stub::QuerySchedule, request);
}

StatusOr<v1::QueryConfigReply> SchedulerClient::QueryConfig(const v1::QueryConfigRequest& request) {
  return Call(*stub_, &v1::Scheduler::Stub::QueryConfig, request);
}

StatusOr<bool> SchedulerClient::SetSchedule(const v1::SetScheduleRequest& request) {
  KILN_ASSIGN_OR_RETURN(const auto reply, Call(*stub_, &v1::Scheduler::Stub::SetSchedule, request));
  return reply.was_set();
}

StatusOr<v1::BindKeyReply> SchedulerClient::BindKey(const v1::BindKeyRequest& request) {
  return Call(*stub_, &v1::Scheduler::Stub::BindKey, request, kBindTimeout);
}

StatusOr<v1::ImportRecordsReply> SchedulerClient::Import(LogLines& lines) {
  grpc::ClientContext context;
  v1::ImportRecordsReply reply;
  const auto stream = stub_->ImportRecords(&context, &reply);
  SilenceGuard guard(context, limits_.silence);
  v1::ImportRecordsRequest request;
  while (true) {
    const StatusOr<bool> more = lines.Next(*request.mutable_line());
    if (!more.ok()) {
      context.TryCancel();
      (void)stream->Finish();
      return more.status();
    }
    if (!*more || !guard.Exchange([&] { return stream->Write(request); })) break;
  }
  const Status ended = guard.Exchange(limits_.import_end, [&] {
    stream->WritesDone();
    return FromGrpc(stream->Finish());
  });
  if (guard.fired()) return Silent(guard.last_limit());
  KILN_RETURN_IF_ERROR(ended);
  return reply;
}

StatusOr<store::MergeResult> SchedulerClient::Merge(const std::string& path) {
  return FailedPrecondition(
      "{} is a database, and {} takes logs: `kiln records export --extended --errors --db {}` "
      "makes "
      "one of it; or merge the files while no scheduler works on them, without --scheduler",
      path, Name(), path);
}

StatusOr<v1::ListReply> ListWorkers(const std::string& tracker_address, const FarmAccess& access) {
  KILN_ASSIGN_OR_RETURN(const HostPort host_port, ParseHostPort(tracker_address));
  auto reply = FirstCall<v1::Tracker>(host_port.ToString(), access,
                                      MakeChannel(host_port.ToString(), access),
                                      &v1::Tracker::Stub::List, v1::ListRequest());
  if (!reply.ok()) {
    return CannotReach("tracker", tracker_address, reply.status(), "start one with `kiln tracker`");
  }
  return reply;
}

}  // namespace kiln::client
