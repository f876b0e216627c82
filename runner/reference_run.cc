#include "runner/reference_run.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runner/known_elements.h"
#include "runner/other_inputs.h"
#include "runner/private_bytes.h"
#include "runner/reference_outputs.h"
#include "runner/run_checks.h"
#include "runner/unchecked.h"

namespace kiln::runner {
namespace {

// References that take longer than this are not run twice on the same inputs, because their cost
// needs no better reading.
constexpr double kLongReferenceS = 0.05;
// Copies of the outputs beside the arguments: the outputs for both contents. A host has these
// twice, on their way to the file and to compare with, and those of the program's own process.
constexpr int kCopiesOfReference = 2, kHostCopiesOfReference = 5;
// Outputs of fewer elements may be equal for two inputs by chance.
constexpr int64_t kMinEqual = 8;

// Appends the outputs for the other content to the file. `first` are the outputs for the usual
// content.
Status RunOnOtherInputs(const Bench& bench, CheckedProgram& checked, const OnPhase& on_phase,
                        std::span<const PrivateBytes> first, const UniqueFd& outputs,
                        ReferenceResult& result) {
  OtherInputs other(bench, checked);
  KILN_RETURN_IF_ERROR(other.Show());
  // This run has a time limit of its own.
  on_phase(wire::RUNNING);
  KILN_RETURN_IF_ERROR(RunOnce(bench.device, checked, Poison::kNaN).status());
  KILN_ASSIGN_OR_RETURN(const Findings findings, InspectRun(bench.device, checked, {}));
  KILN_RETURN_IF_ERROR(CheckMemory(bench, checked, findings));
  double max_error = 0;
  KILN_RETURN_IF_ERROR(Annotate(CheckOutputs(bench, checked, findings, max_error),
                                "checked after its run on other inputs"));
  bool differs = checked.inputs.empty();
  for (size_t i = 0; i < checked.outputs.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(const PrivateBytes bytes, bench.device.Fetch(*checked.outputs[i]));
    KILN_RETURN_IF_ERROR(AppendOutput(outputs, bytes));
    differs = differs || bytes != first[i] || checked.outputs[i]->argument().elements < kMinEqual;
  }
  if (!differs && result.unchecked.empty()) {
    result.unchecked = "the reference gives the same answer to different inputs";
  }
  return OkStatus();
}

}  // namespace

StatusOr<ReferenceResult> RunReference(const Bench& bench, const wire::ReferenceRun& reference,
                                       const UniqueFd& outputs, const OnPhase& on_phase) {
  if (!outputs.valid()) return Internal("no file for the reference outputs came with the request");
  ReferenceResult result;
  on_phase(wire::PREPARING);
  KILN_ASSIGN_OR_RETURN(auto arguments, ParseArguments(reference.artifact().plan()));
  CheckedProgram checked;
  KILN_RETURN_IF_ERROR(PrepareArguments(
      bench, arguments, reference.seed(),
      bench.device.is_host() ? kHostCopiesOfReference : kCopiesOfReference, checked));
  on_phase(wire::LOADING);
  KILN_ASSIGN_OR_RETURN(checked.program, bench.device.LoadFor(reference.artifact(), checked.args));
  on_phase(wire::RUNNING);
  KILN_ASSIGN_OR_RETURN(CheckedTime time, RunOnce(bench.device, checked, Poison::kNaN));
  KILN_ASSIGN_OR_RETURN(Findings findings, InspectRun(bench.device, checked, {}));
  KILN_RETURN_IF_ERROR(CheckMemory(bench, checked, findings));

  KILN_RETURN_IF_ERROR(ClearOutputs(outputs));
  std::vector<PrivateBytes> first;
  for (Buffer* output : checked.outputs) {
    KILN_ASSIGN_OR_RETURN(first.emplace_back(), bench.device.Fetch(*output));
    KILN_RETURN_IF_ERROR(AppendOutput(outputs, first.back()));
    if (result.unchecked.empty()) result.unchecked = WhyUnchecked(output->argument(), first.back());
    // The second run is compared with this copy.
    auto kept = std::make_shared<CachedBuffer>();
    KILN_ASSIGN_OR_RETURN(kept->buffer, bench.device.Allocate(output->argument()));
    KILN_RETURN_IF_ERROR(bench.device.Fill(*kept->buffer, first.back()));
    KILN_ASSIGN_OR_RETURN(kept->checksum, bench.device.Checksum(*kept->buffer));
    checked.expected.whole.push_back({"", std::move(kept)});
  }
  if (!reference.known().empty()) {
    std::vector<KnownOutput> known;
    for (size_t i = 0; i < first.size(); ++i)
      known.push_back({checked.outputs[i]->argument(), first[i]});
    KILN_RETURN_IF_ERROR(Annotate(CheckKnown(reference.known(), known, reference.tolerance()),
                                  "it does not compute what was asked for"));
  }
  const bool again = time.own_s < kLongReferenceS;
  if (again) {
    on_phase(wire::TIMING);
    KILN_ASSIGN_OR_RETURN(time, RunOnce(bench.device, checked, Poison::kStale));
  }
  KILN_ASSIGN_OR_RETURN(findings, InspectRun(bench.device, checked, {}));
  KILN_RETURN_IF_ERROR(CheckMemory(bench, checked, findings));
  // The check also finds modified inputs, so it is done for long references too.
  double max_error = 0;
  KILN_RETURN_IF_ERROR(Annotate(CheckOutputs(bench, checked, findings, max_error),
                                again ? "two runs differ" : "checked after its run"));
  checked.expected.whole.clear();
  KILN_RETURN_IF_ERROR(RunOnOtherInputs(bench, checked, on_phase, first, outputs, result));
  result.cost_s = time.own_s;
  return result;
}

}  // namespace kiln::runner
