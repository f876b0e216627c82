// What a code generator gives, as it goes over the wire.
#pragma once

#include "compiler/codegen/compiled.h"
#include "proto/trial.pb.h"

namespace kiln::builder {

// With its digest.
v1::Artifact MakeArtifact(codegen::Compiled compiled);

// SHA-256 over kind, binary and every field of the plan, each with its length: the same on every
// machine and in every version of the wire format's libraries. The digest field itself is not read.
std::string DigestOf(const v1::Artifact& artifact);

}  // namespace kiln::builder
