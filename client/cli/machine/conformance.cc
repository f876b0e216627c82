// kiln conformance measures random candidates of many workloads on this machine's device.
#include "client/check/conformance.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "base/server/grpc_server.h"
#include "client/check/special_values.h"
#include "client/cli/compilation_target.h"
#include "client/cli/jobs/job_flags.h"
#include "client/cli/machine/commands.h"
#include "client/cli/session_flags.h"
#include "client/jobs/faults.h"
#include "client/jobs/job_spec.h"
#include "search/policies/policy.h"

namespace kiln::client {
namespace {

struct Flags {
  ConformanceFlags conformance;
  // Options of the jobs.
  JobFlags job;
};

StatusOr<int> TestConformance(const Flags& given, const Session& session) {
  InitGrpc();
  const JobDescription job = given.job.Job("llvm");
  ConformanceFlags flags = given.conformance;
  Session here = session;
  here.scheduler.clear();
  KILN_ASSIGN_OR_RETURN(flags.target, TargetOrDefault(flags.target, here));
  flags.options = job.options;
  flags.options.set_policy(std::string(search::Policies().front()->name));
  KILN_RETURN_IF_ERROR(AddFaults(job.faults, flags.options));
  if (flags.set == "special-values") {
    constexpr uint32_t kMaxCandidates = 4;
    return CheckSpecialValues(
        {.target = flags.target,
         .only = flags.only,
         .seed = flags.options.seed(),
         .candidates = static_cast<int>(std::clamp(flags.options.trials(), 1U, kMaxCandidates))},
        session.json);
  }
  return ConformanceCommand(flags, session);
}

}  // namespace

Run AddConformance(CLI::App& conformance, SessionFlags& session) {
  const auto flags = std::make_shared<Flags>();
  conformance.description(
      "random candidates of many workloads on this machine's device, and what became of each");
  conformance.add_option("--target", flags->conformance.target,
                         "cuda, llvm or null [as for kiln tune]");
  flags->job.AddTrials(conformance, "candidates of each workload");
  conformance
      .add_option("--set", flags->conformance.set,
                  "usual: layers, products, reductions; matrix-units: products of the types that "
                  "matrix units multiply, of float32 with -math=tf32 in the target; large: "
                  "tensors of more than 2^31 elements, for devices with 40 GiB; special-values: "
                  "every operator with NaN, infinities, -0 and denormals, up to 4 candidates of "
                  "each, without a database")
      ->check(CLI::IsMember({"usual", "matrix-units", "large", "special-values"}))
      ->capture_default_str();
  conformance.add_option("--only", flags->conformance.only,
                         "only workloads whose name has this, for instance softmax");
  flags->job.AddSeed(conformance);
  conformance.add_option("--log-dir", flags->conformance.log_folder,
                         "keep the logs of the processes started here");
  flags->job.AddMeasuring(conformance);
  session.AddPlace(conformance);
  return [flags](const Session& session) { return TestConformance(*flags, session); };
}

}  // namespace kiln::client
