// What a code generator gives, as it goes over the wire.
#pragma once

#include "compiler/codegen/compiled.h"
#include "proto/trial.pb.h"

namespace kiln::builder {

// With its digest.
v1::Artifact MakeArtifact(codegen::Compiled compiled);

}  // namespace kiln::builder
