// Measures what compiling one candidate of a search costs, and how fast the compiled program is.
// One thread, CPU time.
//
//   bazel run //tests/bench:compile_bench -- --op matmul --args 512,512,512 --count 150 --run
//
// To compare two versions of the code generator on the same candidates, the first version saves its
// objects, and the second times its own objects against them, taking turns:
//
//   compile_bench --count 60 --save /tmp/objects      (before)
//   compile_bench --count 60 --against /tmp/objects   (after)
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/codegen/llvm/loaded_program_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "search/policies/policy.h"
#include "store/measure_log.h"

namespace kiln {
namespace {

struct Options {
  std::string op = "matmul", args = "512,512,512", epilogue, log, save, against, print;
  int count = 60, only = -1, cores = 2;
  uint64_t seed = 1;
  bool run = false, list = false;
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the value below which `part` of the values lie.
double Quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(part * static_cast<double>(values.size())))];
}

std::string ObjectPath(const std::string& folder, int index) {
  return fmt::format("{}/{}.so", folder, index);
}

StatusOr<std::string> ReadObject(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return NotFound("cannot read '{}'; objects are saved with the same --count and --seed", path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// Arguments of a program. Inputs are random in [-1, 1), the same in every program.
class Arguments {
 public:
  explicit Arguments(const codegen::Compiled& compiled) {
    for (const codegen::Argument& arg : compiled.args) {
      int64_t elements = 1;
      for (int64_t d : arg.shape) elements *= d;
      bytes_.emplace_back(static_cast<size_t>(elements * arg.type.bytes()));
      pointers_.push_back(bytes_.back().data());
      if (arg.scope == ir::Scope::kOutput) output_ = bytes_.size() - 1;
      if (arg.scope != ir::Scope::kInput || arg.type != ir::kFloat32) continue;
      Rng rng(bytes_.size());
      for (int64_t i = 0; i < elements; ++i)
        bytes_.back().as<float>()[i] = static_cast<float>(UniformReal(rng) * 2 - 1);
    }
  }
  const std::vector<void*>& pointers() const { return pointers_; }
  std::vector<float> Output() {
    codegen::GuardedBytes& output = bytes_[output_];
    return {output.as<float>(), output.as<float>() + output.size() / sizeof(float)};
  }

 private:
  std::vector<codegen::GuardedBytes> bytes_;
  std::vector<void*> pointers_;
  size_t output_ = 0;
};

// Returns the shortest times of the programs in seconds. The programs take turns for about `budget`
// seconds each. Other processes only ever make a run longer.
std::vector<double> BestTimes(const std::vector<const codegen::LoadedProgram*>& programs,
                              const std::vector<void*>& args, double budget) {
  std::vector<double> best(programs.size(), 1e30);
  const double end = Now() + budget * static_cast<double>(programs.size());
  for (int round = 0; round < 3 || Now() < end; ++round) {
    for (size_t p = 0; p < programs.size(); ++p) {
      const double start = Now();
      programs[p]->Run(args, 1);
      best[p] = std::min(best[p], Now() - start);
    }
    if (Now() > end + 2) break;
  }
  return best;
}

bool Differs(const std::vector<float>& a, const std::vector<float>& b) {
  float scale = 1e-30f;
  for (float v : b) scale = std::max(scale, std::abs(v));
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= 1e-4f * scale)) return true;
  }
  return false;
}

struct Sample {
  codegen::LlvmTimes times;
  double seconds = 0, before = 0;

  double total_ms() const {
    return times.generate_ms + times.optimize_ms + times.codegen_ms + times.link_ms;
  }
};

class Bench {
 public:
  explicit Bench(Options options) : o_(std::move(options)) {}

  Status Run() {
    KILN_ASSIGN_OR_RETURN(
        dag_, dag::BuildOp(o_.op, o_.args, {.epilogue = dag::SplitEpilogue(o_.epilogue)}));
    KILN_ASSIGN_OR_RETURN(target_, codegen::ResolveCpu({}));
    KILN_ASSIGN_OR_RETURN(const auto schedules, o_.log.empty() ? Random() : Logged());
    if (!o_.save.empty()) std::filesystem::create_directories(o_.save);
    KILN_RETURN_IF_ERROR(Warm());
    for (const Steps& steps : schedules) {
      const int index = index_++;
      if (o_.only >= 0 && index != o_.only) continue;
      KILN_RETURN_IF_ERROR(One(index, steps));
    }
    Report();
    return OkStatus();
  }

 private:
  using Steps = std::vector<schedule::StepPtr>;

  // Returns the schedules that a search without a model tries first.
  StatusOr<std::vector<Steps>> Random() const {
    target::HardwareParams hardware;
    hardware.num_cores = o_.cores;
    const search::Task task(dag_, target_, hardware, "");
    KILN_ASSIGN_OR_RETURN(const auto policy, search::MakePolicy("sketch.random", task, o_.seed));
    KILN_ASSIGN_OR_RETURN(const auto candidates, policy->Propose(o_.count));
    std::vector<Steps> schedules;
    for (const search::Candidate& candidate : candidates) schedules.push_back(candidate.steps);
    return schedules;
  }

  StatusOr<std::vector<Steps>> Logged() const {
    KILN_ASSIGN_OR_RETURN(const std::string text, ReadObject(o_.log));
    const store::MeasureLog log = store::ParseMeasureLog(text);
    if (!log.errors.empty()) return InvalidArgument("{}: {}", o_.log, log.errors[0]);
    std::vector<Steps> schedules;
    for (const store::MeasureLogLine& line : log.lines) {
      if (std::ssize(schedules) == o_.count) break;
      KILN_ASSIGN_OR_RETURN(schedules.emplace_back(), schedule::ParseSteps(line.steps_json));
    }
    return schedules;
  }

  StatusOr<ir::Program> Lowered(const std::vector<schedule::StepPtr>& steps) const {
    KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag_, steps));
    return lower::Lower(state, {});
  }

  // Compiles once, because the first compilation pays for LLVM's tables. Its result is the
  // reference.
  Status Warm() {
    KILN_ASSIGN_OR_RETURN(const ir::Program program, Lowered({}));
    KILN_ASSIGN_OR_RETURN(const codegen::Compiled compiled, codegen::CompileLlvm(program, target_));
    if (!o_.run && o_.against.empty()) return OkStatus();
    arguments_.emplace(compiled);
    KILN_ASSIGN_OR_RETURN(const auto loaded, codegen::LoadedProgram::Load(compiled.binary));
    loaded.Run(arguments_->pointers(), 1);
    reference_ = arguments_->Output();
    return OkStatus();
  }

  Status One(int index, const Steps& steps) {
    KILN_ASSIGN_OR_RETURN(const ir::Program program, Lowered(steps));
    if (!o_.print.empty()) KILN_RETURN_IF_ERROR(Print(steps, program));
    Sample sample;
    KILN_ASSIGN_OR_RETURN(const codegen::Compiled compiled,
                          codegen::CompileLlvm(program, target_, {.times = &sample.times}));
    if (!o_.save.empty())
      std::ofstream(ObjectPath(o_.save, index), std::ios::binary) << compiled.binary;
    if (arguments_) KILN_RETURN_IF_ERROR(Time(index, compiled, sample));
    if (o_.list) {
      fmt::print(
          "{:4} {:8.1f} ms: generate {:6.1f} optimize {:7.1f} codegen {:7.1f} link {:5.1f}  {:8} "
          "bytes",
          index, sample.total_ms(), sample.times.generate_ms, sample.times.optimize_ms,
          sample.times.codegen_ms, sample.times.link_ms, compiled.binary.size());
      if (arguments_) fmt::print("  {:8.2f} GFLOP/s", Gflops(sample.seconds));
      if (sample.before > 0) fmt::print(" was {:8.2f}", Gflops(sample.before));
      fmt::print("\n");
      std::fflush(stdout);
    }
    samples_.push_back(sample);
    return OkStatus();
  }

  Status Print(const Steps& steps, const ir::Program& program) const {
    fmt::print("{}\n", schedule::PrintSteps(steps));
    if (o_.print == "program") fmt::print("{}\n", ir::ProgramText(program));
    if (o_.print == "llvm" || o_.print == "generated") {
      KILN_ASSIGN_OR_RETURN(
          const std::string text,
          codegen::PrintLlvmIr(program, target_, {.optimize = o_.print == "llvm"}));
      fmt::print("{}\n", text);
    }
    if (o_.print == "asm") {
      KILN_ASSIGN_OR_RETURN(const std::string text, codegen::PrintAssembly(program, target_));
      fmt::print("{}\n", text);
    }
    return OkStatus();
  }

  Status Time(int index, const codegen::Compiled& compiled, Sample& sample) {
    KILN_ASSIGN_OR_RETURN(const auto after, codegen::LoadedProgram::Load(compiled.binary));
    after.Run(arguments_->pointers(), 1);
    if (Differs(arguments_->Output(), reference_))
      return Internal("candidate {} computes something else", index);
    if (o_.against.empty()) {
      sample.seconds = BestTimes({&after}, arguments_->pointers(), 0.1)[0];
      return OkStatus();
    }
    KILN_ASSIGN_OR_RETURN(const std::string old, ReadObject(ObjectPath(o_.against, index)));
    KILN_ASSIGN_OR_RETURN(const auto before, codegen::LoadedProgram::Load(old));
    const auto best = BestTimes({&after, &before}, arguments_->pointers(), 0.1);
    sample.seconds = best[0];
    sample.before = best[1];
    return OkStatus();
  }

  double Gflops(double seconds) const { return dag_->flop_count() / seconds * 1e-9; }

  template <typename Get>
  void ReportRow(const char* name, Get get) const {
    std::vector<double> values;
    for (const Sample& s : samples_) values.push_back(get(s));
    fmt::print(
        "{:10} {:9.1f} {:9.1f} {:9.1f} {:9.1f}\n", name, Quantile(values, 0.5),
        Quantile(values, 0.9), Quantile(values, 1.0),
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()));
  }

  // Reports the geometric mean of the speed relative to the saved objects, over the candidates that
  // were fastest before or after.
  void ReportRatio(double part) const {
    std::vector<double> fastest;
    for (const Sample& s : samples_) fastest.push_back(std::min(s.seconds, s.before));
    const double limit = Quantile(fastest, part);
    double logs = 0;
    int n = 0;
    for (const Sample& s : samples_) {
      if (std::min(s.seconds, s.before) > limit) continue;
      logs += std::log(s.before / s.seconds);
      ++n;
    }
    fmt::print("fastest {:3.0f}% ({} candidates): speed x {:.3f}\n", part * 100, n,
               std::exp(logs / n));
  }

  void Report() const {
    if (samples_.empty()) return;
    fmt::print("{} {} {}: {} candidates, seed {}\n", o_.op, o_.args, o_.epilogue, samples_.size(),
               o_.seed);
    fmt::print("{:10} {:>9} {:>9} {:>9} {:>9}\n", "CPU ms", "median", "p90", "max", "mean");
    ReportRow("generate", [](const Sample& s) { return s.times.generate_ms; });
    ReportRow("optimize", [](const Sample& s) { return s.times.optimize_ms; });
    ReportRow("codegen", [](const Sample& s) { return s.times.codegen_ms; });
    ReportRow("link", [](const Sample& s) { return s.times.link_ms; });
    ReportRow("all", [](const Sample& s) { return s.total_ms(); });
    if (!arguments_) return;
    std::vector<double> now, before;
    for (const Sample& s : samples_) {
      now.push_back(Gflops(s.seconds));
      before.push_back(s.before > 0 ? Gflops(s.before) : 0);
    }
    for (const auto& [name, values] : {std::pair{"GFLOP/s", now}, std::pair{"before", before}}) {
      if (values[0] == 0) continue;
      fmt::print("{:8} best {:7.2f}  p90 {:7.2f}  median {:7.2f}\n", name, Quantile(values, 1.0),
                 Quantile(values, 0.9), Quantile(values, 0.5));
    }
    if (o_.against.empty()) return;
    ReportRatio(1.0);
    ReportRatio(0.1);
  }

  const Options o_;
  dag::DagPtr dag_;
  target::Target target_;
  std::optional<Arguments> arguments_;
  std::vector<float> reference_;
  std::vector<Sample> samples_;
  int index_ = 0;
};

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("Time to compile candidates of a search, and the speed of what comes out");
  kiln::Options o;
  app.add_option("--op", o.op, "operator")->capture_default_str();
  app.add_option("--args", o.args, "its arguments")->capture_default_str();
  app.add_option("--epilogue", o.epilogue, "what follows it, like bias,relu");
  app.add_option("--count", o.count, "candidates")->capture_default_str();
  app.add_option("--log", o.log, "measure log of this operator: its schedules, not random ones");
  app.add_option("--seed", o.seed, "of the search")->capture_default_str();
  app.add_option("--cores", o.cores, "the search thinks that there are this many")
      ->capture_default_str();
  app.add_option("--save", o.save, "folder for the objects");
  app.add_option("--against", o.against, "folder with objects to time against");
  app.add_option("--only", o.only, "the candidate with this number");
  app.add_option("--print", o.print, "of every candidate")
      ->check(CLI::IsMember({"steps", "program", "generated", "llvm", "asm"}));
  app.add_flag("--run", o.run, "check and time them in one thread");
  app.add_flag("--list", o.list, "a line per candidate");
  CLI11_PARSE(app, argc, argv);
  const kiln::Status status = kiln::Bench(o).Run();
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
