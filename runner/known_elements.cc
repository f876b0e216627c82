#include "runner/known_elements.h"

#include <cmath>
#include <cstdint>

#include "runner/compare.h"

namespace kiln::runner {
namespace {

// Share of the known elements that may differ.
constexpr double kMaxDifferentShare = 0.05;

Status CheckOutput(const v1::KnownElements& known, const Argument& output,
                   std::span<const std::byte> bytes, const v1::Tolerance& asked) {
  const v1::Tolerance tolerance = EffectiveTolerance(output.dtype, asked);
  double largest = 0;
  for (const double want : known.value()) {
    if (std::isfinite(want)) largest = std::max(largest, std::fabs(want));
  }
  const bool exact = !IsFloat(output.dtype);
  const double absolute = exact ? 0 : tolerance.absolute() * largest + MinTolerance(output.dtype);
  const double relative = exact ? 0 : tolerance.relative();
  int different = 0;
  std::string first;
  for (int i = 0; i < known.element_size(); ++i) {
    const int64_t element = known.element(i);
    if (element < 0 || element >= output.elements) {
      return InvalidArgument("element {} of output {} is known, which has {}", element, output.name,
                             output.elements);
    }
    const double got = ElementValue(output.dtype, bytes, element);
    if (IsNear(got, known.value(i), absolute, relative)) continue;
    if (different++ > 0) continue;
    first = fmt::format("output {}: element {} of {} is {:.7g}, expected {:.7g}", output.name,
                        element, output.elements, got, known.value(i));
  }
  if (different <= kMaxDifferentShare * known.element_size()) return OkStatus();
  return InvalidArgument("{}: {} of {} elements differ", first, different, known.element_size());
}

}  // namespace

Status CheckKnown(const google::protobuf::RepeatedPtrField<v1::KnownElements>& known,
                  std::span<const KnownOutput> outputs, const v1::Tolerance& tolerance) {
  for (const v1::KnownElements& of : known) {
    if (of.output() >= outputs.size() || of.element_size() != of.value_size()) {
      return InvalidArgument("{} elements and {} values of output {} are known, of {} outputs",
                             of.element_size(), of.value_size(), of.output(), outputs.size());
    }
    const KnownOutput& output = outputs[of.output()];
    KILN_RETURN_IF_ERROR(CheckOutput(of, output.argument, output.bytes, tolerance));
  }
  return OkStatus();
}

}  // namespace kiln::runner
