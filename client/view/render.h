// A schedule of a workload in every form a person may want to read: what `kiln show --as` prints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/backends/backends.h"
#include "compiler/dag/dag.h"

namespace kiln::client {

// dag, steps, schedule, tvm, loops, passes, program, and the forms of each code generator.
std::vector<std::string> RenderForms(codegen::Backends backends = codegen::AllBackends());

struct Rendered {
  dag::DagPtr dag;
  std::string steps = "[]";  // JSON array
  std::string target;        // text; needed by tvm, passes, program and forms of code
  std::string caveat = {};   // lines about the record that it is of; "": none
  // Passes of the compiler that are not to run, by name (ir/pass.h); for those forms, too.
  std::vector<std::string> leave_out = {};
};

// Ends with a newline. `form` is one of RenderForms.
StatusOr<std::string> Render(const Rendered& what, std::string_view form,
                             codegen::Backends backends = codegen::AllBackends());

}  // namespace kiln::client
