// Owners of OpenSSL's objects, and its errors. For the sources of this folder.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/status.h"

namespace kiln::openssl {

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
template <typename T, auto kFree>
using Owned = std::unique_ptr<T, Freer<kFree>>;

using Bio = Owned<BIO, BIO_free_all>;
using BigNumber = Owned<BIGNUM, BN_free>;
using Integer = Owned<ASN1_INTEGER, ASN1_INTEGER_free>;
using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using X509Certificate = Owned<X509, X509_free>;
using X509List = Owned<X509_CRL, X509_CRL_free>;
using Time = Owned<ASN1_TIME, ASN1_TIME_free>;

// Longest PEM text that is looked at. Ours have less than 4 KiB; a list of revocations grows by 40
// bytes an entry.
inline constexpr size_t kMaxPemBytes = 1 << 20;

// Takes OpenSSL's errors of this thread away, so that nobody else finds them there. Every function
// of this folder that calls OpenSSL has one from its beginning.
class ErrorScope {
 public:
  ErrorScope();
  ~ErrorScope();
  ErrorScope(const ErrorScope&) = delete;
  ErrorScope& operator=(const ErrorScope&) = delete;

  // Returns Internal "OpenSSL cannot WHAT: reason". The reasons name no secrets.
  Status Failed(std::string_view what) const;
};

// Returns a reader of the text, which it does not copy.
Bio Reader(std::string_view text);
// Returns what was written to a memory BIO.
std::string Written(BIO* bio);

// Pass phrase callback for PEM readers: never asks at the terminal, so that an encrypted key is
// refused.
int NoPassPhrase(char* buffer, int size, int writing, void* data);

// Returns InfinitePast for a time that is no time.
absl::Time ToTime(const ASN1_TIME* time);
// Returns seconds, without their fractions.
Time FromTime(absl::Time time);

// Returns the serial number in lower-case hex digits, at least kSerialDigits.
std::string SerialText(const ASN1_INTEGER* serial);
// `hex` has hex digits only.
Integer SerialNumber(const std::string& hex);

}  // namespace kiln::openssl
