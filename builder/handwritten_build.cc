#include "builder/handwritten_build.h"

#include "compiler/handwritten/kernel_point.h"
#include "compiler/handwritten/kernel_text.h"

namespace kiln::builder {
namespace {

StatusOr<handwritten::KernelText> TextOf(const v1::BuildRequest& request) {
  auto text = handwritten::ParseKernelText(request.kernel());
  if (!text.ok()) return InvalidArgument("kernel: {}", Message(text.status()));
  return text;
}

StatusOr<handwritten::Specialization> SpecializePoint(const v1::BuildRequest& request,
                                                      const handwritten::KernelText& text,
                                                      const dag::Dag& dag) {
  KILN_ASSIGN_OR_RETURN(const handwritten::KernelPoint point,
                        handwritten::ParseKernelPoint(request.steps()));
  const std::string digest = handwritten::KernelDigest(text);
  if (point.kernel != digest) {
    return InvalidArgument(
        "the parameters are of kernel {} ({}), the text that came with them is {}", point.kernel,
        point.function, digest);
  }
  return handwritten::Specialize(text, dag, point.values);
}

}  // namespace

StatusOr<bool> IsHandwritten(const v1::BuildRequest& request) {
  const bool is_point = handwritten::IsKernelPoint(request.steps());
  if (request.kernel().empty()) {
    if (!is_point) return false;
    return InvalidArgument("steps: parameters of a hand-written kernel, and `kernel` is empty");
  }
  KILN_ASSIGN_OR_RETURN(const handwritten::KernelText text, TextOf(request));
  return is_point || (request.steps() == "[]" && text.reference.has_value());
}

StatusOr<handwritten::Specialization> SpecializeRequest(const v1::BuildRequest& request,
                                                        const dag::Dag& dag,
                                                        const target::HardwareParams& hardware) {
  KILN_ASSIGN_OR_RETURN(const handwritten::KernelText text, TextOf(request));
  KILN_ASSIGN_OR_RETURN(const handwritten::Specialization kernel,
                        handwritten::IsKernelPoint(request.steps())
                            ? SpecializePoint(request, text, dag)
                            : handwritten::SpecializeReference(text, dag));
  KILN_RETURN_IF_ERROR(handwritten::CheckLaunch(kernel, hardware));
  return kernel;
}

}  // namespace kiln::builder
