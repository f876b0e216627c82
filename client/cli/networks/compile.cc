// kiln compile makes a file that runs from a network, or one computation, and its records.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "client/check/narrowed_network.h"
#include "client/cli/command.h"
#include "client/cli/compilation_target.h"
#include "client/cli/default_records_flags.h"
#include "client/cli/network_flags.h"
#include "client/cli/networks/commands.h"
#include "client/cli/networks/compile_one.h"
#include "client/cli/session_flags.h"
#include "client/cli/subject_flags.h"
#include "client/cli/workload_flags.h"
#include "client/compile/compile_network.h"
#include "client/compile/compiled_form.h"
#include "client/compile/network_arrays.h"
#include "client/jobs/workload_source.h"
#include "client/network.h"
#include "client/view/json.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

struct CompileFlags {
  // Name of anything that is compiled, and type of its floats.
  NetworkArguments network;
  // Arguments of an operator.
  WorkloadArguments arguments;
  // Task of a job.
  std::optional<int> task;
  std::string output = "net.kiln";
  // One of kCompiledForms.
  std::string form = "kiln";
  // "": the default, or the target of the record.
  std::string target;
  // The device model, for people; "": that of the records.
  std::string device;
  std::string variants = "all";
  // Layout rewrite of a network (ParseLayoutRewrite).
  std::string layout_rewrite;
  // True: a network with a task that was never tuned is refused.
  bool strict = false;
  // True: the kernels are listed.
  bool kernels = false;
  bool skip_difference = false;
  uint64_t seed = 1;
  DefaultRecords defaults;
};

struct Coverage {
  // Numbers of kernels.
  int tuned = 0, reused = 0, untuned = 0, simple = 0;
  // Number of these kernels that take weights packed.
  int packed = 0;
  double expected_s = 0;
};

Coverage CoverageOf(const CompiledNetwork& compiled) {
  Coverage coverage;
  for (const KernelCoverage& kernel : compiled.coverage) {
    int& count = kernel.source == runtime::KernelSource::kTuned    ? coverage.tuned
                 : kernel.source == runtime::KernelSource::kReused ? coverage.reused
                 : kernel.is_simple                                ? coverage.simple
                                                                   : coverage.untuned;
    ++count;
    if (kernel.takes_packed) ++coverage.packed;
    coverage.expected_s += kernel.expected_s;
  }
  return coverage;
}

void PrintKernels(const CompiledNetwork& compiled) {
  Table table({{"Kernel", Table::kLeft, 16},
               {"Computes", Table::kLeft, 16},
               {"Schedule", Table::kLeft, 16},
               {"Record", Table::kRight},
               {"Expected", Table::kRight}});
  for (const KernelCoverage& kernel : compiled.coverage) {
    std::string source(runtime::SourceName(kernel.source));
    if (!kernel.reused_from.empty()) source += " from " + kernel.reused_from;
    table.AddRow({kernel.name, kernel.description, std::move(source),
                  kernel.record.empty() ? "-" : kernel.record,
                  kernel.expected_s > 0 ? FormatSeconds(kernel.expected_s) : "-"});
  }
  fmt::print("{}", table.ToString(OutputColumns(STDOUT_FILENO)));
}

// Returns lines about weights and memory, as far as there are some; "" for a single kernel, which
// needs neither.
std::string MemoryText(const CompiledNetwork& compiled) {
  std::string text;
  if (compiled.network.constants_bytes > 0)
    text += fmt::format("weights: {}\n", FormatBytes(compiled.network.constants_bytes));
  const int64_t bytes = compiled.memory.arena_bytes, apart = compiled.memory.sum_bytes;
  if (bytes > 0) {
    text += fmt::format("memory for results between kernels: {}", FormatBytes(bytes));
    if (apart > bytes)
      text += fmt::format(" (each in a place of its own they would take {})", FormatBytes(apart));
    text += "\n";
  }
  return text;
}

// Returns a line for each kind of kernel that occurs.
std::string CoverageText(const Coverage& coverage) {
  std::string text;
  const auto add = [&](int count, std::string_view one, std::string_view several) {
    if (count > 0)
      text += fmt::format("{} {}\n", Counted(count, "kernel"), count == 1 ? one : several);
  };
  if (coverage.tuned > 0) {
    text += fmt::format("{} tuned", Counted(coverage.tuned, "kernel"));
    if (coverage.expected_s > 0)
      text += fmt::format(": {} by {}", FormatSeconds(coverage.expected_s),
                          coverage.tuned == 1 ? "its record" : "their records");
    text += "\n";
  }
  add(coverage.reused, "with the schedule of another target or task, which was not measured here",
      "with schedules of other targets or tasks, which were not measured here");
  add(coverage.untuned, "not tuned: its schedule is chosen without measuring",
      "not tuned: their schedules are chosen without measuring");
  add(coverage.simple, "that adds nothing up, which is not tuned unless that is asked for",
      "that add nothing up, which are not tuned unless that is asked for");
  add(coverage.packed, "that reads its weights packed, in the order in which its loops need them",
      "that read their weights packed, in the order in which their loops need them");
  return text;
}

Status PrintSummary(const CompiledNetwork& compiled, const DefaultRecords& defaults,
                    const std::string& path, int64_t bytes) {
  std::vector<std::string> records;
  for (const KernelCoverage& kernel : compiled.coverage) records.push_back(kernel.record);
  KILN_ASSIGN_OR_RETURN(const std::string shipped, ShippedKernelsLine(records, defaults));
  fmt::print("{}: {}, {}\n", path, FormatBytes(bytes),
             Counted(std::ssize(compiled.coverage), "kernel"));
  fmt::print("{}{}{}", MemoryText(compiled), CoverageText(CoverageOf(compiled)), shipped);
  for (const KernelCoverage& kernel : compiled.coverage) {
    if (!kernel.remark.empty()) fmt::print(stderr, "kiln: {}: {}\n", kernel.name, kernel.remark);
  }
  return OkStatus();
}

std::string KernelJson(const KernelCoverage& kernel) {
  return fmt::format(
      "{{\"kernel\":{},\"task\":{},\"source\":{},\"record\":{},\"expected_s\":{},\"simple\":{},"
      "\"reused_from\":{},\"packed\":{}}}",
      JsonString(kernel.name), JsonString(kernel.description),
      JsonString(std::string(runtime::SourceName(kernel.source))), JsonString(kernel.record),
      kernel.expected_s, kernel.is_simple, JsonString(kernel.reused_from), kernel.takes_packed);
}

// A network before any pass.
struct Loaded {
  graph::Graph network;                            // what the file or the name says
  std::optional<graph::NarrowedNetwork> narrowed;  // the network made narrow, if that is asked for
  const graph::Graph& used() const { return narrowed.has_value() ? narrowed->graph : network; }
};

StatusOr<Loaded> Load(const NetworkArguments& arguments) {
  if (!IsNarrowed(arguments)) {
    KILN_ASSIGN_OR_RETURN(graph::Graph network, LoadNetwork(arguments));
    return Loaded{.network = std::move(network), .narrowed = {}};
  }
  KILN_ASSIGN_OR_RETURN(graph::Graph wide, LoadWide(arguments));
  KILN_ASSIGN_OR_RETURN(graph::NarrowedNetwork narrowed, Narrow(wide, arguments));
  return Loaded{.network = std::move(wide), .narrowed = std::move(narrowed)};
}

// Says what of a network was made narrow.
void PrintNarrowed(const graph::NarrowedNetwork& narrowed, std::string_view dtype) {
  std::vector<std::string> wide;
  for (const auto& [op, count] : narrowed.wide) wide.push_back(fmt::format("{} {}", count, op));
  fmt::print("{}: {}; float32: {}\n", dtype, Counted(narrowed.narrow, "node"),
             wide.empty() ? "none" : fmt::format("{}", fmt::join(wide, ", ")));
  std::fflush(stdout);
}

// Says what the narrow types change.
Status PrintDifference(const Loaded& loaded, const CompiledNetwork& compiled) {
  KILN_ASSIGN_OR_RETURN(const std::vector<ir::NDArray> inputs,
                        RandomInputs(compiled.network, /*seed=*/1));
  KILN_ASSIGN_OR_RETURN(const std::vector<Verdict> outputs,
                        CompareWithWide(loaded.narrowed->graph, loaded.network, inputs));
  for (const Verdict& output : outputs)
    fmt::print("largest difference from float32, random inputs: {} {:.1e} of its largest value\n",
               output.name, output.max_error);
  return OkStatus();
}

StatusOr<CompiledNetwork> CompileWhole(const graph::Graph& network, const CompileFlags& flags,
                                       const Session& session) {
  CompileOptions options;
  options.programs.strict = flags.strict;
  options.programs.seed = flags.seed;
  options.device = flags.device;
  if (!flags.arguments.lets.empty()) {
    return InvalidArgument("--let {}: {} is a network, expected a text file with a param",
                           flags.arguments.lets[0], flags.network.what);
  }
  // Without records all schedules are chosen without measuring.
  auto archive = OpenBestRecords(session, flags.defaults);
  if (!archive.ok() && archive.status().code() != StatusCode::kNotFound) return archive.status();
  KILN_ASSIGN_OR_RETURN(const std::string target, TargetOrDefault(flags.target, session));
  KILN_ASSIGN_OR_RETURN(options.programs.target, CompilationTarget(target, session));
  KILN_ASSIGN_OR_RETURN(options.variants, ParseVariants(flags.variants));
  KILN_ASSIGN_OR_RETURN(options.pack_constants,
                        ParseLayoutRewrite(flags.layout_rewrite, options.programs.target));
  return CompileNetwork(network, options, archive.ok() ? archive->get() : nullptr);
}

SubjectFlags SubjectOf(const CompileFlags& flags) {
  SubjectFlags subject;
  subject.what = flags.network.what;
  subject.arguments = flags.arguments;
  subject.arguments.dtype = flags.network.dtype;
  subject.arguments.layout = flags.network.layout;
  subject.target = flags.target;
  subject.task = flags.task;
  return subject;
}

StatusOr<CompiledNetwork> CompileComputation(const CompileFlags& flags, const Session& session) {
  if (flags.layout_rewrite == kRewritePreTransformed) {
    return InvalidArgument(
        "{} is one computation, whose file takes its inputs as they are: --layout-rewrite {} is "
        "for networks, whose weights are in the file",
        flags.network.what, kRewritePreTransformed);
  }
  return CompileOne({.subject = SubjectOf(flags),
                     .device = flags.device,
                     .strict = flags.strict,
                     .seed = flags.seed,
                     .defaults = flags.defaults},
                    session);
}

Status Compile(const CompileFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const CompiledForm form, ParseCompiledForm(flags.form));
  std::optional<Loaded> loaded;
  if (IsNetwork(flags.network.what)) {
    KILN_ASSIGN_OR_RETURN(loaded, Load(flags.network));
  }
  KILN_ASSIGN_OR_RETURN(const CompiledNetwork compiled,
                        loaded.has_value() ? CompileWhole(loaded->used(), flags, session)
                                           : CompileComputation(flags, session));
  KILN_ASSIGN_OR_RETURN(const int64_t bytes, WriteCompiledAs(form, flags.output, compiled));
  if (session.json) {
    for (const KernelCoverage& kernel : compiled.coverage) fmt::print("{}\n", KernelJson(kernel));
    return OkStatus();
  }
  if (flags.kernels) PrintKernels(compiled);
  KILN_RETURN_IF_ERROR(PrintSummary(compiled, flags.defaults, flags.output, bytes));
  if (!loaded.has_value() || !loaded->narrowed.has_value()) return OkStatus();
  PrintNarrowed(*loaded->narrowed, flags.network.dtype);
  return flags.skip_difference ? OkStatus() : PrintDifference(*loaded, compiled);
}

}  // namespace

Run AddCompile(CLI::App& compile, SessionFlags& session) {
  const auto flags = std::make_shared<CompileFlags>();
  compile.description(
      "a network, or one operator, with the best records of its tasks, as a file that runs");
  compile
      .add_option("what", flags->network.what,
                  "network:NAME (docs/zoo.md), a model (*.onnx), a network's text (*.graph); or a "
                  "network of one kernel: an operator (with --args), a text file, a job, a trial "
                  "(JOB/N), the number of a record")
      ->required();
  AddNetworkArguments(compile, flags->network);
  AddLayout(compile, flags->network.layout);
  compile.add_option("--args", flags->arguments.args, "of an operator, for instance 512,512,512")
      ->type_name("N,N,...");
  compile
      .add_option("--dtype", flags->network.dtype,
                  "of network:NAME or an operator: type of its floats; of a model: float16 or "
                  "bfloat16 where it has float32 and results allow it")
      ->capture_default_str();
  compile.add_option("--out-dtype", flags->arguments.out_dtype,
                     "of an operator: type of sums and results [as --dtype]");
  compile.add_option("--epilogue", flags->arguments.epilogue,
                     "of an operator: what follows it, for instance bias,relu");
  AddLets(compile, flags->arguments.lets);
  compile.add_option("--task", flags->task, "of a job that has several tasks: which one")
      ->check(CLI::NonNegativeNumber);
  compile.add_option("-o,--output", flags->output, "the file")
      ->type_name("FILE")
      ->capture_default_str();
  compile
      .add_option(
          "--form", flags->form,
          "the file's form: kiln, which kiln run and libkiln_runtime.so load, or tvm-ffi, a "
          "shared library with the function main for apache-tvm-ffi")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kCompiledForms), std::end(kCompiledForms))))
      ->capture_default_str();
  compile.add_option(
      "--target", flags->target,
      "the target: cuda -arch=sm_90, llvm -mcpu=... [as for kiln tune; of a record its own]");
  AddMath(compile, flags->target);
  compile.add_option("--device-name", flags->device,
                     "the model of the device, for people [that of the records]");
  compile
      .add_option("--variants", flags->variants,
                  "convolutions as they stand, by Winograd's method where it can be, or as is "
                  "faster by the records")
      ->check(CLI::IsMember({"direct", "winograd", "all"}))
      ->capture_default_str();
  AddLayoutRewrite(compile, flags->layout_rewrite);
  compile.add_flag("--strict", flags->strict,
                   "refuse a network of which a task was never tuned for the target");
  compile.add_flag("--kernels", flags->kernels, "list the kernels");
  compile.add_flag("--skip-difference", flags->skip_difference,
                   "of a model that --dtype makes narrow: do not compute it on this CPU to say how "
                   "far its results are from float32's");
  compile.add_option("--seed", flags->seed, "of schedules that are chosen without measuring")
      ->check(NotNegative())
      ->capture_default_str();
  AddDefaultRecords(compile, flags->defaults);
  session.AddPlace(compile);
  return Plain([flags](const Session& session) { return Compile(*flags, session); });
}

}  // namespace kiln::client
