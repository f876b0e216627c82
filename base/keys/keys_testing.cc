#include "base/keys/keys_testing.h"

#include "base/status.h"

namespace kiln {

Authority TestAuthority(const std::string& farm) {
  return *Authority::Make(farm, "0000000000000000ca00", kTestNow - absl::Hours(24));
}

Certificate TestCertificate(const Authority& authority, const Member& member, int days,
                            const std::string& serial) {
  return *authority.Issue(member, *PrivateKey::Make(), days, serial, kTestNow);
}

Certificate Resigned(const Certificate& certificate, const Authority& authority,
                     const std::function<void(X509*)>& change) {
  X509* const copy = X509_dup(certificate.handle());
  change(copy);
  KILN_CHECK(X509_sign(copy, authority.key().handle(), EVP_sha256()) > 0);
  return Certificate::Own(copy);
}

}  // namespace kiln
