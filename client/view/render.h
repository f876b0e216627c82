// A schedule of a workload, or a hand-written kernel with its parameters, in every form a person
// may want to read: what `kiln show --as` prints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/backends/backends.h"
#include "compiler/dag/dag.h"

namespace kiln::client {

// dag, steps, schedule, tvm, loops, passes, program, the forms of each code generator, and c, which
// is of kernels that people wrote.
std::vector<std::string> RenderForms(codegen::Backends backends = codegen::AllBackends());

// Is the text of this form another one for another target?
bool FormNeedsTarget(std::string_view form, codegen::Backends backends = codegen::AllBackends());

struct Rendered {
  dag::DagPtr dag;
  std::string steps = "[]";  // JSON array, or the parameters of a hand-written kernel
  std::string target;        // text; needed by tvm, passes, program and forms of code
  std::string caveat = {};   // lines about the record that it is of; "": none
  // Of a job of a hand-written kernel: its text (compiler/handwritten/kernel_text.h).
  std::string kernel = {};
  // Passes of the compiler that are not to run, by name (ir/pass.h); for those forms, too.
  std::vector<std::string> leave_out = {};
};

// Ends with a newline. `form` is one of RenderForms.
StatusOr<std::string> Render(const Rendered& what, std::string_view form,
                             codegen::Backends backends = codegen::AllBackends());

}  // namespace kiln::client
