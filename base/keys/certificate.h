// X.509 certificates, as values.
//
// Copies are cheap and share the certificate. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/keys/identity.h"
#include "base/status.h"

// OpenSSL's X509.
struct x509_st;

namespace kiln {

class Certificate {
 public:
  // Reads the first certificate of a PEM text. DataLoss if there is none, or for a text of more
  // than 1 MiB. `where` names the text in messages: "box2/identity.pem".
  static StatusOr<Certificate> Parse(std::string_view pem, std::string_view where);
  // Takes the certificate over.
  static Certificate Own(x509_st* certificate);

  std::string ToPem() const;

  // Returns the common name, as it stands there. A stranger may have written it: at most 80
  // characters, on one line.
  std::string CommonName() const;
  std::string IssuerName() const;
  // Returns kSerialDigits lower-case hex digits.
  std::string Serial() const;
  absl::Time begins() const;
  absl::Time ends() const;
  // Returns the member that the certificate names. InvalidArgument unless exactly one URI of the
  // certificate names a member, and its name is also the common name.
  StatusOr<Member> GetMember() const;

  // Returns whether the certificates are the same, byte for byte.
  bool Equals(const Certificate& other) const;

  // The object belongs to the certificate. OpenSSL takes no const objects, but changes none.
  x509_st* handle() const { return certificate_.get(); }

 private:
  explicit Certificate(std::shared_ptr<x509_st> certificate)
      : certificate_(std::move(certificate)) {}

  std::shared_ptr<x509_st> certificate_;
};

// Returns "2026-11-29 10:05 UTC".
std::string UtcText(absl::Time time);

}  // namespace kiln
