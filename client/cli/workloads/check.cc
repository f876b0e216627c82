// kiln check prints the canonical form of a computation, its FLOPs and its key.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "base/text/units.h"
#include "client/cli/session_flags.h"
#include "client/cli/workload_flags.h"
#include "client/cli/workloads/commands.h"
#include "client/jobs/workload_source.h"
#include "client/view/json.h"
#include "compiler/dag/argument_bytes.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"

namespace kiln::client {
namespace {

Status CheckText(const WorkloadArguments& arguments, bool json) {
  KILN_ASSIGN_OR_RETURN(const Workload workload, LoadWorkload(arguments));
  const std::string text = dag::PrintDag(*workload.dag, workload.ranges);
  const std::string key = dag::WorkloadKey(*workload.dag);
  const double flops = workload.dag->flop_count();
  if (json) {
    fmt::print("{{\"dag\":{},\"workload_key\":{},\"flop_count\":{},\"bytes\":{}}}\n",
               JsonString(text), JsonString(key), flops, dag::ArgumentBytes(*workload.dag));
    return OkStatus();
  }
  fmt::print("{}\nFLOPs     {}\nworkload  {}\n", text,
             flops < 0 ? "not known" : FormatCount(static_cast<int64_t>(flops)), key);
  return OkStatus();
}

}  // namespace

Run AddCheck(CLI::App& check, SessionFlags& session) {
  const auto flags = std::make_shared<WorkloadArguments>();
  check.description("check a text file (or operator): canonical form, FLOPs, key");
  check.add_option("file", flags->op, "the text file, or an operator with --args")->required();
  AddWorkloadArguments(check, *flags);
  session.AddJson(check);
  return Plain([flags](const Session& session) { return CheckText(*flags, session.json); });
}

}  // namespace kiln::client
