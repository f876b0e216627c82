// Authorities and certificates for tests.
#pragma once

#include <openssl/x509.h>

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "base/keys/authority.h"
#include "base/keys/certificate.h"
#include "base/keys/identity.h"

namespace kiln {

inline const absl::Time kTestNow = absl::FromUnixSeconds(1'800'000'000);

// Returns a new authority that began a day before kTestNow. `farm`: its name, hex digits.
Authority TestAuthority(const std::string& farm = "aa");

// Returns a certificate of a new key, from kTestNow on.
Certificate TestCertificate(const Authority& authority, const Member& member, int days = 10,
                            const std::string& serial = "00000000000000000001");

// Returns a copy of the certificate that `change` has changed and the authority has signed again.
Certificate Resigned(const Certificate& certificate, const Authority& authority,
                     const std::function<void(X509*)>& change);

}  // namespace kiln
