#include "tracker/checks.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "rpc/device_message.h"

namespace kiln::tracker {
namespace {

constexpr size_t kMaxIdBytes = 256;
constexpr int kMaxKeys = 64;

Status CheckKind(v1::WorkerKind kind) {
  if (kind == v1::BUILDER || kind == v1::RUNNER) return OkStatus();
  return InvalidArgument("worker kind is {}; expected BUILDER (1) or RUNNER (2)",
                         static_cast<int>(kind));
}

Status CheckAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  unsigned port = 0;
  bool ok = colon != std::string_view::npos && colon > 0 && address.size() <= kMaxIdBytes;
  if (ok) {
    const char* end = address.data() + address.size();
    const auto parsed = std::from_chars(address.data() + colon + 1, end, port);
    ok = parsed.ec == std::errc() && parsed.ptr == end && port >= 1 && port <= 65535;
  }
  if (ok) return OkStatus();
  return InvalidArgument("worker address is '{}'; expected HOST:PORT", address);
}

}  // namespace

Status CheckId(std::string_view field, std::string_view value) {
  if (value.empty()) return InvalidArgument("{} is empty; expected a unique name", field);
  if (value.size() > kMaxIdBytes) {
    return InvalidArgument("{} has {} bytes; at most {} are accepted", field, value.size(),
                           kMaxIdBytes);
  }
  return OkStatus();
}

Status CheckRequest(const v1::AcquireRequest& request) {
  KILN_RETURN_IF_ERROR(CheckId("request_id", request.request_id()));
  KILN_RETURN_IF_ERROR(CheckId("scheduler_id", request.scheduler_id()));
  KILN_RETURN_IF_ERROR(CheckKind(request.kind()));
  KILN_RETURN_IF_ERROR(CheckId("key", request.key()));
  if (request.user().size() > kMaxIdBytes) {
    return InvalidArgument("user has {} bytes; at most {} are accepted", request.user().size(),
                           kMaxIdBytes);
  }
  if (!std::isfinite(request.use())) {
    return InvalidArgument("use is {}; expected a finite number", request.use());
  }
  return OkStatus();
}

Status CheckWorker(const v1::WorkerState& state) {
  KILN_RETURN_IF_ERROR(CheckId("worker id", state.id()));
  KILN_RETURN_IF_ERROR(CheckKind(state.kind()));
  KILN_RETURN_IF_ERROR(CheckAddress(state.address()));
  if (state.keys().empty() || state.keys_size() > kMaxKeys) {
    return InvalidArgument("worker '{}' lists {} keys; expected 1 to {} such as \"llvm\"",
                           state.id(), state.keys_size(), kMaxKeys);
  }
  for (const std::string& key : state.keys()) KILN_RETURN_IF_ERROR(CheckId("worker key", key));
  if (state.slots() < 1 || state.slots() > kMaxSlots) {
    return InvalidArgument("worker '{}' has {} slots; expected 1 to {}", state.id(), state.slots(),
                           kMaxSlots);
  }
  return state.kind() == v1::RUNNER ? DeviceModelOf(state).status() : OkStatus();
}

Status CheckAsked(const v1::SetWorkerModeRequest& request) {
  KILN_RETURN_IF_ERROR(CheckId("worker", request.worker()));
  switch (request.mode()) {
    case v1::WORKER_SERVES:
    case v1::WORKER_CORDONED:
    case v1::WORKER_DRAINS:
    case v1::WORKER_PAUSED:
      return OkStatus();
    default:
      return InvalidArgument(
          "mode is {}; expected WORKER_SERVES (0), WORKER_CORDONED (1), WORKER_DRAINS (2) or "
          "WORKER_PAUSED (3), because a worker quarantines itself",
          static_cast<int>(request.mode()));
  }
}

bool Serves(const v1::WorkerState& worker, v1::WorkerKind kind, std::string_view key) {
  return worker.kind() == kind &&
         std::find(worker.keys().begin(), worker.keys().end(), key) != worker.keys().end();
}

bool Suits(const v1::WorkerState& worker, const v1::AcquireRequest& request) {
  const auto& avoided = request.avoid_worker_ids();
  return Serves(worker, request.kind(), request.key()) &&
         std::find(avoided.begin(), avoided.end(), worker.id()) == avoided.end();
}

}  // namespace kiln::tracker
