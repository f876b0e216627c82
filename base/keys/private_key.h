// Private keys: of P-256, for ECDSA. A value; copies are cheap. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/keys/certificate.h"
#include "base/status.h"

// OpenSSL's EVP_PKEY.
struct evp_pkey_st;

namespace kiln {

class PrivateKey {
 public:
  // Makes a new key from the random numbers of OpenSSL, which come from the kernel. They are no
  // argument: a key that can be foretold is none. Costs less than a millisecond.
  static StatusOr<PrivateKey> Make();
  // Reads the first private key of a PEM text. DataLoss if there is none, FailedPrecondition for a
  // key of another kind. `where` names the text in messages, which hold nothing of the text.
  static StatusOr<PrivateKey> Parse(std::string_view pem, std::string_view where);

  // Returns the secret itself, as PKCS #8.
  std::string ToPem() const;
  // Returns whether the certificate is that of this key.
  bool Matches(const Certificate& certificate) const;

  // The object belongs to the key. OpenSSL takes no const objects, but changes none.
  evp_pkey_st* handle() const { return key_.get(); }

 private:
  explicit PrivateKey(evp_pkey_st* key);

  std::shared_ptr<evp_pkey_st> key_;
};

}  // namespace kiln
