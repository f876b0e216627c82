#include "rpc/yield_reply.h"

#include <fmt/format.h>

#include <string>

#include "absl/strings/cord.h"

namespace kiln {
namespace {

// Key of the metadata, whose value is the mode's name.
constexpr char kWorkerModeKey[] = "kiln-worker-mode";
// Name of the mark of a status.
constexpr char kYieldMark[] = "kiln/yield";

}  // namespace

grpc::Status YieldReply(grpc::ServerContext& context, const EffectiveMode& mode) {
  context.AddTrailingMetadata(kWorkerModeKey, std::string(ModeName(mode.mode)));
  return grpc::Status(grpc::StatusCode::UNAVAILABLE,
                      fmt::format("the worker takes no trials now: {}",
                                  mode.sentence.empty() ? ModeName(mode.mode) : mode.sentence));
}

void MarkYield(const grpc::ClientContext& context, Status& status) {
  if (status.code() != StatusCode::kUnavailable) return;
  if (!context.GetServerTrailingMetadata().contains(kWorkerModeKey)) return;
  status.SetPayload(kYieldMark, absl::Cord());
}

bool IsYield(const Status& status) { return status.GetPayload(kYieldMark).has_value(); }

}  // namespace kiln
