#include "scheduler/values/worker_calls.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <optional>

#include "base/server/grpc_status.h"
#include "rpc/yield_reply.h"
#include "scheduler/values/worker_channel.h"

namespace kiln::scheduler {
namespace {

using std::chrono::system_clock;

// Time between two checks whether a wait for a connection should stop.
constexpr std::chrono::milliseconds kConnectSlice{100};

bool Connect(grpc::Channel& channel, const CallLimits& limits) {
  const auto until = system_clock::now() + limits.connect;
  while (!limits.stop.stop_requested() && !limits.lost.stop_requested()) {
    const auto now = system_clock::now();
    if (channel.WaitForConnected(std::min(until, now + kConnectSlice))) return true;
    if (now >= until) return false;
  }
  return false;
}

// A call that goes on. It keeps itself until its end.
template <typename Request, typename Reply>
struct Pending {
  Pending(std::shared_ptr<const Request> request, const CallLimits& limits,
          WorkerCalls::Done<Reply> done)
      : request(std::move(request)), lost(limits.lost), done(std::move(done)) {
    context.set_deadline(system_clock::now() + limits.deadline);
    const std::function<void()> cancel = [this] { context.TryCancel(); };
    on_lost.emplace(limits.lost, cancel);
    on_stop.emplace(limits.stop, cancel);
  }

  void End(const grpc::Status& ended) {
    on_lost.reset();
    on_stop.reset();
    Status status = FromGrpc(ended);
    MarkYield(context, status);
    if (!status.ok() && lost.stop_requested()) {
      status = Unavailable(
          "its lease was lost: the worker is gone, or the tracker has revoked the lease");
    }
    done({std::move(status), true}, reply);
  }

  grpc::ClientContext context;
  const std::shared_ptr<const Request> request;
  const std::stop_token lost;
  const WorkerCalls::Done<Reply> done;
  Reply reply;
  std::optional<std::stop_callback<std::function<void()>>> on_lost, on_stop;
};

}  // namespace

WorkerCalls::WorkerCalls(FarmAccess access, std::shared_ptr<WorkerChannels> channels)
    : access_(std::move(access)), channels_(std::move(channels)) {}

WorkerCalls::~WorkerCalls() = default;

void WorkerCalls::WhenConnected(const WorkerPtr& worker, const CallLimits& limits,
                                std::function<void()> call,
                                std::function<void(CallResult)> failed) {
  if (worker->channel->GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) return call();
  helpers_.Run([worker, limits, call = std::move(call), failed = std::move(failed)] {
    if (Connect(*worker->channel, limits)) return call();
    failed(
        {Unavailable("no connection to {} within {} ms", worker->address, limits.connect.count()),
         false});
  });
}

void WorkerCalls::Build(const std::string& address, v1::BuildRequest request,
                        const CallLimits& limits, Done<v1::BuildReply> done) {
  const WorkerPtr worker = channels_->At(address, access_);
  const auto sent = std::make_shared<const v1::BuildRequest>(std::move(request));
  WhenConnected(
      worker, limits,
      [worker, sent, limits, done] {
        auto call = std::make_shared<Pending<v1::BuildRequest, v1::BuildReply>>(sent, limits, done);
        worker->builder->async()->Build(&call->context, call->request.get(), &call->reply,
                                        [call](const grpc::Status& status) { call->End(status); });
      },
      [done](CallResult result) {
        v1::BuildReply none;
        done(std::move(result), none);
      });
}

void WorkerCalls::Measure(const std::string& address,
                          std::shared_ptr<const v1::MeasureRequest> request,
                          const CallLimits& limits, Done<v1::MeasureReply> done) {
  const WorkerPtr worker = channels_->At(address, access_);
  WhenConnected(
      worker, limits,
      [worker, request, limits, done] {
        auto call =
            std::make_shared<Pending<v1::MeasureRequest, v1::MeasureReply>>(request, limits, done);
        worker->runner->async()->Measure(&call->context, call->request.get(), &call->reply,
                                         [call](const grpc::Status& status) { call->End(status); });
      },
      [done](CallResult result) {
        v1::MeasureReply none;
        done(std::move(result), none);
      });
}

}  // namespace kiln::scheduler
