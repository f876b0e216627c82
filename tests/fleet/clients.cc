#include "tests/fleet/clients.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace kiln::fleet {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kDeadline{60};

std::unique_ptr<v1::Scheduler::Stub> StubOf(const std::string& scheduler) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(256 << 20);
  return v1::Scheduler::NewStub(
      grpc::CreateCustomChannel(scheduler, grpc::InsecureChannelCredentials(), arguments));
}

// Times a call; an answer that is an error counts as well, for a job that has no best record yet.
template <typename Call>
void Time(Times& times, const Call& call) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  const auto begin = steady_clock::now();
  const grpc::Status status = call(context);
  times.Add(steady_clock::now() - begin);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    LogWarn("a call of a user took more than {} s", kDeadline.count());
  }
}

}  // namespace

Clients::Clients(const std::string& scheduler, Figures& figures,
                 std::function<TimePoint(const std::string& trial)> begin_of)
    : figures_(figures), begin_of_(std::move(begin_of)), stub_(StubOf(scheduler)) {}

Clients::~Clients() {
  asker_.request_stop();
  for (Watcher& watcher : watchers_) watcher.context.TryCancel();
  for (Watcher& watcher : watchers_) watcher.thread.join();
}

void Clients::Watch(const std::string& job) {
  Watcher& watcher = watchers_.emplace_back();
  watcher.thread = std::thread([this, &watcher, job] { Follow(watcher, job); });
}

void Clients::Follow(Watcher& watcher, const std::string& job) {
  v1::WatchJobRequest request;
  request.set_job_id(job);
  const auto stream = stub_->WatchJob(&watcher.context, request);
  v1::JobEvent event;
  while (stream->Read(&event)) Note(event, job);
  const grpc::Status status = stream->Finish();
  const bool is_cancelled = status.error_code() == grpc::StatusCode::CANCELLED;
  if (!status.ok() && !is_cancelled) LogWarn("watching job {}: {}", job, status.error_message());
}

void Clients::Note(const v1::JobEvent& event, const std::string& job) {
  ++figures_.events;
  figures_.event_bytes += static_cast<int64_t>(event.ByteSizeLong());
  if (!event.has_record()) return;
  ++figures_.records;
  const TimePoint begin = begin_of_(fmt::format("{}/{}", job, event.record().trial()));
  if (begin != TimePoint()) figures_.build_to_record.Add(steady_clock::now() - begin);
}

void Clients::Ask(const std::string& job, milliseconds pause) {
  std::lock_guard lock(mutex_);
  asked_.push_back(job);
  if (asker_.joinable()) return;
  asker_ = std::jthread([this, pause](const std::stop_token& stop) { AskInTurns(pause, stop); });
}

void Clients::AskInTurns(milliseconds pause, const std::stop_token& stop) {
  for (size_t turn = 0; !stop.stop_requested(); ++turn) {
    std::string job;
    {
      std::lock_guard lock(mutex_);
      job = asked_[turn % asked_.size()];
    }
    Time(figures_.get_job, [&](grpc::ClientContext& context) {
      v1::GetJobRequest request;
      request.set_job_id(job);
      v1::JobStatus status;
      return stub_->GetJob(&context, request, &status);
    });
    Time(figures_.best, [&](grpc::ClientContext& context) {
      v1::BestRequest request;
      request.set_job_id(job);
      v1::BestReply reply;
      return stub_->Best(&context, request, &reply);
    });
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace kiln::fleet
