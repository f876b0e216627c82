// A mutational fuzzer of the command line and of the services.
//
//   bazel run //tests/fuzz:fuzz -- --inputs 10000 --seed 1
//
// Each input has a seed of its own, made from --seed and its number; --only runs one input again.
// An input must not crash a program, hang it for 10 s, or make it grow by 1 GiB, and services must
// answer afterwards with exact counts. The exit status is 1 if an input failed.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/numbers/rng.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_cli.h"
#include "tests/fuzz/fuzz_rpc.h"

namespace kiln::fuzz {
namespace {

constexpr int64_t kInputsPerCheck = 250;

struct Flags {
  int64_t inputs = 10'000, only = -1;
  uint64_t seed = 1;
  double rpc_share = 0.4, most_s = 10;
  std::string folder = "/tmp";
};

// The programs run in `folder`, because spoiled flags name files to write. Their files are found
// there as before.
Status WorkIn(const std::string& folder) {
  const std::filesystem::path here = std::filesystem::current_path();
  for (const char* part : {"builder", "client", "runner", "scheduler", "tracker"}) {
    std::error_code error;
    std::filesystem::create_symlink(here / part, folder + "/" + part, error);
    if (error) return Internal("{}/{}: {}", folder, part, error.message());
  }
  if (chdir(folder.c_str()) != 0) return Internal("cannot go to {}", folder);
  return OkStatus();
}

StatusOr<int> Fuzz(const Flags& flags) {
  KILN_ASSIGN_OR_RETURN(const TempDir scratch, TempDir::Make("kiln-fuzz"));
  const std::string folder = std::filesystem::absolute(flags.folder);
  KILN_RETURN_IF_ERROR(MakeDirs(folder));
  KILN_RETURN_IF_ERROR(MakeDirs(scratch.Join("work")));
  KILN_RETURN_IF_ERROR(WorkIn(scratch.Join("work")));
  Report report(folder, fmt::format("bazel run //tests/fuzz:fuzz -- --seed {} --rpc-share {}",
                                    flags.seed, flags.rpc_share));
  const Corpus corpus;
  KILN_ASSIGN_OR_RETURN(
      const CliFuzzer cli,
      CliFuzzer::Make("client/cli/kiln", scratch.Join("inputs"), flags.most_s, corpus));
  KILN_ASSIGN_OR_RETURN(const auto rpc, RpcFuzzer::Make(flags.most_s, corpus));
  const double start_s = Clock::Real().MonotonicSeconds();
  const int64_t first = std::max<int64_t>(flags.only, 0);
  const int64_t end = flags.only >= 0 ? flags.only + 1 : flags.inputs;
  for (int64_t i = first; i < end; ++i) {
    report.Begin(i);
    Rng rng(SplitSeed(flags.seed, static_cast<uint64_t>(i)));
    if (Chance(rng, flags.rpc_share)) {
      rpc->Run(rng(), report);
    } else {
      cli.Run(rng(), report);
    }
    if ((i + 1) % kInputsPerCheck != 0) continue;
    rpc->CheckFarm(report);
    fmt::print("{} inputs of seed {}, {} findings, {:.0f} s\n", i + 1, flags.seed,
               report.findings(), Clock::Real().MonotonicSeconds() - start_s);
    std::fflush(stdout);
  }
  rpc->CheckFarm(report);
  fmt::print("{}{}\n{} inputs of seed {}: {} findings, {:.0f} s\n", report.Table(), rpc->Peaks(),
             report.inputs(), flags.seed, report.findings(),
             Clock::Real().MonotonicSeconds() - start_s);
  return report.findings() == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app("spoiled inputs for the command line and the services");
  Flags flags;
  app.add_option("--inputs", flags.inputs, "so many")->capture_default_str();
  app.add_option("--seed", flags.seed, "of everything random")->capture_default_str();
  app.add_option("--rpc-share", flags.rpc_share, "of calls among the inputs")
      ->capture_default_str();
  app.add_option("--most-seconds", flags.most_s, "what takes so long hangs; more on a busy machine")
      ->capture_default_str();
  app.add_option("--only", flags.only, "only the input of this number");
  app.add_option("--folder", flags.folder, "keep the inputs of findings here")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto result = Fuzz(flags);
  if (result.ok()) return *result;
  fmt::print(stderr, "fuzz: {}\n", Message(result.status()));
  return 2;
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) { return kiln::fuzz::Main(argc, argv); }
