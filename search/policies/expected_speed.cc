#include "search/policies/expected_speed.h"

namespace kiln::search {
namespace {

constexpr std::string_view kCpu = "two cores of a Xeon with AVX-512";
constexpr ExpectedSpeed kComplex{0.51, 0.79, 20, kCpu};
constexpr ExpectedSpeed kSimple{0.63, 0.94, 9, kCpu};
constexpr ExpectedSpeed kDirect{0.74, 1.00, 9, kCpu};

}  // namespace

std::optional<ExpectedSpeed> ExpectedSpeedOf(const target::Target& target, OperatorClass kind) {
  if (target.kind->execution != target::ExecutionModel::kCpu) return std::nullopt;
  switch (kind) {
    case OperatorClass::kComplexReduction:
      return kComplex;
    case OperatorClass::kSimpleReduction:
      return kSimple;
    default:
      return kDirect;
  }
}

}  // namespace kiln::search
