#include "client/reach.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(200);

bool IsConclusive(const Status& status) {
  if (status.code() != StatusCode::kUnavailable) return true;
  return Message(status).find("Connection refused") != std::string_view::npos;
}

}  // namespace

Status Reach(absl::FunctionRef<Status()> call, Clock& clock) {
  const absl::Time end = clock.Now() + kReachPatience;
  while (true) {
    Status status = call();
    if (IsConclusive(status) || clock.Now() >= end) return status;
    clock.SleepFor(kPause);
  }
}

}  // namespace kiln::client
