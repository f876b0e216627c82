#include "base/keys/verify.h"

#include "base/keys/authority.h"
#include "base/keys/openssl.h"

namespace kiln {
namespace {

template <typename... Args>
Status Refused(fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(StatusCode::kUnauthenticated, format, std::forward<Args>(args)...);
}

Status CheckAuthorityTime(const Certificate& authority, absl::Time now) {
  if (now < authority.begins()) {
    return Refused(
        "the farm's authority began on {}, and this machine's clock says {}; expected a clock that "
        "is right: `timedatectl set-ntp true`",
        UtcText(authority.begins()), UtcText(now));
  }
  if (now > authority.ends()) {
    return Refused(
        "the farm's authority ended on {}, and this machine's clock says {}; if the clock is "
        "right, make a new authority with `kiln keys init --authority FOLDER`",
        UtcText(authority.ends()), UtcText(now));
  }
  return OkStatus();
}

Status CheckTime(const Certificate& certificate, const Member& member, absl::Time now) {
  if (now < certificate.begins()) {
    return Refused(
        "the certificate of {} begins on {}, and this machine's clock says {}; expected clocks "
        "that agree: `timedatectl set-ntp true` on both machines",
        member.name, UtcText(certificate.begins()), UtcText(now));
  }
  if (now > certificate.ends()) {
    return Refused(
        "the certificate of {} ended on {}, and this machine's clock says {}; expected one that is "
        "valid: `kiln keys renew {}` where the farm's authority is, and copy the folder",
        member.name, UtcText(certificate.ends()), UtcText(now), member.name);
  }
  return OkStatus();
}

// Lets OpenSSL check the chain: the signature and the extensions of both certificates. Returns
// OpenSSL's verdict. The times are left to CheckTime, so that a stranger's certificate is called
// foreign and not late.
int CheckChain(const Certificate& certificate, const Certificate& authority) {
  const openssl::Owned<X509_STORE, X509_STORE_free> store(X509_STORE_new());
  const openssl::Owned<X509_STORE_CTX, X509_STORE_CTX_free> context(X509_STORE_CTX_new());
  if (store == nullptr || context == nullptr ||
      X509_STORE_add_cert(store.get(), authority.handle()) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), certificate.handle(), nullptr) != 1) {
    return X509_V_ERR_OUT_OF_MEM;
  }
  X509_VERIFY_PARAM* const parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_X509_STRICT | X509_V_FLAG_NO_CHECK_TIME);
  X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_CLIENT);
  if (X509_verify_cert(context.get()) == 1) return X509_V_OK;
  return X509_STORE_CTX_get_error(context.get());
}

Status ChainError(const Certificate& certificate, const Certificate& authority, int error) {
  return Refused(
      "the certificate of '{}' was issued by '{}', expected one of '{}', the authority of this "
      "farm ({}): `kiln keys issue NAME --role ROLE` there makes one",
      certificate.CommonName(), certificate.IssuerName(), authority.CommonName(),
      X509_verify_cert_error_string(error));
}

// Whether the certificate may serve must agree with its role, since TLS libraries go by the one and
// Kiln by the other.
Status CheckUses(const Certificate& certificate, const Member& member) {
  const uint32_t uses = X509_get_extended_key_usage(certificate.handle());
  const bool serves = (uses & XKU_SSL_SERVER) != 0;
  if (X509_check_ca(certificate.handle()) == 0 && serves == MayServe(member.role)) {
    return OkStatus();
  }
  return Refused(
      "the certificate of {} has uses that are not those of the role {}; expected one that `kiln "
      "keys issue {} --role {}` makes",
      member.name, RoleName(member.role), member.name, RoleName(member.role));
}

}  // namespace

StatusOr<Identity> Verify(const Certificate& certificate, const Certificate& authority,
                          const Revocations& revoked, absl::Time now) {
  const openssl::ErrorScope errors;
  KILN_RETURN_IF_ERROR(CheckAuthorityTime(authority, now));
  if (certificate.Equals(authority)) {
    return Refused(
        "the certificate is that of the farm's authority '{}', expected one of a member: `kiln "
        "keys issue NAME --role ROLE` makes one",
        authority.CommonName());
  }
  const int error = CheckChain(certificate, authority);
  if (error != X509_V_OK) return ChainError(certificate, authority, error);
  StatusOr<Member> member = certificate.GetMember();
  if (!member.ok()) return Refused("{}", Message(member.status()));
  const std::string serial = certificate.Serial();
  if (const auto when = revoked.RevokedAt(serial); when.has_value()) {
    return Refused(
        "the certificate of {} with the serial number {} was revoked on {}, expected one that "
        "holds: `kiln keys issue {} --role {}` where the farm's authority is, and copy the folder",
        member->name, serial, UtcText(*when), member->name, RoleName(member->role));
  }
  KILN_RETURN_IF_ERROR(CheckTime(certificate, *member, now));
  KILN_RETURN_IF_ERROR(CheckUses(certificate, *member));
  return Identity{member->name, member->role, serial, certificate.ends()};
}

}  // namespace kiln
