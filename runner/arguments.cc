#include "runner/arguments.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln::runner {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 46;
constexpr int64_t kMaxAlignment = 4096;
// A cache line. Buffers are aligned at least to this, whatever the plan asks for.
constexpr int64_t kMinAlignment = 64;
constexpr int kMaxArguments = 4096;

// Checks that random fill can keep to the range.
Status CheckRange(const Argument& argument) {
  // A double has all whole numbers up to here.
  constexpr double kWholeNumbers = 0x1p53;
  const auto [low, high, run] = *argument.range;
  const bool fits = std::isfinite(low) && std::isfinite(high) && low < high;
  if (!fits || argument.dtype == DType::kBool) {
    return InvalidArgument("range [{}, {}) of a {}, expected a low end below a high end", low, high,
                           DTypeName(argument.dtype));
  }
  const bool whole =
      low == std::floor(low) && high == std::floor(high) && std::max(-low, high) <= kWholeNumbers;
  if (run < 0 || (run > 0 && IsFloat(argument.dtype))) {
    return InvalidArgument("a {} in runs of {} values, expected integers for runs",
                           DTypeName(argument.dtype), run);
  }
  if (IsFloat(argument.dtype) || whole) return OkStatus();
  return InvalidArgument("range [{}, {}) of a {}, expected whole numbers", low, high,
                         DTypeName(argument.dtype));
}

Status SetPacking(const v1::ArgSpec& spec, Argument& argument) {
  if (!spec.is_packed()) return OkStatus();
  if (argument.role != v1::ArgSpec::INPUT) {
    return InvalidArgument("it is packed, and only inputs can be packed");
  }
  Packing packing{.shape = argument.shape, .dims = {}};
  for (const v1::PackedDim& dim : spec.packing()) {
    packing.dims.push_back({.axis = static_cast<int32_t>(std::min<uint32_t>(dim.axis(), INT32_MAX)),
                            .extent = dim.extent(),
                            .step = dim.step()});
  }
  KILN_RETURN_IF_ERROR(CheckPacking(packing));
  const int64_t elements = PackedElements(packing);
  if (elements > kMaxBytes) return InvalidArgument("packed it has {} elements", elements);
  argument.bytes = elements * DTypeBytes(argument.dtype);
  argument.packing = std::move(packing);
  return OkStatus();
}

StatusOr<Argument> ParseArgument(const v1::ArgSpec& spec, int index) {
  Argument argument;
  argument.name = spec.name().empty() ? fmt::format("arg{}", index) : spec.name();
  auto dtype = ParseDType(spec.dtype());
  if (!dtype.ok()) {
    return Annotate(dtype.status(), fmt::format("argument {} '{}'", index, argument.name));
  }
  argument.dtype = *dtype;
  argument.shape.assign(spec.shape().begin(), spec.shape().end());
  for (int64_t extent : argument.shape) {
    if (extent < 1) {
      return InvalidArgument("argument {} '{}': extent {} in shape [{}], expected at least 1",
                             index, argument.name, extent, fmt::join(argument.shape, ", "));
    }
    if (__builtin_mul_overflow(argument.elements, extent, &argument.elements) ||
        argument.elements > kMaxBytes) {
      return InvalidArgument("argument {} '{}': shape [{}] has too many elements", index,
                             argument.name, fmt::join(argument.shape, ", "));
    }
  }
  argument.bytes = argument.elements * DTypeBytes(argument.dtype);
  if (!v1::ArgSpec::Role_IsValid(spec.role())) {
    return InvalidArgument("argument {} '{}': unknown role {}", index, argument.name,
                           static_cast<int>(spec.role()));
  }
  argument.role = spec.role();
  const int64_t alignment = spec.alignment_bytes();
  if (alignment > kMaxAlignment ||
      (alignment != 0 && !std::has_single_bit(spec.alignment_bytes()))) {
    return InvalidArgument(
        "argument {} '{}': alignment of {} bytes, expected a power of two up to {}", index,
        argument.name, alignment, kMaxAlignment);
  }
  argument.alignment_bytes = std::max(alignment, kMinAlignment);
  if (spec.index_limit() < 0) {
    return InvalidArgument("argument {} '{}': index limit {}, expected 0 or more", index,
                           argument.name, spec.index_limit());
  }
  argument.index_limit = spec.index_limit();
  if (spec.has_range()) {
    argument.range = ValueRange{spec.range().low(), spec.range().high(), spec.range().run()};
    KILN_RETURN_IF_ERROR(
        Annotate(CheckRange(argument), fmt::format("argument {} '{}'", index, argument.name)));
  }
  KILN_RETURN_IF_ERROR(
      Annotate(SetPacking(spec, argument), fmt::format("argument {} '{}'", index, argument.name)));
  return argument;
}

// Returns the facts that random fill depends on: "'ids' (index limit 8)".
std::string FillText(const Argument& argument) {
  std::string range;
  if (argument.range) {
    range = fmt::format(", range [{}, {})", argument.range->low, argument.range->high);
    if (argument.range->run > 0) range += fmt::format(" in runs of {}", argument.range->run);
  }
  return fmt::format("'{}' (index limit {}{})", argument.name, argument.index_limit, range);
}

}  // namespace

std::vector<const Argument*> OfRole(const std::vector<Argument>& arguments,
                                    v1::ArgSpec::Role role) {
  std::vector<const Argument*> found;
  for (const Argument& argument : arguments) {
    if (argument.role == role) found.push_back(&argument);
  }
  return found;
}

StatusOr<std::vector<Argument>> ParseArguments(const v1::LaunchPlan& plan) {
  if (plan.args_size() > kMaxArguments) {
    return InvalidArgument("plan with {} arguments, expected at most {}", plan.args_size(),
                           kMaxArguments);
  }
  std::vector<Argument> arguments;
  bool has_output = false;
  for (int i = 0; i < plan.args_size(); ++i) {
    KILN_ASSIGN_OR_RETURN(Argument argument, ParseArgument(plan.args(i), i));
    has_output |= argument.role == v1::ArgSpec::OUTPUT;
    arguments.push_back(std::move(argument));
  }
  if (!has_output) return InvalidArgument("plan without an output argument");
  return arguments;
}

std::string TypeText(const Argument& argument) {
  return fmt::format("{}[{}]", DTypeName(argument.dtype), fmt::join(argument.shape, ", "));
}

namespace {

Status CheckSameTypes(std::string_view kind, const std::vector<const Argument*>& got,
                      const std::vector<const Argument*>& want) {
  if (got.size() != want.size()) {
    return InvalidArgument("{} {}s, the reference has {}", got.size(), kind, want.size());
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (TypeText(*got[i]) == TypeText(*want[i])) continue;
    return InvalidArgument("{} {} '{}' is {}, the reference has {}", kind, i, got[i]->name,
                           TypeText(*got[i]), TypeText(*want[i]));
  }
  return OkStatus();
}

}  // namespace

Status CheckSameInputs(const std::vector<Argument>& candidate,
                       const std::vector<Argument>& reference) {
  const auto got = OfRole(candidate, v1::ArgSpec::INPUT);
  const auto want = OfRole(reference, v1::ArgSpec::INPUT);
  KILN_RETURN_IF_ERROR(CheckSameTypes("input", got, want));
  for (size_t i = 0; i < got.size(); ++i) {
    const auto ordinal = static_cast<int>(i);
    if (InputKey(*got[i], ordinal, 0) == InputKey(*want[i], ordinal, 0)) continue;
    return InvalidArgument("input {} is {}, in the reference {}", i, FillText(*got[i]),
                           FillText(*want[i]));
  }
  return OkStatus();
}

Status CheckSameInterface(const std::vector<Argument>& candidate,
                          const std::vector<Argument>& reference) {
  KILN_RETURN_IF_ERROR(CheckSameInputs(candidate, reference));
  return CheckSameTypes("output", OfRole(candidate, v1::ArgSpec::OUTPUT),
                        OfRole(reference, v1::ArgSpec::OUTPUT));
}

std::string InputKey(const Argument& argument, int ordinal, uint64_t seed) {
  return RandomKey({.name = argument.name,
                    .dtype = argument.dtype,
                    .shape = argument.shape,
                    .index_limit = argument.index_limit,
                    .range = argument.range},
                   ordinal, seed);
}

}  // namespace kiln::runner
