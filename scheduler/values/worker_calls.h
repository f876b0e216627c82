// Calls builders and runners. Thread-safe; keeps one connection for each address.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "base/server/secret.h"
#include "base/status.h"

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
  // `secret` is sent with each call.
  explicit WorkerCalls(Secret secret = {}) : secret_(std::move(secret)) {}

  CallResult Build(const std::string& address, const v1::BuildRequest& request,
                   const CallLimits& limits, v1::BuildReply* reply);
  CallResult Measure(const std::string& address, const v1::MeasureRequest& request,
                     const CallLimits& limits, v1::MeasureReply* reply);

 private:
  template <typename Invoke>
  CallResult Call(const std::string& address, const CallLimits& limits, const Invoke& invoke);
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address);

  const Secret secret_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
};

}  // namespace kiln::scheduler
