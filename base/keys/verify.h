// Decides whether a certificate is that of a member of the farm now.
#pragma once

#include "absl/time/time.h"
#include "base/keys/certificate.h"
#include "base/keys/identity.h"
#include "base/keys/revocations.h"
#include "base/status.h"

namespace kiln {

// Returns who holds the certificate. `authority` is trusted; `revoked` is its list. Unauthenticated
// otherwise, in one sentence that says what was found, what is expected and the command that mends
// it: for a certificate of another farm, of an authority, outside its time, revoked, or one that
// names no member. A clock that is off shows as a certificate outside its time. The sentence holds
// nothing of a stranger's certificate but its names, on one line.
//
// Costs some 200 us: the check of a signature.
StatusOr<Identity> Verify(const Certificate& certificate, const Certificate& authority,
                          const Revocations& revoked, absl::Time now);

}  // namespace kiln
