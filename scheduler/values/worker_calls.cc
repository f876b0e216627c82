#include "scheduler/values/worker_calls.h"

#include <grpcpp/client_context.h>

#include <algorithm>

#include "base/server/grpc_status.h"
#include "proto/builder.grpc.pb.h"
#include "proto/runner.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/yield_reply.h"

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

}  // namespace

std::shared_ptr<grpc::Channel> WorkerCalls::ChannelTo(const std::string& address) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<grpc::Channel>& channel = channels_[address];
  if (channel == nullptr) channel = MakeChannel(address, access_);
  return channel;
}

template <typename Invoke>
CallResult WorkerCalls::Call(const std::string& address, const CallLimits& limits,
                             const Invoke& invoke) {
  const std::shared_ptr<grpc::Channel> channel = ChannelTo(address);
  if (!Connect(*channel, limits)) {
    return {Unavailable("no connection to {} within {} ms", address, limits.connect.count()),
            false};
  }
  grpc::ClientContext context;
  context.set_deadline(system_clock::now() + limits.deadline);
  const auto cancel = [&context] { context.TryCancel(); };
  const std::stop_callback on_lost(limits.lost, cancel);
  const std::stop_callback on_stop(limits.stop, cancel);
  Status status = FromGrpc(invoke(channel, context));
  MarkYield(context, status);
  if (status.ok() || !limits.lost.stop_requested()) return {status, true};
  return {
      Unavailable("its lease was lost: the worker is gone, or the tracker has revoked the lease"),
      true};
}

CallResult WorkerCalls::Build(const std::string& address, const v1::BuildRequest& request,
                              const CallLimits& limits, v1::BuildReply* reply) {
  return Call(address, limits, [&](const auto& channel, grpc::ClientContext& context) {
    return v1::Builder::NewStub(channel)->Build(&context, request, reply);
  });
}

CallResult WorkerCalls::Measure(const std::string& address, const v1::MeasureRequest& request,
                                const CallLimits& limits, v1::MeasureReply* reply) {
  return Call(address, limits, [&](const auto& channel, grpc::ClientContext& context) {
    return v1::Runner::NewStub(channel)->Measure(&context, request, reply);
  });
}

}  // namespace kiln::scheduler
