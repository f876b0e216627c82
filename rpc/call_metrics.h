// Counts the calls that a server has answered, by method and status.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "base/metrics/metrics.h"
#include "base/server/grpc_server.h"

namespace kiln {

// Thread-safe. Costs an atomic addition and a search in a table for each call.
class CallMetrics {
 public:
  // Shows kiln_grpc_calls_total{method,code} in `metrics`, which outlive the object. Methods that
  // are not in the table of calls (rpc/roles.h) count as "other".
  explicit CallMetrics(Metrics& metrics);

  // Returns what a server tells of its calls. It refers to this object.
  CallEnded Hook();

 private:
  static constexpr size_t kCodes = 17;
  using Counts = std::array<std::atomic<uint64_t>, kCodes>;

  void Count(std::string_view method, int code);
  void Collect(MetricSheet& sheet) const;

  // In the order of CallRoles(); the last one is for other methods.
  std::vector<Counts> counts_;
  const std::shared_ptr<void> collector_;
};

}  // namespace kiln
