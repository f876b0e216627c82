// Calls builders and runners. Thread-safe; keeps one connection for each address.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "base/status.h"
#include "rpc/farm_access.h"

namespace grpc {
class Channel;
}
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
  // `access` is that of the workers' farm.
  explicit WorkerCalls(FarmAccess access = {}) : access_(std::move(access)) {}

  CallResult Build(const std::string& address, const v1::BuildRequest& request,
                   const CallLimits& limits, v1::BuildReply* reply);
  CallResult Measure(const std::string& address, const v1::MeasureRequest& request,
                     const CallLimits& limits, v1::MeasureReply* reply);

 private:
  template <typename Invoke>
  CallResult Call(const std::string& address, const CallLimits& limits, const Invoke& invoke);
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address);

  const FarmAccess access_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
};

}  // namespace kiln::scheduler
