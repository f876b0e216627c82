#include "base/server/grpc_status.h"

namespace kiln {
namespace {

// Servers and clients limit all headers of a call to 8 KiB. An unprintable byte takes three bytes
// in a header.
constexpr size_t kMaxMessageBytes = 2000;

std::string Shorten(std::string_view message) {
  if (message.size() <= kMaxMessageBytes) return std::string(message);
  constexpr size_t kHalf = kMaxMessageBytes / 2 - 20;
  return fmt::format("{} [{} bytes left out] {}", message.substr(0, kHalf),
                     message.size() - 2 * kHalf, message.substr(message.size() - kHalf));
}

}  // namespace

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), Shorten(Message(status)));
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return OkStatus();
  return Status(static_cast<StatusCode>(status.error_code()), status.error_message());
}

}  // namespace kiln
