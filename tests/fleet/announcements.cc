#include "tests/fleet/announcements.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "base/log.h"

namespace kiln::fleet {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kDeadline{5};
constexpr milliseconds kRetry{500};

}  // namespace

struct Announcements::Call {
  grpc::ClientContext context;
  v1::AnnounceReply reply;
};

Announcements::Announcements(const std::string& tracker, std::vector<v1::WorkerState> workers,
                             Figures& figures, Timers& timers)
    : figures_(figures), timers_(timers) {
  for (v1::WorkerState& state : workers) {
    grpc::ChannelArguments arguments;
    // Without it all of them would share one connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    auto worker = std::make_unique<Worker>();
    *worker->request.mutable_worker() = std::move(state);
    worker->stub = v1::Tracker::NewStub(
        grpc::CreateCustomChannel(tracker, grpc::InsecureChannelCredentials(), arguments));
    workers_.push_back(std::move(worker));
  }
  open_ = workers_.size();
  for (const auto& worker : workers_) Announce(*worker);
}

Announcements::~Announcements() {
  std::unique_lock lock(mutex_);
  ends_ = true;
  changed_.wait(lock, [this] { return open_ == 0; });
}

void Announcements::WaitUntilAll() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return taken_ == workers_.size(); });
}

void Announcements::Announce(Worker& worker) {
  {
    std::lock_guard lock(mutex_);
    if (ends_) {
      --open_;
      changed_.notify_all();
      return;
    }
  }
  ++figures_.announces;
  auto call = std::make_shared<Call>();
  call->context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  worker.stub->async()->Announce(
      &call->context, &worker.request, &call->reply,
      [this, &worker, call](const grpc::Status& status) { Take(worker, status, call->reply); });
}

void Announcements::Take(Worker& worker, const grpc::Status& status,
                         const v1::AnnounceReply& reply) {
  milliseconds pause = kRetry;
  if (status.ok()) {
    pause = milliseconds(reply.next_announce_ms());
    worker.request.set_rejoining(true);
  } else {
    ++figures_.refused_announces;
    LogWarn("{} is not announced: {}", worker.request.worker().id(), status.error_message());
  }
  if (status.ok() && !worker.taken) {
    worker.taken = true;
    std::lock_guard lock(mutex_);
    ++taken_;
    changed_.notify_all();
  }
  timers_.At(steady_clock::now() + pause, [this, &worker] { Announce(worker); });
}

}  // namespace kiln::fleet
