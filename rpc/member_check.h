// Decides who a certificate stands for, call after call: what was found is remembered, so that a
// caller's calls cost the check of one signature and not of each.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/keys/identity.h"
#include "base/keys/live_keys.h"
#include "base/status.h"

namespace kiln {

// Thread-safe.
class MemberCheck {
 public:
  // `keys` has the authority that is believed, and its revocations. `clock` outlives the object.
  MemberCheck(std::shared_ptr<LiveKeys> keys, Clock& clock)
      : keys_(std::move(keys)), clock_(clock) {}

  // Returns who holds the certificate now; Unauthenticated otherwise, as Verify
  // (base/keys/verify.h). A certificate that is revoked, or whose time ends, is refused from then
  // on (LiveKeys::kLookEvery).
  StatusOr<Identity> Check(std::string_view pem);

 private:
  // Most certificates that are remembered. A farm has fewer members.
  static constexpr size_t kMostKnown = 1'000;

  const std::shared_ptr<LiveKeys> keys_;
  Clock& clock_;
  std::mutex mutex_;
  // The state of the keys by which known_ was found. Both are guarded by mutex_.
  std::shared_ptr<const KeyFolder> basis_;
  std::map<std::string, Identity, std::less<>> known_;
};

}  // namespace kiln
