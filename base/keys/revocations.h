// The certificates that a farm's authority has revoked: a signed list (an X.509 CRL), as a value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/keys/certificate.h"
#include "base/status.h"

namespace kiln {

class Revocations {
 public:
  // When each certificate was revoked, by its serial number.
  using Entries = std::map<std::string, absl::Time, std::less<>>;

  // Reads a list. DataLoss if the text is none, and FailedPrecondition if another authority has
  // signed it. `where` names the text in messages.
  static StatusOr<Revocations> Parse(std::string_view pem, const Certificate& authority,
                                     std::string_view where);

  // Returns the time at which the certificate with this serial number was revoked.
  std::optional<absl::Time> RevokedAt(std::string_view serial) const;

  const Entries& entries() const { return entries_; }
  // Counts the lists of the authority: of two lists, the one with the larger number holds.
  int64_t number() const { return number_; }
  const std::string& ToPem() const { return pem_; }

 private:
  std::string pem_;
  int64_t number_ = 0;
  Entries entries_;
};

}  // namespace kiln
