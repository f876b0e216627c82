// A kernel that a person wrote, with values for its parameters, as text.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "client/view/render.h"

namespace kiln::client {

// The form of kernels in C.
inline constexpr std::string_view kCForm = "c";

// Is that which `steps` stand for a kernel and no schedule? `kernel`: the text of the job's kernel,
// "": it has none.
bool IsOfKernel(std::string_view steps, std::string_view kernel);

// Of one that is: steps (as records keep it), schedule (its values and launch), and cuda or c (its
// source with the values in it). InvalidArgument: another form, or the text is not that of the
// kernel.
StatusOr<std::string> RenderKernel(const Rendered& what, std::string_view form);

}  // namespace kiln::client
