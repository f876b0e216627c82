// Renders a hand-written kernel, with values for its parameters, as text.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "client/view/render.h"

namespace kiln::client {

// The form of kernels in C.
inline constexpr std::string_view kCForm = "c";

// Returns whether `steps` stand for a kernel and not for a schedule. `kernel` is the text of the
// job's kernel; "": the job has none.
bool IsOfKernel(std::string_view steps, std::string_view kernel);

// Renders steps that stand for a kernel. Forms: steps (as records keep them), schedule (the
// kernel's values and launch), and cuda or c (the source with the values). InvalidArgument: another
// form, or the text is not that of the kernel.
StatusOr<std::string> RenderKernel(const Rendered& what, std::string_view form);

}  // namespace kiln::client
