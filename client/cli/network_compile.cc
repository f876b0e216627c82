// kiln compile: from a network and its records to a file that runs.
#include <fmt/format.h>
#include <unistd.h>

#include "base/terminal.h"
#include "base/units.h"
#include "client/cli/commands.h"
#include "client/compile/compile_network.h"
#include "client/this_machine.h"
#include "client/view/json.h"

namespace kiln::client {
namespace {

struct Coverage {
  int tuned = 0, untuned = 0, simple = 0;  // kernels
  double expected_s = 0;
};

Coverage CoverageOf(const CompiledNetwork& compiled) {
  Coverage coverage;
  for (const KernelCoverage& kernel : compiled.coverage) {
    const bool tuned = kernel.source != runtime::KernelSource::kUntuned;
    ++(tuned ? coverage.tuned : kernel.is_simple ? coverage.simple : coverage.untuned);
    coverage.expected_s += kernel.expected_s;
  }
  return coverage;
}

void PrintKernels(const CompiledNetwork& compiled) {
  Table table({{"Kernel", Table::kLeft, 16},
               {"Computes", Table::kLeft, 16},
               {"Schedule"},
               {"Record", Table::kRight},
               {"Expected", Table::kRight}});
  for (const KernelCoverage& kernel : compiled.coverage) {
    table.AddRow({kernel.name, kernel.description, std::string(runtime::SourceName(kernel.source)),
                  kernel.record.empty() ? "-" : kernel.record,
                  kernel.expected_s > 0 ? FormatSeconds(kernel.expected_s) : "-"});
  }
  fmt::print("{}", table.ToString(OutputColumns(STDOUT_FILENO)));
}

void PrintSummary(const CompiledNetwork& compiled, const std::string& path, int64_t bytes) {
  const Coverage coverage = CoverageOf(compiled);
  fmt::print("{}: {} kernels, {}: {} of weights, {} for what is between them ({} without reuse)\n",
             path, compiled.coverage.size(), FormatBytes(bytes),
             FormatBytes(compiled.network.constants_bytes),
             FormatBytes(compiled.memory.arena_bytes), FormatBytes(compiled.memory.sum_bytes));
  fmt::print("tuned {}, {} by the records; never tuned {}, and {} without sums\n", coverage.tuned,
             FormatSeconds(coverage.expected_s), coverage.untuned, coverage.simple);
  for (const KernelCoverage& kernel : compiled.coverage) {
    if (!kernel.remark.empty()) fmt::print(stderr, "kiln: {}: {}\n", kernel.name, kernel.remark);
  }
}

std::string KernelJson(const KernelCoverage& kernel) {
  return fmt::format(
      "{{\"kernel\":{},\"task\":{},\"source\":{},\"record\":{},\"expected_s\":{},\"simple\":{}}}",
      JsonString(kernel.name), JsonString(kernel.description),
      JsonString(std::string(runtime::SourceName(kernel.source))), JsonString(kernel.record),
      kernel.expected_s, kernel.is_simple);
}

}  // namespace

Status CompileCommand(const CompileFlags& flags, const Session& session) {
  if (!IsNetwork(flags.network.what)) {
    return InvalidArgument(
        "{} is no network, expected network:NAME, a model (*.onnx) or a network's text (*.graph)",
        flags.network.what);
  }
  CompileOptions options{.target = {}, .strict = flags.strict, .seed = flags.seed};
  KILN_ASSIGN_OR_RETURN(options.target, target::ParseTarget(flags.target));
  // As jobs that ran here have it (tune.cc), so that their records are found.
  if (session.scheduler.empty()) {
    KILN_ASSIGN_OR_RETURN(options.target, NameThisCpu(options.target));
  }
  KILN_ASSIGN_OR_RETURN(options.variants, ParseVariants(flags.variants));
  KILN_ASSIGN_OR_RETURN(const graph::Graph network, LoadNetwork(flags.network));
  // Without records all schedules are chosen without measuring.
  auto archive = session.OpenArchive();
  if (!archive.ok() && archive.status().code() != StatusCode::kNotFound) return archive.status();
  KILN_ASSIGN_OR_RETURN(const CompiledNetwork compiled,
                        CompileNetwork(network, options, archive.ok() ? archive->get() : nullptr));
  KILN_ASSIGN_OR_RETURN(const int64_t bytes, WriteCompiled(flags.output, compiled));
  if (session.json) {
    for (const KernelCoverage& kernel : compiled.coverage) fmt::print("{}\n", KernelJson(kernel));
    return OkStatus();
  }
  if (flags.kernels) PrintKernels(compiled);
  PrintSummary(compiled, flags.output, bytes);
  return OkStatus();
}

}  // namespace kiln::client
