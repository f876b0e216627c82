#include "base/server/caller_check.h"

#include <grpc/grpc_security.h>

#include <mutex>
#include <string>
#include <utility>

#include "base/server/grpc_status.h"

namespace kiln {
namespace {

std::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// State of the callbacks of a server's credentials. gRPC deletes it with the credentials.
struct Guard {
  CallerCheck check;
  std::shared_ptr<LiveKeys> keys;
  std::mutex mutex;
  // The keys that gRPC has. Guarded by mutex.
  std::shared_ptr<const KeyFolder> given = nullptr;
};

void Check(void* guard, grpc_auth_context* caller, const grpc_metadata* metadata, size_t count,
           grpc_process_auth_metadata_done_cb done, void* call) {
  const CallerCheck& check = static_cast<const Guard*>(guard)->check;
  const grpc::Status status =
      ToGrpc(check == nullptr ? OkStatus() : check(CallHead(metadata, count, caller)));
  done(call, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.error_code()),
       status.ok() ? nullptr : status.error_message().c_str());
}

void DeleteGuard(void* guard) { delete static_cast<Guard*>(guard); }

// Gives gRPC the keys for a new connection, if they have changed.
grpc_ssl_certificate_config_reload_status FetchKeys(void* data,
                                                    grpc_ssl_server_certificate_config** config) {
  auto& guard = *static_cast<Guard*>(data);
  const std::lock_guard lock(guard.mutex);
  std::shared_ptr<const KeyFolder> now = guard.keys->Now();
  if (now == guard.given) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  guard.given = std::move(now);
  const std::string key = guard.given->key.ToPem(), own = guard.given->certificate.ToPem();
  const grpc_ssl_pem_key_cert_pair pair{key.c_str(), own.c_str()};
  *config =
      grpc_ssl_server_certificate_config_create(guard.given->authority.ToPem().c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

grpc_server_credentials* MakeCredentials(Guard* guard) {
  if (guard->keys == nullptr) return grpc_insecure_server_credentials_create();
  return grpc_ssl_server_credentials_create_with_options(
      grpc_ssl_server_credentials_create_options_using_config_fetcher(
          GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY, FetchKeys, guard));
}

// gRPC's own credentials accept a check in their C form, but not in their C++ form.
class Credentials : public grpc::ServerCredentials {
 public:
  Credentials(CallerCheck check, std::shared_ptr<LiveKeys> keys) {
    if (check == nullptr && keys == nullptr) {
      credentials_ = grpc_insecure_server_credentials_create();
      return;
    }
    // The processor is set whether or not there is a check, since it owns the guard.
    auto* const guard = new Guard{std::move(check), std::move(keys), {}};
    credentials_ = MakeCredentials(guard);
    grpc_server_credentials_set_auth_metadata_processor(credentials_, {Check, DeleteGuard, guard});
  }
  ~Credentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    KILN_CHECK(false, "the check is given when the credentials are made");
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* credentials_ = nullptr;
};

}  // namespace

std::optional<std::string_view> CallHead::Find(std::string_view key) const {
  for (size_t i = 0; i < count_; ++i) {
    if (View(metadata_[i].key) == key) return View(metadata_[i].value);
  }
  return std::nullopt;
}

std::optional<std::string_view> CallHead::certificate() const {
  if (caller_ == nullptr) return std::nullopt;
  grpc_auth_property_iterator found =
      grpc_auth_context_find_properties_by_name(caller_, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  const grpc_auth_property* const property = grpc_auth_property_iterator_next(&found);
  if (property == nullptr) return std::nullopt;
  return std::string_view(property->value, property->value_length);
}

std::shared_ptr<grpc::ServerCredentials> CheckedCredentials(CallerCheck check,
                                                            std::shared_ptr<LiveKeys> keys) {
  return std::make_shared<Credentials>(std::move(check), std::move(keys));
}

}  // namespace kiln
