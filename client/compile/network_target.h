// What a compiled network says of the device that it is for.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/target/target.h"
#include "runtime/network.h"

namespace kiln::client {

// `device`: the model, for people; "": of code for this machine's CPU its name. Of a CPU it has the
// features that code for it may use. Refuses a processor that the compiler does not know. Calls
// LLVM: one at a time per process.
StatusOr<runtime::NetworkTarget> NetworkTargetOf(const target::Target& target,
                                                 const std::string& device);

}  // namespace kiln::client
