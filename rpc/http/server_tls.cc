#include "rpc/http/server_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <utility>

namespace kiln {
namespace {

// The guard decides about certificates, with all that it knows of roles and revocations.
int TakeAnyCertificate(X509_STORE_CTX*, void*) { return 1; }

Status CannotUse(const LiveKeys& keys) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return Internal("OpenSSL cannot use the keys of {}: {}", keys.path(),
                  reason == nullptr ? "no reason given" : reason);
}

StatusOr<std::shared_ptr<SSL_CTX>> MakeContext(const LiveKeys& keys, const KeyFolder& folder) {
  ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_use_certificate(context.get(), folder.certificate.handle()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), folder.key.handle()) != 1 ||
      SSL_CTX_add_client_CA(context.get(), folder.authority.handle()) != 1) {
    return CannotUse(keys);
  }
  SSL_CTX_set_options(context.get(),
                      SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // A session that goes on would skip the certificate.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context.get(), TakeAnyCertificate, nullptr);
  return context;
}

}  // namespace

StatusOr<std::shared_ptr<ssl_ctx_st>> ServerTls::Now() {
  std::shared_ptr<const KeyFolder> now = keys_->Now();
  const std::lock_guard lock(mutex_);
  if (now == given_) return context_;
  KILN_ASSIGN_OR_RETURN(context_, MakeContext(*keys_, *now));
  given_ = std::move(now);
  return context_;
}

}  // namespace kiln
