#include "client/view/render_kernel.h"

#include <fmt/ranges.h>

#include <optional>

#include "compiler/handwritten/kernel_point.h"
#include "compiler/handwritten/specialization.h"

namespace kiln::client {
namespace {

using handwritten::KernelPoint;
using handwritten::KernelText;
using handwritten::Language;
using handwritten::Specialization;

StatusOr<Specialization> SpecializeFor(const Rendered& what, const KernelText& text,
                                       const KernelPoint* point) {
  if (point == nullptr) return handwritten::SpecializeReference(text, *what.dag);
  const std::string digest = handwritten::KernelDigest(text);
  if (point->kernel != digest) {
    return InvalidArgument("the parameters are of kernel {}, its job has {}", point->kernel,
                           digest);
  }
  return handwritten::Specialize(text, *what.dag, point->values);
}

std::string LaunchText(const Specialization& kernel) {
  if (kernel.language == Language::kC) {
    const int64_t blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
    if (blocks == 1) return "# called once\n";
    return fmt::format("# called for {} blocks ({})\n", blocks, fmt::join(kernel.grid, " x "));
  }
  std::string text = fmt::format("# grid {}, block {} ({} threads)", fmt::join(kernel.grid, " x "),
                                 fmt::join(kernel.block, " x "), kernel.threads());
  if (kernel.shared_bytes > 0)
    text += fmt::format(", {} bytes of dynamic shared memory", kernel.shared_bytes);
  return text + "\n";
}

std::string ValuesTable(const std::vector<handwritten::NamedValue>& values) {
  std::string text;
  for (const auto& value : values) {
    const std::string line = handwritten::ValuesText({value});
    const size_t equals = line.find('=');
    text += fmt::format("{} = {}\n", line.substr(0, equals), line.substr(equals + 1));
  }
  return text;
}

}  // namespace

bool IsOfKernel(std::string_view steps, std::string_view kernel) {
  return handwritten::IsKernelPoint(steps) ||
         (steps == "[]" && handwritten::HasReferenceKernel(kernel));
}

StatusOr<std::string> RenderKernel(const Rendered& what, std::string_view form) {
  if (form == "steps") return what.steps + "\n";
  if (what.kernel.empty())
    return NotFound(
        "the job of this record, which has the kernel's source, is not there (any more)");
  KILN_ASSIGN_OR_RETURN(const KernelText text, handwritten::ParseKernelText(what.kernel));
  std::optional<KernelPoint> point;
  if (handwritten::IsKernelPoint(what.steps)) {
    KILN_ASSIGN_OR_RETURN(point, handwritten::ParseKernelPoint(what.steps));
  }
  KILN_ASSIGN_OR_RETURN(const Specialization kernel,
                        SpecializeFor(what, text, point ? &*point : nullptr));
  const std::string_view own = text.language == Language::kC ? kCForm : "cuda";
  if (form == "schedule") {
    const std::vector<handwritten::NamedValue>& values =
        point ? point->values : text.reference->parameters;
    return fmt::format("# {} {}\n{}{}", point ? "kernel" : "the reference kernel", kernel.function,
                       ValuesTable(values), LaunchText(kernel));
  }
  if (form == own) {
    std::string options;
    for (const std::string& option : kernel.options) options += " " + option;
    return fmt::format("// {}{}\n//{}{}", kernel.function,
                       options.empty() ? "" : ", compiled with" + options,
                       LaunchText(kernel).substr(1), kernel.source);
  }
  return InvalidArgument(
      "a kernel that a person wrote in {} has no {} form, expected dag, steps, schedule or {}",
      handwritten::LanguageName(text.language), form, own);
}

}  // namespace kiln::client
