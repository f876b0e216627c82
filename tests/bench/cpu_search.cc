// Measures what a search finds on a CPU, and how fast the programs are. It uses one thread, so it
// can run beside others.
//
//   bazel run //tests/bench:cpu_search -- --op matmul --args 512,512,512 --trials 128 --seeds 3
//
// The trials are compiled and timed one after the other in this process. Slices of parallel loops
// also run one after the other, and the slowest counts. Effects that the cores share (memory, the
// shared cache, the clock) are left out, and so are the errors of a device's readings. So the
// figures distinguish searches and models, not devices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/codegen/llvm/loaded_program_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/features/features.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "search/policies/models.h"
#include "search/policies/policy.h"
#include "store/measure_log.h"

namespace kiln {
namespace {

struct Options {
  std::string op = "matmul", args = "512,512,512", epilogue, policy = "sketch.xgb", log, rows;
  int trials = 128, round = 16, seeds = 1, cores = 2;
  uint64_t seed = 1;
  double budget_s = 0.06;
  std::map<std::string, double> parameters;
  bool list = false, all_steps = false, packed = false;
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Arguments of a program. Inputs are random in [-1, 1).
class Arguments {
 public:
  explicit Arguments(const codegen::Compiled& compiled) {
    for (const codegen::Argument& arg : compiled.args) {
      const int64_t elements = arg.bytes() / arg.type.bytes();
      bytes_.emplace_back(static_cast<size_t>(arg.bytes()));
      pointers_.push_back(bytes_.back().data());
      if (arg.scope != ir::Scope::kInput || arg.type != ir::kFloat32) continue;
      Rng rng(bytes_.size());
      for (int64_t i = 0; i < elements; ++i)
        bytes_.back().as<float>()[i] = static_cast<float>(UniformReal(rng) * 2 - 1);
    }
  }
  const std::vector<void*>& pointers() const { return pointers_; }

 private:
  std::vector<codegen::GuardedBytes> bytes_;
  std::vector<void*> pointers_;
};

class Bench {
 public:
  explicit Bench(Options options) : o_(std::move(options)) {}

  Status Run() {
    KILN_ASSIGN_OR_RETURN(
        dag_, dag::BuildOp(o_.op, o_.args, {.epilogue = dag::SplitEpilogue(o_.epilogue)}));
    if (o_.packed) dag_ = dag::PackInputs(dag_, [](int) { return true; });
    KILN_ASSIGN_OR_RETURN(target_, codegen::ResolveCpu({}));
    hardware_ = target::DefaultHardware(target_, o_.cores);
    if (!o_.rows.empty()) {
      rows_.open(o_.rows);
      rows_ << fmt::format("{}\n", fmt::join(features::FeatureNames(), " "));
    }
    if (!o_.log.empty()) return MeasureLog();
    for (int i = 0; i < o_.seeds; ++i)
      KILN_RETURN_IF_ERROR(Search(o_.seed + static_cast<uint64_t>(i)));
    return OkStatus();
  }

 private:
  Status Search(uint64_t seed) {
    const search::Task task(dag_, target_, hardware_, "");
    KILN_ASSIGN_OR_RETURN(const search::Models models, search::MakeModels(o_.policy, seed));
    KILN_ASSIGN_OR_RETURN(
        const auto policy,
        search::MakePolicy(o_.policy, task, seed,
                           {.parameters = o_.parameters, .models = models, .min_own_results = 16}));
    best_s_ = 1e30;
    std::string line = fmt::format("seed {}: best GFLOP/s after", seed);
    for (int done = 0; done < o_.trials;) {
      KILN_ASSIGN_OR_RETURN(const auto candidates,
                            policy->Propose(std::min(o_.round, o_.trials - done)));
      if (o_.list) fmt::print("{}", search::PrintRound(policy->last_round()));
      if (candidates.empty()) break;
      std::vector<search::Observation> observations;
      for (const search::Candidate& candidate : candidates) {
        KILN_ASSIGN_OR_RETURN(const double seconds, Measure(candidate));
        observations.push_back(
            {candidate, true, seconds, static_cast<uint32_t>(done + std::ssize(observations))});
      }
      policy->Observe(observations);
      done += static_cast<int>(candidates.size());
      line += fmt::format("  {}: {:.1f}", done, Gflops(best_s_));
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
    return OkStatus();
  }

  // Measures the schedules of a log instead of a search's.
  Status MeasureLog() {
    std::ifstream in(o_.log, std::ios::binary);
    if (!in) return NotFound("cannot read '{}'", o_.log);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const store::MeasureLog log = store::ParseMeasureLog(text);
    if (!log.errors.empty()) return InvalidArgument("{}: {}", o_.log, log.errors[0]);
    for (const store::MeasureLogLine& line : log.lines) {
      search::Candidate candidate;
      candidate.origin = "of the log";
      KILN_ASSIGN_OR_RETURN(candidate.steps, schedule::ParseSteps(line.steps_json));
      KILN_RETURN_IF_ERROR(Measure(candidate).status());
    }
    fmt::print("best of {}: {:.1f} GFLOP/s\n", o_.log, Gflops(best_s_));
    return OkStatus();
  }

  StatusOr<double> Measure(const search::Candidate& candidate) {
    KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag_, candidate.steps));
    KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {}));
    KILN_ASSIGN_OR_RETURN(const codegen::Compiled compiled, codegen::CompileLlvm(program, target_));
    KILN_ASSIGN_OR_RETURN(const auto loaded, codegen::LoadedProgram::Load(compiled.binary));
    const Arguments arguments(compiled);
    const double seconds = BestSeconds(loaded, arguments.pointers());
    best_s_ = std::min(best_s_, seconds);
    if (o_.list) {
      fmt::print("{:8.2f} GFLOP/s  {:10.2f} us, {:10.2f} predicted  {}\n", Gflops(seconds),
                 1e6 * seconds, candidate.rank > 0 ? -1e6 * candidate.score : 0, candidate.origin);
      if (o_.all_steps || seconds == best_s_)
        fmt::print("{}\n", schedule::PrintSteps(candidate.steps));
    }
    if (rows_.is_open())
      PrintRows(features::ExtractFeatures(program, target_, hardware_, {}), seconds);
    return seconds;
  }

  // Returns the shortest of several calls in a row, because other processes only ever make a call
  // longer. Slow programs get few calls.
  double BestSeconds(const codegen::LoadedProgram& program, const std::vector<void*>& args) const {
    constexpr int kMin = 3, kMinOfFast = 10;
    program.SecondsOn(args, o_.cores);
    double best = 1e30;
    const double end = Now() + o_.budget_s;
    for (int i = 0; i < (best < 1.3 * best_s_ ? kMinOfFast : kMin) || Now() < end; ++i) {
      best = std::min(best, program.SecondsOn(args, o_.cores));
      if (i >= kMin && best > 3 * best_s_) break;
    }
    return best;
  }

  // Prints a line: seconds, number of rows, then the values. The first line of the file has the
  // columns.
  void PrintRows(const FloatMatrix& rows, double seconds) {
    rows_ << fmt::format("{:.6g} {}", seconds, rows.rows());
    for (float value : rows.values()) rows_ << fmt::format(" {:.6g}", value);
    rows_ << "\n";
  }

  double Gflops(double seconds) const { return dag_->flop_count() / seconds * 1e-9; }

  const Options o_;
  dag::DagPtr dag_;
  target::Target target_;
  target::HardwareParams hardware_;
  std::ofstream rows_;
  double best_s_ = 1e30;
};

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("What a search finds on a CPU, timed in one thread");
  kiln::Options o;
  std::vector<std::string> parameters;
  app.add_option("--op", o.op, "operator")->capture_default_str();
  app.add_option("--args", o.args, "its arguments")->capture_default_str();
  app.add_option("--epilogue", o.epilogue, "what follows it, like bias,relu");
  app.add_option("--policy", o.policy, "search policy")->capture_default_str();
  app.add_option("--trials", o.trials, "of each search")->capture_default_str();
  app.add_option("--round", o.round, "trials of a round")->capture_default_str();
  app.add_option("--seed", o.seed, "of the first search")->capture_default_str();
  app.add_option("--seeds", o.seeds, "searches")->capture_default_str();
  app.add_option("--cores", o.cores, "slices of a parallel loop")->capture_default_str();
  app.add_option("--budget", o.budget_s, "seconds to time a trial")->capture_default_str();
  app.add_option("--log", o.log,
                 "measure log of this operator: time its schedules, search nothing");
  app.add_option("--rows", o.rows, "file for seconds and feature rows of each trial");
  app.add_option("--parameter", parameters, "NAME=VALUE of the search");
  app.add_flag("--packed", o.packed, "programs take weights in the order in which they read them");
  app.add_flag("--list", o.list, "print each trial and round");
  app.add_flag("--steps", o.all_steps,
               "with --list: the steps of each trial, not only of better ones");
  CLI11_PARSE(app, argc, argv);
  for (const std::string& parameter : parameters) {
    const size_t equals = parameter.find('=');
    if (equals == std::string::npos) {
      fmt::print(stderr, "'{}' is no NAME=VALUE\n", parameter);
      return 1;
    }
    o.parameters[parameter.substr(0, equals)] = std::atof(parameter.c_str() + equals + 1);
  }
  const kiln::Status status = kiln::Bench(o).Run();
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
