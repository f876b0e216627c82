// Measures what building one CUDA candidate of a search costs, which phases take the time, and what
// ptxas reports. One thread, CPU time: builds per second per core are the inverse of the mean.
//
//   bazel run //tests/bench:cuda_compile_bench -- --op matmul --args 1024,1024,1024 --count 100
//   bazel run //tests/bench:cuda_compile_bench -- --suite --count 60
//
// --suite measures six operators, one line each, with the times that NVRTC (12.8 or newer) reports
// for its own parts. One half of the candidates is drawn by chance; a search that ranks by the
// analytic model, as a job's first rounds do, proposes the other half. --flag adds an option of
// NVRTC.
//
// Candidates that take very long are rare: --largest 20 compiles only those 20 of --count
// candidates whose kernels are longest once unrolled.
//
// --save writes each candidate's text and cubin, to look at or to compare two versions with
// nvdisasm.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>

#include "base/clock.h"
#include "base/status.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "search/policies/models.h"
#include "search/policies/policy.h"

namespace kiln {
namespace {
namespace fs = std::filesystem;

struct Workload {
  std::string op = "matmul", args = "1024,1024,1024", epilogue;
  ir::Type dtype = ir::kFloat32;
};

const Workload kMatrixUnits[] = {
    {"matmul", "1024,1024,1024", "", ir::kFloat16},
    {"conv2d_nhwc", "1,56,56,256,256,3,3,1,1", "bias,relu", ir::kFloat16},
    {"dense", "128,3072,768", "bias", ir::kFloat16},
    {"conv2d_nchw", "1,28,28,128,128,3,3,1,1", "bias,relu", ir::kFloat16},
};

const Workload kSuite[] = {
    {"conv2d_nhwc", "1,56,56,64,64,3,3,1,1", "bias,relu"},
    {"conv2d_nhwc", "1,7,7,512,512,3,3,1,1", "bias,relu"},
    {"matmul", "1024,1024,1024", ""},
    {"dense", "128,3072,768", "bias"},
    {"depthwise_conv2d_nhwc", "1,56,56,128,3,3,1,1", "bias,relu"},
    {"softmax", "512,1000", ""},
};

struct Options {
  Workload workload;
  std::string target = "cuda -arch=sm_90", save;
  std::vector<std::string> flags;
  int count = 60, only = -1, largest = 0;
  uint64_t seed = 1;
  bool list = false, steps = false, suite = false, matrix_units = false;
};

// Returns the time of all threads, because NVRTC may have some of its own.
double CpuMs() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

struct Phases {
  double front_end_ms = 0, nvvm_ms = 0, ptxas_ms = 0;
};

// Reads the file that NVRTC wrote with --fdevice-time-trace. Its clock is the wall clock.
Phases PhasesOf(const fs::path& trace, double cpu_per_wall) {
  Phases phases;
  std::ifstream file(trace);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) return phases;
  for (const auto& event : json.value("traceEvents", nlohmann::json::array())) {
    const std::string name = event.value("name", "");
    const double ms = event.value("dur", 0.0) * 1e-3 * cpu_per_wall;
    if (name == "CUDA C++ Front-End") phases.front_end_ms += ms;
    if (name == "LibNVVM") phases.nvvm_ms += ms;
    if (name == "Total PTXAS Time") phases.ptxas_ms += ms;
  }
  return phases;
}

struct Sample {
  int index = 0;
  std::string steps;
  codegen::CudaSource source;
  double lower_ms = 0, generate_ms = 0, nvrtc_ms = 0;
  Phases phases;
  std::string cubin;
  int64_t unrolled = 0;
  int registers = 0;
  int64_t stack = 0, spills = 0;
  size_t bytes = 0;
  std::string error;
};

class Bench {
 public:
  Bench(const Options& options, Workload workload) : o_(options), w_(std::move(workload)) {}

  Status Run() {
    KILN_ASSIGN_OR_RETURN(
        dag_, dag::BuildOp(w_.op, w_.args,
                           {.dtype = w_.dtype, .epilogue = dag::SplitEpilogue(w_.epilogue)}));
    KILN_ASSIGN_OR_RETURN(target_, target::ParseTarget(o_.target));
    const search::Task task(dag_, target_, target::DefaultHardware(target_, 1), "");
    const int by_model = o_.suite ? o_.count / 2 : 0;
    KILN_ASSIGN_OR_RETURN(auto candidates, Propose("sketch.random", task, o_.count - by_model));
    if (by_model > 0) {
      KILN_ASSIGN_OR_RETURN(auto ranked, Propose("sketch.analytic", task, by_model));
      std::ranges::move(ranked, std::back_inserter(candidates));
    }
    if (!o_.save.empty()) fs::create_directories(Folder());
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
    if (o_.suite) {
      ReportLine(samples);
    } else {
      Report(samples);
    }
    return OkStatus();
  }

  static void PrintLineHeader() {
    fmt::print("{:<56} {:>23} {:>7} {:>7} {:>7} {:>7} {:>7} {:>11} {:>11}\n", "CPU ms, medians",
               "build: p50  p90   mean", "ours", "front", "NVVM", "ptxas", "rest", "same texts",
               "same cubins");
  }

 private:
  StatusOr<std::vector<search::Candidate>> Propose(const std::string& name,
                                                   const search::Task& task, int count) const {
    KILN_ASSIGN_OR_RETURN(const search::Models models, search::MakeModels(name, o_.seed));
    KILN_ASSIGN_OR_RETURN(const auto policy,
                          search::MakePolicy(name, task, o_.seed, {.models = models}));
    return policy->Propose(count);
  }

  std::string Folder() const {
    return o_.suite ? fmt::format("{}/{}_{}", o_.save, w_.op, w_.args) : o_.save;
  }

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
    std::vector<std::string> flags = o_.flags;
    // NVRTC appends .json.
    const std::string trace =
        fmt::format("{}/nvrtc_trace_{}", fs::temp_directory_path().string(), getpid());
    if (o_.suite) flags.push_back("--fdevice-time-trace=" + trace);
    const double start = CpuMs(), start_s = Clock::Real().MonotonicSeconds();
    const StatusOr<codegen::Cubin> cubin =
        codegen::CompileSource(sample.source, target_.Option("arch"), {}, flags);
    sample.nvrtc_ms = CpuMs() - start;
    if (o_.suite) {
      const double wall_ms = 1e3 * (Clock::Real().MonotonicSeconds() - start_s);
      sample.phases = PhasesOf(trace + ".json", sample.nvrtc_ms / wall_ms);
      fs::remove(trace + ".json");
    }
    if (!cubin.ok()) {
      sample.error = Message(cubin.status());
      return;
    }
    sample.bytes = cubin->binary.size();
    sample.cubin = cubin->binary;
    for (const codegen::KernelResources& kernel : cubin->kernels) {
      sample.registers = std::max(sample.registers, kernel.registers);
      sample.stack += kernel.stack_bytes;
      sample.spills += kernel.spill_load_bytes + kernel.spill_store_bytes;
    }
    if (o_.save.empty()) return;
    const std::string path = fmt::format("{}/{}", Folder(), sample.index);
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

  struct Spread {
    double median, p90, p99, max, mean;
  };
  template <typename Get>
  static Spread SpreadOf(const std::vector<Sample>& samples, Get get) {
    std::vector<double> values;
    for (const Sample& s : samples) values.push_back(static_cast<double>(get(s)));
    std::sort(values.begin(), values.end());
    const auto at = [&](double part) {
      return values[std::min(values.size() - 1,
                             static_cast<size_t>(part * static_cast<double>(values.size())))];
    };
    return {
        at(0.5), at(0.9), at(0.99), values.back(),
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size())};
  }

  template <typename Get>
  static void ReportRow(const char* name, const std::vector<Sample>& samples, Get get) {
    const Spread s = SpreadOf(samples, get);
    fmt::print("{:16} {:10.1f} {:10.1f} {:10.1f} {:10.1f} {:10.1f}\n", name, s.median, s.p90, s.p99,
               s.max, s.mean);
  }

  // Returns how many samples equal an earlier one.
  template <typename Get>
  static size_t Repeated(const std::vector<Sample>& samples, Get get) {
    std::set<std::string> different;
    for (const Sample& s : samples) different.insert(get(s));
    return samples.size() - different.size();
  }

  void ReportLine(const std::vector<Sample>& samples) const {
    if (samples.empty()) return;
    const Spread all =
        SpreadOf(samples, [](const Sample& s) { return s.lower_ms + s.generate_ms + s.nvrtc_ms; });
    const auto median = [&](auto get) { return SpreadOf(samples, get).median; };
    fmt::print(
        "{:<56} {:>9.0f} {:>6.0f} {:>6.0f} {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>7} of "
        "{} {:>7} of {}\n",
        fmt::format("{} {} {}", w_.op, w_.args, w_.epilogue), all.median, all.p90, all.mean,
        median([](const Sample& s) { return s.lower_ms + s.generate_ms; }),
        median([](const Sample& s) { return s.phases.front_end_ms; }),
        median([](const Sample& s) { return s.phases.nvvm_ms; }),
        median([](const Sample& s) { return s.phases.ptxas_ms; }), median([](const Sample& s) {
          return s.nvrtc_ms - s.phases.front_end_ms - s.phases.nvvm_ms - s.phases.ptxas_ms;
        }),
        Repeated(samples, [](const Sample& s) { return s.source.text; }), samples.size(),
        Repeated(samples, [](const Sample& s) { return s.cubin; }), samples.size());
    std::fflush(stdout);
  }

  void Report(const std::vector<Sample>& samples) const {
    if (samples.empty()) return;
    fmt::print("{} {} {} for {}: {} candidates, seed {}\n", w_.op, w_.args, w_.epilogue, o_.target,
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

  const Options& o_;
  const Workload w_;
  dag::DagPtr dag_;
  target::Target target_;
};

Status Run(const Options& options) {
  if (!options.suite) return Bench(options, options.workload).Run();
  Bench::PrintLineHeader();
  const std::span<const Workload> suite =
      options.matrix_units ? std::span<const Workload>(kMatrixUnits) : kSuite;
  for (const Workload& workload : suite) KILN_RETURN_IF_ERROR(Bench(options, workload).Run());
  return OkStatus();
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("Time to build CUDA candidates of a search, and what ptxas says of them");
  kiln::Options o;
  app.add_option("--op", o.workload.op, "operator")->capture_default_str();
  app.add_option("--args", o.workload.args, "its arguments")->capture_default_str();
  app.add_option("--epilogue", o.workload.epilogue, "what follows it, like bias,relu");
  std::string dtype = "float32";
  app.add_option("--dtype", dtype, "of its inputs")->capture_default_str();
  app.add_option("--target", o.target, "target")->capture_default_str();
  app.add_option("--count", o.count, "candidates")->capture_default_str();
  app.add_option("--seed", o.seed, "of the search")->capture_default_str();
  app.add_option("--largest", o.largest, "compile only so many, the longest");
  app.add_option("--only", o.only, "compile the candidate with this number");
  app.add_option("--save", o.save, "folder for texts and cubins");
  app.add_option("--flag", o.flags, "option of NVRTC, beside those of a build");
  auto* const suite = app.add_flag("--suite", o.suite,
                                   "six operators, a line each, with the parts of NVRTC's time");
  app.add_flag("--matrix-units", o.matrix_units, "four products of float16 instead")->needs(suite);
  app.add_flag("--list", o.list, "a line per candidate");
  app.add_flag("--steps", o.steps, "and its steps");
  CLI11_PARSE(app, argc, argv);
  const kiln::StatusOr<kiln::ir::Type> type = kiln::ir::ParseType(dtype);
  if (type.ok()) o.workload.dtype = *type;
  const kiln::Status status = type.ok() ? kiln::Run(o) : type.status();
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
