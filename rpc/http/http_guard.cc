#include "rpc/http/http_guard.h"

#include <utility>

#include "base/keys/certificate.h"

namespace kiln {
namespace {

constexpr std::string_view kBearer = "Bearer ";

std::shared_ptr<MemberCheck> MembersOf(const HttpGuard::Options& options) {
  if (options.access.keys() == nullptr) return nullptr;
  return std::make_shared<MemberCheck>(options.access.keys(), *options.clock);
}

template <typename... Args>
Status Unauthenticated(fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(StatusCode::kUnauthenticated, format, std::forward<Args>(args)...);
}

}  // namespace

HttpGuard::HttpGuard(Options options)
    : options_(std::move(options)), members_(MembersOf(options_)) {}

StatusOr<std::string> HttpGuard::Admit(const ShownCredentials& shown, Role needed) const {
  if (members_ != nullptr && !shown.certificate.empty()) {
    return AdmitMember(shown.certificate, needed);
  }
  if (options_.sessions != nullptr && !shown.cookie.empty()) {
    return AdmitSession(shown.cookie, needed);
  }
  const std::string browser = options_.sessions == nullptr
                                  ? ""
                                  : "; `kiln dashboard` prints an address that lets a browser in";
  if (members_ != nullptr) {
    return Unauthenticated(
        "this {} asks for a certificate of its farm, and none was shown: `kiln keys issue NAME "
        "--role {}` makes one, and `curl --cert NAME/identity.pem` shows it{}",
        options_.service, RoleName(needed), browser);
  }
  if (options_.access.secret().empty()) return std::string();
  if (!shown.authorization.starts_with(kBearer)) {
    return Unauthenticated(
        "this {} asks for the secret of its farm, and none was told: send it in the header "
        "`Authorization: Bearer SECRET`{}",
        options_.service, browser);
  }
  if (options_.access.secret().Matches(
          std::string_view(shown.authorization).substr(kBearer.size()))) {
    return std::string();
  }
  return Unauthenticated(
      "this {} has another secret than the one in the header Authorization: send the one in the "
      "file of its --secret-file",
      options_.service);
}

StatusOr<std::string> HttpGuard::AdmitMember(const std::string& certificate, Role needed) const {
  KILN_ASSIGN_OR_RETURN(const Identity caller, members_->Check(certificate));
  if (Permits(caller.role, needed)) return caller.name;
  return MakeStatus(StatusCode::kPermissionDenied,
                    "{} has the role {}, and this page asks for the role {}: `kiln keys issue {} "
                    "--role {} --replace` where the farm's authority is gives it",
                    caller.name, RoleName(caller.role), RoleName(needed), caller.name,
                    RoleName(needed));
}

StatusOr<std::string> HttpGuard::AdmitSession(const std::string& cookie, Role needed) const {
  KILN_ASSIGN_OR_RETURN(const BrowserSessions::Holder holder, options_.sessions->Find(cookie));
  if (members_ != nullptr &&
      options_.access.keys()->Now()->revoked.RevokedAt(holder.serial).has_value()) {
    return Unauthenticated(
        "the certificate of {}, for which the session of this browser was made, was revoked: "
        "`kiln keys issue {} --role read` where the farm's authority is makes another one",
        holder.name, holder.name);
  }
  if (Permits(Role::kRead, needed)) return holder.name;
  return MakeStatus(StatusCode::kPermissionDenied,
                    "a browser's session has the role read, and this page asks for the role {}: "
                    "show a certificate of that role with `curl --cert NAME/identity.pem`",
                    RoleName(needed));
}

CertificateCheck HttpGuard::MakeCertificateCheck() const {
  if (members_ == nullptr) return nullptr;
  return [members = members_](std::string_view pem) { return members->Check(pem).status(); };
}

}  // namespace kiln
