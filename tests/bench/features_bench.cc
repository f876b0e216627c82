// Measures how many states per second one core turns into feature rows, on states as a search
// samples them.
//
//   bazel run //tests/bench:features_bench -- --op conv2d_nhwc --args 1,56,56,64,64,3,3,1,1
//       --epilogue bias,relu --target cuda
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <functional>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/features/features.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "device/device_model.h"
#include "search/policies/policy.h"

namespace kiln {
namespace {

struct Options {
  std::string op = "conv2d_nhwc", args = "1,56,56,64,64,3,3,1,1", epilogue = "bias,relu";
  std::string target = "cuda";
  int count = 200, print = -1;
  uint64_t seed = 1;
  double seconds = 2;
};

// Other processes on the machine do not count.
double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Returns the microseconds per item, in rounds over all items.
double Measure(size_t items, double seconds, const std::function<void(size_t)>& run) {
  const double start = ThreadSeconds();
  double elapsed = 0;
  size_t done = 0;
  while (elapsed < seconds) {
    for (size_t i = 0; i < items; ++i) run(i);
    done += items;
    elapsed = ThreadSeconds() - start;
  }
  return elapsed / static_cast<double>(done) * 1e6;
}

Status Run(const Options& o) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag,
                        dag::BuildOp(o.op, o.args, {.epilogue = dag::SplitEpilogue(o.epilogue)}));
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(o.target));
  const target::HardwareParams hardware = target::DefaultHardware(target, 2);
  const device::DeviceModel device = device::FilledGpu({}, target.GpuArch());
  const search::Task task(dag, target, hardware, "");
  KILN_ASSIGN_OR_RETURN(const auto policy, search::MakePolicy("sketch.random", task, o.seed));
  const double sample_start = ThreadSeconds();
  KILN_ASSIGN_OR_RETURN(const auto candidates, policy->Propose(o.count));
  const double sample_s = ThreadSeconds() - sample_start;

  std::vector<schedule::State> states;
  std::vector<ir::Program> programs;
  const lower::Options lower_options{.gpu = target.is_gpu()};
  for (const search::Candidate& candidate : candidates) {
    KILN_ASSIGN_OR_RETURN(schedule::State state, schedule::Replay(dag, candidate.steps));
    KILN_ASSIGN_OR_RETURN(ir::Program program, lower::Lower(state, lower_options));
    states.push_back(std::move(state));
    programs.push_back(std::move(program));
  }
  if (o.print >= 0) {
    KILN_CHECK(o.print < static_cast<int>(programs.size()));
    fmt::print("{}\n", ir::ProgramText(programs[o.print]));
    const FloatMatrix rows = features::ExtractFeatures(programs[o.print], target, hardware, device);
    for (int c = 0; c < rows.columns(); ++c) {
      fmt::print("{:32}", features::FeatureNames()[c]);
      for (int r = 0; r < rows.rows(); ++r) fmt::print(" {:8.3f}", rows.row(r)[c]);
      fmt::print("\n");
    }
    return OkStatus();
  }
  const double replay_us = Measure(states.size(), o.seconds, [&](size_t i) {
    KILN_CHECK(schedule::Replay(dag, candidates[i].steps).ok());
  });
  const double lower_us = Measure(states.size(), o.seconds, [&](size_t i) {
    KILN_CHECK(lower::Lower(states[i], lower_options).ok());
  });
  const double features_us = Measure(states.size(), o.seconds, [&](size_t i) {
    KILN_CHECK(features::ExtractFeatures(programs[i], target, hardware, device).columns() > 0);
  });
  fmt::print("{} {} {} for {}: {} states\n", o.op, o.args, o.epilogue, o.target, states.size());
  fmt::print("sample   {:8.1f} us (refused draws included)\n",
             sample_s / static_cast<double>(states.size()) * 1e6);
  fmt::print("replay   {:8.1f} us\n", replay_us);
  fmt::print("lower    {:8.1f} us\n", lower_us);
  fmt::print("features {:8.1f} us\n", features_us);
  fmt::print("lower + features: {:.0f} states per second; with replay {:.0f}\n",
             1e6 / (lower_us + features_us), 1e6 / (replay_us + lower_us + features_us));
  return OkStatus();
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("Feature extraction: states per second");
  kiln::Options o;
  app.add_option("--op", o.op, "operator")->capture_default_str();
  app.add_option("--args", o.args, "its arguments")->capture_default_str();
  app.add_option("--epilogue", o.epilogue, "what follows it")->capture_default_str();
  app.add_option("--target", o.target, "what the states are for")->capture_default_str();
  app.add_option("--count", o.count, "states")->capture_default_str();
  app.add_option("--seed", o.seed, "of the sampling")->capture_default_str();
  app.add_option("--seconds", o.seconds, "per figure")->capture_default_str();
  app.add_option("--print", o.print, "print the program and rows of the state with this number");
  CLI11_PARSE(app, argc, argv);
  const kiln::Status status = kiln::Run(o);
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
