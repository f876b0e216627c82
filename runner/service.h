// The Runner gRPC service: a DeviceSlot behind the wire contract. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "proto/runner.grpc.pb.h"
#include "rpc/admission_control.h"
#include "rpc/worker_modes.h"
#include "runner/device_slot.h"
#include "runner/runner_metrics.h"

namespace kiln::runner {

class RunnerService : public v1::Runner::Service {
 public:
  // `slot` and `modes` outlive the service. Results bear worker_id. While the modes refuse trials,
  // calls are sent back (rpc/yield_reply.h); a pause stops the trial in hand. `on_fault` is called
  // when a trial fails by no fault of its own, by any thread; null: nobody is told. `metrics` count
  // what was answered.
  RunnerService(DeviceSlot& slot, const WorkerModes& modes, std::string worker_id,
                AdmissionControl admission = {}, std::function<void()> on_fault = nullptr,
                RunnerMetrics metrics = {})
      : slot_(slot),
        modes_(modes),
        worker_id_(std::move(worker_id)),
        admission_(std::move(admission)),
        on_fault_(std::move(on_fault)),
        metrics_(metrics) {}

  // Makes calls that wait or run end with Cancelled from now on. Called before the server's
  // Shutdown.
  void Stop() { stopping_ = true; }

  grpc::Status Measure(grpc::ServerContext* context, const v1::MeasureRequest* request,
                       v1::MeasureReply* reply) override;

 private:
  DeviceSlot& slot_;
  const WorkerModes& modes_;
  const std::string worker_id_;
  const AdmissionControl admission_;
  const std::function<void()> on_fault_;
  const RunnerMetrics metrics_;
  std::atomic<bool> stopping_{false};
};

}  // namespace kiln::runner
