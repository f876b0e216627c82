// Renders a schedule of a workload, or a hand-written kernel with its parameters, in every form
// that a person may want to read, as `kiln show --as` prints it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/backends/backends.h"
#include "compiler/dag/dag.h"

namespace kiln::client {

// Returns the names of the forms: dag, steps, schedule, tvm, loops, passes, program, the forms of
// each code generator, and c, which only hand-written kernels have.
std::vector<std::string> RenderForms(codegen::Backends backends = codegen::AllBackends());

// Returns whether the text of this form depends on the target.
bool FormNeedsTarget(std::string_view form, codegen::Backends backends = codegen::AllBackends());

struct Rendered {
  dag::DagPtr dag;
  // JSON array, or the parameters of a hand-written kernel.
  std::string steps = "[]";
  // Text of the target. The forms tvm, passes, program and code need it.
  std::string target;
  // Lines about the record of the schedule; "": none.
  std::string caveat = {};
  // Text of the job's hand-written kernel (compiler/handwritten/kernel_text.h); "": no such job.
  std::string kernel = {};
  // Names of compiler passes that do not run (ir/pass.h), in the same forms.
  std::vector<std::string> leave_out = {};
};

// Ends with a newline. `form` is one of RenderForms.
StatusOr<std::string> Render(const Rendered& what, std::string_view form,
                             codegen::Backends backends = codegen::AllBackends());

}  // namespace kiln::client
