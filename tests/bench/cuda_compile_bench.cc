// What does building one CUDA candidate of a search cost, and what does ptxas say of it? One
// thread, CPU time: builds per second per core are the inverse of the mean.
//
//   bazel run //tests/bench:cuda_compile_bench -- --op matmul --args 1024,1024,1024 --count 100
//
// Candidates that take very long are rare: --largest 20 compiles, of --count candidates, only the
// 20 whose kernels are longest once unrolled.
//
// --save writes each candidate's text and cubin, to look at or to compare two versions with
// nvdisasm.
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/status.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "search/policies/policy.h"

namespace kiln {
namespace {

struct Options {
  std::string op = "matmul", args = "1024,1024,1024", epilogue, target = "cuda -arch=sm_90", save;
  int count = 60, only = -1, largest = 0;
  uint64_t seed = 1;
  bool list = false, steps = false;
};

double CpuMs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

struct Sample {
  int index = 0;
  std::string steps;
  codegen::CudaSource source;
  double lower_ms = 0, generate_ms = 0, nvrtc_ms = 0;
  int64_t unrolled = 0;
  int registers = 0;
  int64_t stack = 0, spills = 0;
  size_t bytes = 0;
  std::string error;
};

class Bench {
 public:
  explicit Bench(Options options) : o_(std::move(options)) {}

  Status Run() {
    KILN_ASSIGN_OR_RETURN(
        dag_, dag::BuildOp(o_.op, o_.args, {.epilogue = dag::SplitEpilogue(o_.epilogue)}));
    KILN_ASSIGN_OR_RETURN(target_, target::ParseTarget(o_.target));
    const search::Task task(dag_, target_, target::DefaultHardware(target_, 1), "");
    KILN_ASSIGN_OR_RETURN(const auto policy, search::MakePolicy("sketch.random", task, o_.seed));
    KILN_ASSIGN_OR_RETURN(const auto candidates, policy->Propose(o_.count));
    if (!o_.save.empty()) std::filesystem::create_directories(o_.save);
    std::vector<Sample> samples;
    for (const search::Candidate& candidate : candidates) {
      KILN_ASSIGN_OR_RETURN(Sample sample, Generate(candidate, task.hardware));
      sample.index = static_cast<int>(samples.size());
      samples.push_back(std::move(sample));
    }
    std::stable_sort(samples.begin(), samples.end(),
                     [](const Sample& a, const Sample& b) { return a.unrolled > b.unrolled; });
    if (o_.largest > 0) samples.resize(std::min<size_t>(samples.size(), o_.largest));
    if (o_.only >= 0) std::erase_if(samples, [&](const Sample& s) { return s.index != o_.only; });
    for (Sample& sample : samples) {
      Compile(sample);
      if (o_.list) List(sample);
    }
    Report(samples);
    return OkStatus();
  }

 private:
  StatusOr<Sample> Generate(const search::Candidate& candidate,
                            const target::HardwareParams& hardware) const {
    Sample sample;
    sample.steps = schedule::PrintSteps(candidate.steps);
    const double start = CpuMs();
    KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag_, candidate.steps));
    KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    KILN_RETURN_IF_ERROR(codegen::CheckCudaProgram(program, hardware));
    const double lowered = CpuMs();
    KILN_ASSIGN_OR_RETURN(sample.source, codegen::GenerateCuda(program));
    sample.lower_ms = lowered - start;
    sample.generate_ms = CpuMs() - lowered;
    for (const codegen::CudaKernel& kernel : sample.source.kernels)
      sample.unrolled = std::max(sample.unrolled, kernel.unrolled_cost);
    return sample;
  }

  void Compile(Sample& sample) const {
    const double start = CpuMs();
    const StatusOr<codegen::Cubin> cubin =
        codegen::CompileCubin(sample.source.text, target_.Option("arch"));
    sample.nvrtc_ms = CpuMs() - start;
    if (!cubin.ok()) {
      sample.error = Message(cubin.status());
      return;
    }
    sample.bytes = cubin->binary.size();
    for (const codegen::KernelResources& kernel : cubin->kernels) {
      sample.registers = std::max(sample.registers, kernel.registers);
      sample.stack += kernel.stack_bytes;
      sample.spills += kernel.spill_load_bytes + kernel.spill_store_bytes;
    }
    if (o_.save.empty()) return;
    const std::string path = fmt::format("{}/{}", o_.save, sample.index);
    std::ofstream(path + ".cu") << sample.source.text;
    std::ofstream(path + ".cubin", std::ios::binary) << cubin->binary;
  }

  void List(const Sample& s) const {
    fmt::print(
        "{:5} {:9.1f} ms NVRTC {:7.2f} generate {:6.2f} lower {:6} cost {:7} bytes "
        "{:4} registers {:5} stack {:6} spilled {}\n",
        s.index, s.nvrtc_ms, s.generate_ms, s.lower_ms, s.unrolled, s.bytes, s.registers, s.stack,
        s.spills, s.error);
    if (o_.steps) fmt::print("      {}\n", s.steps);
    std::fflush(stdout);
  }

  template <typename Get>
  static void ReportRow(const char* name, const std::vector<Sample>& samples, Get get) {
    std::vector<double> values;
    for (const Sample& s : samples) values.push_back(static_cast<double>(get(s)));
    std::sort(values.begin(), values.end());
    const auto at = [&](double part) {
      return values[std::min(values.size() - 1,
                             static_cast<size_t>(part * static_cast<double>(values.size())))];
    };
    fmt::print(
        "{:16} {:10.1f} {:10.1f} {:10.1f} {:10.1f} {:10.1f}\n", name, at(0.5), at(0.9), at(0.99),
        values.back(),
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()));
  }

  void Report(const std::vector<Sample>& samples) const {
    if (samples.empty()) return;
    fmt::print("{} {} {} for {}: {} candidates, seed {}\n", o_.op, o_.args, o_.epilogue, o_.target,
               samples.size(), o_.seed);
    fmt::print("{:16} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "CPU ms", "median", "p90", "p99",
               "max", "mean");
    ReportRow("lower", samples, [](const Sample& s) { return s.lower_ms; });
    ReportRow("generate", samples, [](const Sample& s) { return s.generate_ms; });
    ReportRow("NVRTC", samples, [](const Sample& s) { return s.nvrtc_ms; });
    double all_ms = 0;
    for (const Sample& s : samples) all_ms += s.lower_ms + s.generate_ms + s.nvrtc_ms;
    ReportRow("unrolled cost", samples, [](const Sample& s) { return s.unrolled; });
    ReportRow("cubin bytes", samples, [](const Sample& s) { return s.bytes; });
    ReportRow("registers", samples, [](const Sample& s) { return s.registers; });
    ReportRow("stack bytes", samples, [](const Sample& s) { return s.stack; });
    ReportRow("spilled bytes", samples, [](const Sample& s) { return s.spills; });
    const auto failed =
        std::ranges::count_if(samples, [](const Sample& s) { return !s.error.empty(); });
    fmt::print("{:.2f} builds per second per core, {} refused by NVRTC\n",
               1e3 * static_cast<double>(samples.size()) / all_ms, failed);
  }

  const Options o_;
  dag::DagPtr dag_;
  target::Target target_;
};

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("Time to build CUDA candidates of a search, and what ptxas says of them");
  kiln::Options o;
  app.add_option("--op", o.op, "operator")->capture_default_str();
  app.add_option("--args", o.args, "its arguments")->capture_default_str();
  app.add_option("--epilogue", o.epilogue, "what follows it, like bias,relu");
  app.add_option("--target", o.target, "target")->capture_default_str();
  app.add_option("--count", o.count, "candidates")->capture_default_str();
  app.add_option("--seed", o.seed, "of the search")->capture_default_str();
  app.add_option("--largest", o.largest, "compile only so many, the longest");
  app.add_option("--only", o.only, "compile the candidate with this number");
  app.add_option("--save", o.save, "folder for texts and cubins");
  app.add_flag("--list", o.list, "a line per candidate");
  app.add_flag("--steps", o.steps, "and its steps");
  CLI11_PARSE(app, argc, argv);
  const kiln::Status status = kiln::Bench(o).Run();
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
