#include "client/view/kernel_values.h"

#include "base/text/utf8.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/handwritten/kernel_text.h"

namespace kiln::client {

std::string KernelValues(std::string_view steps) {
  if (!handwritten::IsKernelPoint(steps)) return {};
  const StatusOr<handwritten::KernelPoint> point = handwritten::ParseKernelPoint(steps);
  return point.ok() ? handwritten::ValuesText(point->values) : std::string();
}

std::string ConfigurationOf(const v1::Record& record) {
  if (const std::string values = KernelValues(record.steps()); !values.empty())
    return OneLine(values);
  return record.origin().starts_with("template ") ? OneLine(record.origin()) : std::string();
}

std::string_view ReferenceName(const v1::TuneOptions& options) {
  return handwritten::HasReferenceKernel(options.kernel()) ? "the reference kernel"
                                                           : "the unscheduled loops";
}

}  // namespace kiln::client
