#include "runner/run_checks.h"

#include <algorithm>
#include <utility>

#include "runner/compare.h"
#include "runner/output_sample.h"
#include "runner/private_bytes.h"

namespace kiln::runner {

StatusOr<Findings> InspectRun(Device& device, const CheckedProgram& checked,
                              const v1::Tolerance& tolerance) {
  Inspection inspection;
  inspection.tolerance = tolerance;
  inspection.guards.assign(checked.args.begin(), checked.args.end());
  for (const auto& kept : checked.expected.whole)
    inspection.sums.push_back(kept.buffer->buffer.get());
  for (const auto& input : checked.inputs) inspection.sums.push_back(input.buffer->buffer.get());
  for (size_t i = 0; i < checked.expected.whole.size(); ++i) {
    inspection.pairs.push_back(
        {checked.outputs[i], checked.expected.whole[i].buffer->buffer.get()});
  }
  return device.Inspect(inspection);
}

Status CheckMemory(const Bench& bench, const CheckedProgram& checked, const Findings& findings) {
  for (const Status& guard : findings.guards) KILN_RETURN_IF_ERROR(guard);
  for (size_t i = 0; i < checked.expected.whole.size(); ++i) {
    const ExpectedOutputs::Kept& kept = checked.expected.whole[i];
    if (findings.sums[i] == kept.buffer->checksum) continue;
    bench.cache.Erase(kept.key);
    return Internal("write outside of all arguments, into the reference outputs");
  }
  return OkStatus();
}

StatusOr<std::vector<uint64_t>> SumsOfInputs(Device& device, const CheckedProgram& checked) {
  Inspection inspection;
  for (const auto& input : checked.inputs) inspection.sums.push_back(input.buffer->buffer.get());
  KILN_ASSIGN_OR_RETURN(Findings findings, device.Inspect(inspection));
  return std::move(findings.sums);
}

Status CheckInputs(const Bench& bench, const CheckedProgram& checked,
                   std::span<const uint64_t> sums) {
  for (size_t i = 0; i < checked.inputs.size(); ++i) {
    const auto& input = checked.inputs[i];
    if (sums[i] == input.shown) continue;
    ForgetInput(bench, input);
    return InvalidArgument("the program modified its input {}",
                           input.buffer->buffer->argument().name);
  }
  return OkStatus();
}

Status CheckOutputs(const Bench& bench, const CheckedProgram& checked, const Findings& findings,
                    double& max_error) {
  KILN_RETURN_IF_ERROR(
      CheckInputs(bench, checked, std::span(findings.sums).subspan(checked.expected.whole.size())));
  for (const Comparison& comparison : findings.comparisons) {
    max_error = std::max(max_error, comparison.max_error);
    if (comparison.different > 0) return InvalidArgument("{}", comparison.message);
  }
  return OkStatus();
}

Status CheckSamples(Device& device, const CheckedProgram& checked, const v1::Tolerance& tolerance,
                    Poison poison, double& max_error) {
  for (size_t k = 0; k < checked.outputs.size(); ++k) {
    const Argument& output = checked.outputs[k]->argument();
    KILN_ASSIGN_OR_RETURN(const PrivateBytes bytes, device.Fetch(*checked.outputs[k]));
    const int64_t unwritten = CountUnwritten(output, bytes, poison);
    if (unwritten > 0) {
      return InvalidArgument("output {}: {} of {} elements were not written", output.name,
                             unwritten, output.elements);
    }
    for (size_t i = 0; i < checked.samples.size(); ++i) {
      const SampledOutput& sample = checked.samples[i];
      if (sample.output != static_cast<int>(k)) continue;
      const Comparison comparison = Compare(sample.argument, Gather(sample, output, bytes),
                                            checked.expected.sampled[i], tolerance);
      max_error = std::max(max_error, comparison.max_error);
      if (comparison.different > 0) return InvalidArgument("{}", comparison.message);
    }
  }
  return OkStatus();
}

}  // namespace kiln::runner
