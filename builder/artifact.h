// What a code generator gives, as it goes over the wire.
#pragma once

#include <string_view>

#include "compiler/codegen/compiled.h"
#include "proto/trial.pb.h"

namespace kiln::builder {

// With its digest. `device`: the kind of device that loads it (target::TargetKind::device).
v1::Artifact MakeArtifact(codegen::Compiled compiled, std::string_view device);

}  // namespace kiln::builder
