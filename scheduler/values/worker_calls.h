// Calls builders and runners for one job, over the connections that all jobs share. Thread-safe.
//
// A call holds no thread while its worker is at work: the answer comes in a thread of gRPC, which
// must not be held up. Only the wait for a connection, which a call needs once, has a thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "base/status.h"
#include "rpc/farm_access.h"
#include "scheduler/values/helper_threads.h"
#include "scheduler/values/worker_channels.h"

namespace kiln::v1 {
class BuildRequest;
class BuildReply;
class MeasureRequest;
class MeasureReply;
}  // namespace kiln::v1

namespace kiln::scheduler {

struct CallLimits {
  std::chrono::milliseconds connect{3'000};
  std::chrono::milliseconds deadline{60'000};  // for the call, once connected
  std::stop_token lost;                        // a request of either token cancels the call
  std::stop_token stop;
};

struct CallResult {
  Status status;
  // False if no connection came about. Then the trial has no part in the failure.
  bool reached = false;
};

class WorkerCalls {
 public:
  // Gets the end of a call, once, in any thread. The reply is the caller's.
  template <typename Reply>
  using Done = std::function<void(CallResult result, Reply& reply)>;

  // `access` is that of the workers' farm.
  WorkerCalls(FarmAccess access, std::shared_ptr<WorkerChannels> channels);
  // All calls must have ended.
  ~WorkerCalls();

  void Build(const std::string& address, v1::BuildRequest request, const CallLimits& limits,
             Done<v1::BuildReply> done);
  void Measure(const std::string& address, std::shared_ptr<const v1::MeasureRequest> request,
               const CallLimits& limits, Done<v1::MeasureReply> done);

 private:
  using WorkerPtr = std::shared_ptr<WorkerChannel>;

  // Has `call` run once there is a connection, or `failed`, in this thread or a helper.
  void WhenConnected(const WorkerPtr& worker, const CallLimits& limits, std::function<void()> call,
                     std::function<void(CallResult)> failed);

  const FarmAccess access_;
  const std::shared_ptr<WorkerChannels> channels_;
  HelperThreads helpers_;  // last: they use the other members
};

}  // namespace kiln::scheduler
