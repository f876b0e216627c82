#include "runner/checked_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/units.h"

namespace kiln::runner {
namespace {

// Memory for other needs of devices.
constexpr int64_t kSpareBytes = int64_t{64} << 20;

}  // namespace

Status PrepareArguments(const Bench& bench, const std::vector<Argument>& arguments, uint64_t seed,
                        int copies, CheckedProgram& checked) {
  int64_t argument_bytes = 0, output_bytes = 0, largest_input_bytes = 0;
  for (const Argument& argument : arguments) {
    argument_bytes += argument.bytes;
    if (argument.role == v1::ArgSpec::INPUT) {
      largest_input_bytes = std::max(largest_input_bytes, argument.plain_bytes());
    }
    if (argument.role == v1::ArgSpec::OUTPUT) output_bytes += argument.bytes;
  }
  // If a host cannot keep the other content of the inputs, it is made for one input at a time.
  const int64_t other_bytes = bench.device.is_host() ? largest_input_bytes : 0;
  const int64_t needed_bytes = argument_bytes + copies * output_bytes + other_bytes;
  const int64_t available_bytes = bench.device.FreeMemoryBytes() + bench.cache.bytes();
  if (needed_bytes > available_bytes) {
    return ResourceExhausted(
        "the arguments need {} of memory, with {} more of the outputs to compare {}; the device "
        "has {} free",
        FormatBytes(argument_bytes), copies == 1 ? "one copy" : fmt::format("{} copies", copies),
        FormatBytes(needed_bytes), FormatBytes(available_bytes));
  }
  int64_t spare_bytes = available_bytes - needed_bytes - kSpareBytes;
  for (const Argument& argument : arguments) {
    if (argument.role == v1::ArgSpec::INPUT) {
      ProgramInput input{
          .argument = argument, .ordinal = static_cast<int>(checked.inputs.size()), .seed = seed};
      KILN_ASSIGN_OR_RETURN(input.buffer, InputBuffer(bench, input, Content::kTimed));
      input.shown = input.buffer->checksum;
      if (argument.bytes <= spare_bytes) {
        KILN_ASSIGN_OR_RETURN(input.other, InputBuffer(bench, input, Content::kOther));
        spare_bytes -= argument.bytes;
      }
      checked.args.push_back(input.buffer->buffer.get());
      checked.inputs.push_back(std::move(input));
      continue;
    }
    KILN_ASSIGN_OR_RETURN(auto buffer, bench.device.Allocate(argument));
    checked.args.push_back(buffer.get());
    if (argument.role == v1::ArgSpec::OUTPUT) checked.outputs.push_back(buffer.get());
    checked.owned.push_back(std::move(buffer));
  }
  return OkStatus();
}

Status PoisonAll(Device& device, const CheckedProgram& checked, Poison poison) {
  for (const auto& buffer : checked.owned) KILN_RETURN_IF_ERROR(device.Poison(*buffer, poison));
  return OkStatus();
}

StatusOr<CheckedTime> RunOnce(Device& device, CheckedProgram& checked, Poison poison) {
  KILN_RETURN_IF_ERROR(PoisonAll(device, checked, poison));
  return device.RunChecked(*checked.program, checked.args);
}

}  // namespace kiln::runner
