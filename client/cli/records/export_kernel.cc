// kiln export-kernel writes a schedule as a CUDA file of its own, with a main.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/file/file.h"
#include "base/text/shell_word.h"
#include "client/cli/records/commands.h"
#include "client/cli/resolve.h"
#include "client/cli/session_flags.h"
#include "client/cli/subject_flags.h"
#include "client/view/export_cuda.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/dag/ops/known_workloads.h"
#include "compiler/dag/text.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/target/target.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

struct ExportKernelFlags {
  SubjectFlags subject;
  // "": stdout.
  std::string output;
};

constexpr char kUsualArch[] = "sm_90";

// Returns the job's specification of the record's task; empty if it is not known.
v1::TaskSpec SpecOf(const v1::Record& record, Archive& archive) {
  const auto job = archive.Job(record.job_id());
  if (!job.ok() || record.task_index() >= static_cast<uint32_t>(job->tasks_size())) return {};
  return job->tasks(static_cast<int>(record.task_index())).spec();
}

std::string DescriptionOf(const v1::Record& record, const v1::TaskSpec& spec) {
  if (!spec.description().empty()) return spec.description();
  const auto known = dag::KnownByKey(record.workload_key());
  return known.size() == 1 ? known[0]->workload->Description() : record.workload_key();
}

Status CheckGpuRecord(const v1::Record& record, const target::Target& target,
                      const Session& session) {
  if (target.kind == &target::kCuda) return OkStatus();
  return InvalidArgument(
      "trial {} is for target {}, and only those for cuda become CUDA files; its loops: {}",
      TrialName(record), ShortTarget(record.target()),
      session.Command(fmt::format("show {} --as program", TrialName(record))));
}

Status ExportKernel(const ExportKernelFlags& flags, const Session& session) {
  const std::string& output = flags.output;
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const Subject subject, Resolve(flags.subject, *archive));
  KILN_ASSIGN_OR_RETURN(const v1::Record record, OneBestOf(subject, flags.subject, *archive));
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(record.target()));
  KILN_RETURN_IF_ERROR(CheckGpuRecord(record, target, session));
  if (handwritten::IsKernelPoint(record.steps())) {
    return InvalidArgument(
        "trial {} is of a kernel that a person wrote; its source with these parameters: {}",
        TrialName(record), session.Command(fmt::format("show {} --as cuda", TrialName(record))));
  }
  ExportedKernel kernel;
  KILN_ASSIGN_OR_RETURN(kernel.dag, DagOfRecord(record, subject, *archive));
  const auto text = dag::ParseDagText(record.dag());
  if (text.ok()) kernel.ranges = text->ranges;
  const v1::TaskSpec spec = SpecOf(record, *archive);
  kernel.description = DescriptionOf(record, spec);
  kernel.preparation = spec.preparation();
  kernel.steps = record.steps();
  kernel.workload_key = record.workload_key();
  kernel.target = record.target();
  kernel.arch = target.Option("arch").empty() ? kUsualArch : target.Option("arch");
  kernel.device = record.result().device();
  if (const double cost_s = MeanCost(record.result()); cost_s > 0) kernel.cost_s = cost_s;
  kernel.flop_count = kernel.dag->flop_count();
  if (!output.empty()) kernel.file_name = output.substr(output.rfind('/') + 1);
  KILN_ASSIGN_OR_RETURN(const ExportedFile file, ExportCuda(kernel));
  if (output.empty()) {
    fmt::print("{}", file.text);
    return OkStatus();
  }
  KILN_RETURN_IF_ERROR(WriteFileAtomically(output, file.text));
  fmt::print("{}: {}, record {}\ncompile it:  nvcc {} -O3 -o kernel {} && ./kernel\n", output,
             kernel.description, record.id(), file.arch_flag, ShellWord(output));
  return OkStatus();
}

}  // namespace

Run AddExportKernel(CLI::App& export_kernel, SessionFlags& session) {
  const auto flags = std::make_shared<ExportKernelFlags>();
  export_kernel.description(
      "a cuda record as a file for nvcc: kernels, reference, a main that checks and times");
  AddSubject(export_kernel, session, flags->subject);
  AddRecord(export_kernel, flags->subject);
  export_kernel.add_option("-o,--output", flags->output,
                           "the file, for instance kernel.cu [stdout]");
  return Plain([flags](const Session& session) { return ExportKernel(*flags, session); });
}

}  // namespace kiln::client
