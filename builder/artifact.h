// Converts the output of a code generator to an artifact of the wire contract.
#pragma once

#include <string_view>

#include "compiler/codegen/compiled.h"
#include "proto/trial.pb.h"

namespace kiln::builder {

// Returns the artifact with its digest. `device` is the kind of device that loads it
// (target::TargetKind::device).
v1::Artifact MakeArtifact(codegen::Compiled compiled, std::string_view device);

}  // namespace kiln::builder
