#include "rpc/yield_reply.h"

#include <fmt/format.h>

#include <string>

namespace kiln {
namespace {

// Key of the metadata, whose value is the mode's name.
constexpr char kWorkerModeKey[] = "kiln-worker-mode";

}  // namespace

grpc::Status YieldReply(grpc::ServerContext& context, const EffectiveMode& mode) {
  context.AddTrailingMetadata(kWorkerModeKey, std::string(ModeName(mode.mode)));
  return grpc::Status(grpc::StatusCode::UNAVAILABLE,
                      fmt::format("the worker takes no trials now: {}",
                                  mode.sentence.empty() ? ModeName(mode.mode) : mode.sentence));
}

bool IsYieldReply(const grpc::ClientContext& context, const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         context.GetServerTrailingMetadata().contains(kWorkerModeKey);
}

}  // namespace kiln
