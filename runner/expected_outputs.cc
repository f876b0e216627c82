#include "runner/expected_outputs.h"

#include <fmt/format.h>

#include <utility>

#include "runner/reference_outputs.h"

namespace kiln::runner {
namespace {

Status LoadSampled(const UniqueFd& outputs, CheckedProgram& checked) {
  int64_t total_bytes = 0;
  for (const SampledOutput& sample : checked.samples) total_bytes += sample.argument.bytes;
  KILN_ASSIGN_OR_RETURN(const MappedOutputs file, MappedOutputs::Map(outputs, total_bytes));
  size_t offset = 0;
  for (const SampledOutput& sample : checked.samples) {
    const auto bytes = static_cast<size_t>(sample.argument.bytes);
    const auto timed = file.half(Content::kTimed).subspan(offset, bytes);
    const auto other = file.half(Content::kOther).subspan(offset, bytes);
    checked.expected.sampled.emplace_back(timed.begin(), timed.end());
    checked.other_expected.sampled.emplace_back(other.begin(), other.end());
    offset += bytes;
  }
  return OkStatus();
}

Status LoadWhole(const Bench& bench, const wire::TrialRun& trial, const UniqueFd& outputs,
                 Content content, CheckedProgram& checked) {
  ExpectedOutputs& expected =
      content == Content::kTimed ? checked.expected : checked.other_expected;
  std::vector<ExpectedOutputs::Kept>& all = expected.whole;
  bool complete = true;
  int64_t total_bytes = 0;
  for (size_t i = 0; i < checked.outputs.size(); ++i) {
    total_bytes += checked.outputs[i]->argument().bytes;
    const std::string key = fmt::format("{}:{}{}", trial.reference_key(), i,
                                        content == Content::kTimed ? "" : " other");
    all.push_back({key, bench.cache.Find(key)});
    complete &= all.back().buffer != nullptr;
  }
  if (complete) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const MappedOutputs file, MappedOutputs::Map(outputs, total_bytes));
  size_t offset = 0;
  for (size_t i = 0; i < checked.outputs.size(); ++i) {
    Argument argument = checked.outputs[i]->argument();
    const size_t bytes = static_cast<size_t>(argument.bytes);
    if (all[i].buffer == nullptr) {
      argument.name += " (reference)";
      auto kept = std::make_shared<CachedBuffer>();
      KILN_ASSIGN_OR_RETURN(kept->buffer, bench.device.Allocate(argument));
      KILN_RETURN_IF_ERROR(
          bench.device.Fill(*kept->buffer, file.half(content).subspan(offset, bytes)));
      KILN_ASSIGN_OR_RETURN(kept->checksum, bench.device.Checksum(*kept->buffer));
      bench.cache.Insert(all[i].key, kept);
      all[i].buffer = std::move(kept);
    }
    offset += bytes;
  }
  return OkStatus();
}

}  // namespace

Status LoadExpected(const Bench& bench, const wire::TrialRun& trial, const UniqueFd& outputs,
                    CheckedProgram& checked) {
  if (!checked.samples.empty()) return LoadSampled(outputs, checked);
  KILN_RETURN_IF_ERROR(LoadWhole(bench, trial, outputs, Content::kTimed, checked));
  return LoadWhole(bench, trial, outputs, Content::kOther, checked);
}

}  // namespace kiln::runner
