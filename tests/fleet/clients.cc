#include "tests/fleet/clients.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <atomic>
#include <limits>
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

// The stream of one watched job. gRPC calls it, one call at a time.
class Clients::Watcher final : public grpc::ClientReadReactor<v1::JobEvent> {
 public:
  Watcher(Clients& clients, std::string job) : clients_(clients), job_(std::move(job)) {}

  void Begin() {
    request_.set_job_id(job_);
    clients_.stub_->async()->WatchJob(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }
  void Cancel() { context_.TryCancel(); }
  int64_t records() const { return records_; }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    records_ += event_.has_record();
    clients_.Note(event_, job_);
    StartRead(&event_);
  }
  void OnDone(const grpc::Status& status) override {
    const bool is_cancelled = status.error_code() == grpc::StatusCode::CANCELLED;
    if (!status.ok() && !is_cancelled) LogWarn("watching job {}: {}", job_, status.error_message());
    std::lock_guard lock(clients_.mutex_);
    --clients_.open_;
    clients_.ended_.notify_all();
  }

 private:
  Clients& clients_;
  const std::string job_;
  grpc::ClientContext context_;
  v1::WatchJobRequest request_;
  v1::JobEvent event_;
  std::atomic<int64_t> records_{0};
};

Clients::Clients(const std::string& scheduler, Figures& figures,
                 std::function<TimePoint(const std::string& trial)> begin_of)
    : figures_(figures), begin_of_(std::move(begin_of)), stub_(StubOf(scheduler)) {}

Clients::~Clients() {
  asker_.request_stop();
  std::unique_lock lock(mutex_);
  for (const auto& watcher : watchers_) watcher->Cancel();
  ended_.wait(lock, [this] { return open_ == 0; });
}

void Clients::Watch(const std::string& job) {
  std::lock_guard lock(mutex_);
  ++open_;
  watchers_.emplace_back(std::make_unique<Watcher>(*this, job))->Begin();
}

int64_t Clients::FewestRecords() {
  std::lock_guard lock(mutex_);
  if (watchers_.empty()) return 0;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const auto& watcher : watchers_) fewest = std::min(fewest, watcher->records());
  return fewest;
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
