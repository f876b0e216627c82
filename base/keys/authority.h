// The authority of a farm: it says who is a member of the farm, by certificates, and who no longer
// is, by lists of revocations. A value; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/keys/certificate.h"
#include "base/keys/identity.h"
#include "base/keys/private_key.h"
#include "base/keys/revocations.h"
#include "base/status.h"

namespace kiln {

// Days that a certificate of a member may last.
inline constexpr int kMostDays = 3650;
inline constexpr int kDefaultDays = 365;
// Days of the authority itself.
inline constexpr int kAuthorityDays = 7305;
// Certificates begin this long before they are made, because clocks of machines differ.
inline constexpr absl::Duration kClockTolerance = absl::Hours(1);

class Authority {
 public:
  // Makes a new authority: a self-signed certificate of P-256 that may sign members and nothing
  // below them. `farm` tells its farm from others; hex digits. `serial` has kSerialDigits.
  static StatusOr<Authority> Make(std::string_view farm, const std::string& serial, absl::Time now);
  // FailedPrecondition if the certificate is not an authority's, or not that of the key.
  static StatusOr<Authority> Join(Certificate certificate, PrivateKey key);

  const Certificate& certificate() const { return certificate_; }
  // The secret of the farm.
  const PrivateKey& key() const { return key_; }

  // Returns a certificate of `key` for `member`. The common name is the member's name, and a URI
  // says both name and role. A daemon's certificate also has kDaemonHost and may serve; a person's
  // may not. InvalidArgument for a name that is none, and for days outside 1..kMostDays or beyond
  // the end of the authority. FailedPrecondition if the clock is behind the authority's beginning.
  StatusOr<Certificate> Issue(const Member& member, const PrivateKey& key, int days,
                              const std::string& serial, absl::Time now) const;

  // Returns a signed list of these certificates.
  StatusOr<Revocations> Revoke(const Revocations::Entries& entries, int64_t number,
                               absl::Time now) const;

 private:
  Authority(Certificate certificate, PrivateKey key)
      : certificate_(std::move(certificate)), key_(std::move(key)) {}

  Certificate certificate_;
  PrivateKey key_;
};

// OK for 1..kMostDays.
Status CheckDays(int days);

// FailedPrecondition unless the certificate is one that an authority has for itself, signed with
// its own key.
Status CheckAuthority(const Certificate& certificate, std::string_view where);

}  // namespace kiln
