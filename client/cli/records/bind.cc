// kiln records bind says for which operator or text file a workload key of imported records stands.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "client/cli/bindings.h"
#include "client/cli/records/commands.h"
#include "client/cli/session_flags.h"
#include "client/cli/workload_flags.h"
#include "client/jobs/workload_source.h"
#include "client/view/json.h"
#include "compiler/dag/workload_key.h"

namespace kiln::client {
namespace {

struct BindFlags {
  // `what` is an operator or a text file; "": the operator of `arguments`.
  std::string key, what;
  WorkloadArguments arguments;
};

Status BindKey(const BindFlags& flags, const Session& session) {
  WorkloadArguments arguments = flags.arguments;
  if (arguments.op.empty()) arguments.op = flags.what;
  Binding binding;
  binding.key = dag::NormalizedKey(flags.key);
  KILN_ASSIGN_OR_RETURN(binding.workload, LoadWorkload(arguments));
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive(/*write=*/true));
  KILN_ASSIGN_OR_RETURN(const v1::BindKeyReply reply, Bind(binding, *archive));
  if (session.json) fmt::print("{}\n", JsonOf(reply));
  return OkStatus();
}

}  // namespace

Run AddRecordsBind(CLI::App& bind, SessionFlags& session) {
  const auto flags = std::make_shared<BindFlags>();
  bind.description("say which operator or text file a workload key of imported records is of");
  bind.add_option("key", flags->key, "the key, for instance '[\"my_matmul\", 127, 96, 80]'")
      ->required();
  bind.add_option("what", flags->what, "an operator (with --args), or a text file");
  bind.add_option("--op", flags->arguments.op, "an operator or text file");
  AddWorkloadArguments(bind, flags->arguments);
  session.AddPlace(bind);
  return Plain([flags](const Session& session) { return BindKey(*flags, session); });
}

}  // namespace kiln::client
