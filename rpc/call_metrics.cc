#include "rpc/call_metrics.h"

#include <algorithm>
#include <string>

#include "rpc/roles.h"

namespace kiln {
namespace {

// Names of gRPC's status codes, in their order.
constexpr std::string_view kCodeNames[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

}  // namespace

CallMetrics::CallMetrics(Metrics& metrics)
    : counts_(CallRoles().size() + 1),
      collector_(metrics.AddCollector([this](MetricSheet& sheet) { Collect(sheet); })) {
  static_assert(std::size(kCodeNames) == kCodes);
}

CallEnded CallMetrics::Hook() {
  return [this](std::string_view method, grpc::StatusCode status) { Count(method, status); };
}

void CallMetrics::Count(std::string_view method, int code) {
  const auto rows = CallRoles();
  const auto row = std::ranges::lower_bound(rows, method, {}, &CallRole::method);
  const bool known = row != rows.end() && row->method == method;
  const size_t index = known ? static_cast<size_t>(row - rows.begin()) : rows.size();
  if (code < 0 || code >= static_cast<int>(kCodes)) code = grpc::StatusCode::UNKNOWN;
  counts_[index][static_cast<size_t>(code)].fetch_add(1, std::memory_order_relaxed);
}

void CallMetrics::Collect(MetricSheet& sheet) const {
  const auto rows = CallRoles();
  for (size_t i = 0; i < counts_.size(); ++i) {
    const std::string method = i < rows.size() ? CallName(rows[i].method) : "other";
    for (size_t code = 0; code < kCodes; ++code) {
      const uint64_t count = counts_[i][code].load(std::memory_order_relaxed);
      if (count == 0) continue;
      sheet.Counter("kiln_grpc_calls_total", "Calls of gRPC that were answered or refused.",
                    static_cast<double>(count),
                    {{"method", method}, {"code", std::string(kCodeNames[code])}});
    }
  }
}

}  // namespace kiln
