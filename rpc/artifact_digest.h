// The digest of an artifact, which is its name in caches. Builders compute the digest of what they
// made, and runners of what they received, so that neither trusts the other.
#pragma once

#include <string>

#include "proto/trial.pb.h"

namespace kiln {

// Returns the SHA-256 over device, binary and every field of the plan that a run depends on, each
// with its length. It is the same on every machine and in every version of the wire format's
// libraries. The digest field itself is not read. The cost is that of hashing the binary.
std::string DigestOf(const v1::Artifact& artifact);

}  // namespace kiln
