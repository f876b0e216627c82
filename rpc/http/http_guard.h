// Decides who may see which page: the one place for certificates, the farm's secret, and sessions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/keys/role.h"
#include "base/server/caller_check.h"
#include "base/status.h"
#include "rpc/farm_access.h"
#include "rpc/http/sessions.h"
#include "rpc/member_check.h"

namespace kiln {

// A request shows this of its sender. "" = nothing.
struct ShownCredentials {
  // Certificate whose key the sender has, as PEM. Nobody has checked who issued it.
  std::string certificate;
  // Value of the header Authorization.
  std::string authorization;
  // Value of the session's cookie.
  std::string cookie;
};

// Thread-safe.
class HttpGuard {
 public:
  struct Options {
    // Names the daemon in messages: "tracker".
    std::string service = "daemon";
    FarmAccess access = {};
    // Null: there are no sessions. Outlives the guard.
    BrowserSessions* sessions = nullptr;
    // Outlives the guard.
    Clock* clock = &Clock::Real();
  };

  explicit HttpGuard(Options options);

  // Returns the name of the caller if he may do what asks for `needed`; "" where the farm has no
  // keys. Unauthenticated or PermissionDenied otherwise, in one sentence that says what was found
  // and which command mends it. With keys, a certificate that is shown decides; a caller without
  // one may have a session, which has the role `read`. With a secret, a caller tells it as "Bearer
  // SECRET" or has a session. Without both, everybody may see everything.
  StatusOr<std::string> Admit(const ShownCredentials& shown, Role needed) const;

  // Returns the check of certificates whose connections are open; null without keys.
  CertificateCheck MakeCertificateCheck() const;

 private:
  StatusOr<std::string> AdmitMember(const std::string& certificate, Role needed) const;
  StatusOr<std::string> AdmitSession(const std::string& cookie, Role needed) const;

  const Options options_;
  // Null: the farm has no keys.
  const std::shared_ptr<MemberCheck> members_;
};

}  // namespace kiln
