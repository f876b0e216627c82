// A mutational fuzzer of the command line and of the services.
//
//   bazel run //tests/fuzz:fuzz -- --inputs 10000 --seed 1
//
// Each input has a seed of its own, made of --seed and its number; --only runs one of them again.
// An input must not crash a program, not hang it for 10 s, nor make it grow by 1 GiB, and services
// answer afterwards with exact counts. Exit status 1 when one did.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "tests/fuzz/fuzz_cli.h"
#include "tests/fuzz/fuzz_rpc.h"

namespace kiln::fuzz {
namespace {

constexpr int64_t kInputsPerCheck = 250;

struct Flags {
  int64_t inputs = 10'000, only = -1;
  uint64_t seed = 1;
  double seconds = 0, rpc_share = 0.4;
  std::string folder;
};

StatusOr<int> Fuzz(const Flags& flags) {
  KILN_ASSIGN_OR_RETURN(const TempDir scratch, TempDir::Make("kiln-fuzz"));
  if (!flags.folder.empty()) KILN_RETURN_IF_ERROR(MakeDirs(flags.folder));
  Findings findings(flags.folder.empty() ? "/tmp" : flags.folder);
  KILN_ASSIGN_OR_RETURN(const CliFuzzer cli, CliFuzzer::Make("client/kiln", scratch.path()));
  KILN_ASSIGN_OR_RETURN(const auto rpc, RpcFuzzer::Make());
  const double start_s = Clock::Real().MonotonicSeconds();
  int64_t done = 0, calls = 0;
  for (int64_t i = flags.only >= 0 ? flags.only : 0; i < flags.inputs; ++i) {
    if (flags.seconds > 0 && Clock::Real().MonotonicSeconds() - start_s > flags.seconds) break;
    const uint64_t seed = SplitSeed(flags.seed, static_cast<uint64_t>(i));
    Rng rng(seed);
    if (Chance(rng, flags.rpc_share)) {
      rpc->Run(rng(), findings);
      ++calls;
    } else {
      cli.Run(rng(), findings);
    }
    ++done;
    if (flags.only >= 0) break;
    if (done % kInputsPerCheck != 0) continue;
    rpc->CheckFarm(seed, findings);
    fmt::print("{} inputs of seed {}, {} findings, {:.0f} s\n", done, flags.seed,
               findings.all().size(), Clock::Real().MonotonicSeconds() - start_s);
    std::fflush(stdout);
  }
  rpc->CheckFarm(flags.seed, findings);
  fmt::print("{} inputs of seed {}, {} of them calls: {} findings\n", done, flags.seed, calls,
             findings.all().size());
  return findings.all().empty() ? 0 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app("spoiled inputs for the command line and the services");
  Flags flags;
  app.add_option("--inputs", flags.inputs, "so many")->capture_default_str();
  app.add_option("--seed", flags.seed, "of everything random")->capture_default_str();
  app.add_option("--seconds", flags.seconds, "end after so long; 0: after the inputs")
      ->capture_default_str();
  app.add_option("--rpc-share", flags.rpc_share, "of calls among the inputs")
      ->capture_default_str();
  app.add_option("--only", flags.only, "only the input of this number");
  app.add_option("--folder", flags.folder, "keep the inputs of findings here [/tmp]");
  CLI11_PARSE(app, argc, argv);
  const auto result = Fuzz(flags);
  if (result.ok()) return *result;
  fmt::print(stderr, "fuzz: {}\n", Message(result.status()));
  return 2;
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) { return kiln::fuzz::Main(argc, argv); }
