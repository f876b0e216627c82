// The digest of an artifact: its name in caches. Builders compute it of what they made, runners of
// what they received, so that nobody's word is taken for it.
#pragma once

#include <string>

#include "proto/trial.pb.h"

namespace kiln {

// SHA-256 over device, binary and every field of the plan that a run depends on, each with its
// length: the same on every machine and in every version of the wire format's libraries. The digest
// field itself is not read. Cost: that of hashing the binary.
std::string DigestOf(const v1::Artifact& artifact);

}  // namespace kiln
