// Describes the device of a compiled network.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/target/target.h"
#include "runtime/network.h"

namespace kiln::client {

// `device` is the model, for people; "" means this machine's CPU if the code is for it. The
// description of a CPU has the features that its code may use. Refuses a processor that the
// compiler does not know. Calls LLVM: one call at a time per process.
StatusOr<runtime::NetworkTarget> NetworkTargetOf(const target::Target& target,
                                                 const std::string& device);

}  // namespace kiln::client
