#include "rpc/member_check.h"

#include <utility>

#include "base/keys/certificate.h"
#include "base/keys/verify.h"

namespace kiln {

StatusOr<Identity> MemberCheck::Check(std::string_view pem) {
  std::shared_ptr<const KeyFolder> basis = keys_->Now();
  const absl::Time now = clock_.Now();
  {
    const std::lock_guard lock(mutex_);
    if (basis_ != basis) known_.clear();
    basis_ = basis;
    const auto found = known_.find(pem);
    if (found != known_.end() && now <= found->second.expires) return found->second;
  }
  // The check of a stranger holds up nobody.
  const StatusOr<Certificate> certificate = Certificate::Parse(pem, "the caller's certificate");
  if (!certificate.ok()) {
    return MakeStatus(StatusCode::kUnauthenticated, "{}", Message(certificate.status()));
  }
  KILN_ASSIGN_OR_RETURN(Identity identity,
                        Verify(*certificate, basis->authority, basis->revoked, now));
  const std::lock_guard lock(mutex_);
  if (basis_ == basis) {
    if (known_.size() >= kMostKnown) known_.clear();
    known_.insert_or_assign(std::string(pem), identity);
  }
  return identity;
}

}  // namespace kiln
