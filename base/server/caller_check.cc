#include "base/server/caller_check.h"

#include <grpc/grpc_security.h>

#include <string>
#include <utility>

#include "base/server/grpc_status.h"

namespace kiln {
namespace {

std::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

void Check(void* check, grpc_auth_context*, const grpc_metadata* metadata, size_t count,
           grpc_process_auth_metadata_done_cb done, void* call) {
  const grpc::Status status =
      ToGrpc((*static_cast<const CallerCheck*>(check))(CallHead(metadata, count)));
  done(call, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.error_code()),
       status.ok() ? nullptr : status.error_message().c_str());
}

void DeleteCheck(void* check) { delete static_cast<CallerCheck*>(check); }

// gRPC's own plain-text credentials accept a check in their C form, but not in their C++ form.
class Credentials : public grpc::ServerCredentials {
 public:
  explicit Credentials(CallerCheck check)
      : credentials_(grpc_insecure_server_credentials_create()) {
    if (check == nullptr) return;
    grpc_server_credentials_set_auth_metadata_processor(
        credentials_, {Check, DeleteCheck, new CallerCheck(std::move(check))});
  }
  ~Credentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    KILN_CHECK(false, "the check is given when the credentials are made");
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* const credentials_;
};

}  // namespace

std::optional<std::string_view> CallHead::Find(std::string_view key) const {
  for (size_t i = 0; i < count_; ++i) {
    if (View(metadata_[i].key) == key) return View(metadata_[i].value);
  }
  return std::nullopt;
}

std::shared_ptr<grpc::ServerCredentials> CheckedCredentials(CallerCheck check) {
  return std::make_shared<Credentials>(std::move(check));
}

}  // namespace kiln
