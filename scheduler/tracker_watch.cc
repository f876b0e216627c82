#include "scheduler/tracker_watch.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "proto/tracker.grpc.pb.h"
#include "rpc/channel.h"

namespace kiln::scheduler {
namespace {

constexpr std::chrono::seconds kEvery{5};
constexpr std::chrono::seconds kDeadline{5};

void Watch(const std::stop_token& stop, const std::string& tracker, const std::string& scheduler_id,
           const FarmAccess& access, DriftMarks& marks) {
  const auto stub = v1::Tracker::NewStub(MakeChannel(tracker, access));
  // Renews nothing: the reply has the lists all the same.
  v1::RenewRequest request;
  request.set_scheduler_id(scheduler_id);
  std::mutex mutex;
  std::condition_variable_any changed;
  while (!stop.stop_requested()) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    v1::RenewReply reply;
    if (stub->Renew(&context, request, &reply).ok()) {
      access.TakeRevoked(reply.revoked());
      marks.Take(reply.drifts());
    }
    std::unique_lock lock(mutex);
    changed.wait_for(lock, stop, kEvery, [] { return false; });
  }
}

}  // namespace

TrackerWatch::TrackerWatch(std::string tracker, std::string scheduler_id, FarmAccess access,
                           DriftMarks& marks)
    : thread_([tracker = std::move(tracker), scheduler_id = std::move(scheduler_id),
               access = std::move(access), &marks](const std::stop_token& stop) {
        Watch(stop, tracker, scheduler_id, access, marks);
      }) {}

}  // namespace kiln::scheduler
