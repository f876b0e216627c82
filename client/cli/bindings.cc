#include "client/cli/bindings.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "base/text/counted.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"

namespace kiln::client {
namespace {

// Parses the arguments that stand behind the weight in a list of tasks (task_list.h).
StatusOr<WorkloadArguments> ParseWorkloadArguments(const std::string& text) {
  std::istringstream in(text);
  WorkloadArguments arguments;
  std::string excess;
  in >> arguments.op >> arguments.args >> arguments.epilogue >> excess;
  if (excess.empty() && !arguments.op.empty()) return arguments;
  return InvalidArgument(
      "found '{}', expected a text file, or an operator, its arguments and its epilogue, as in "
      "`matmul 512,512,512 bias,relu`",
      text);
}

StatusOr<Binding> ParseBinding(const std::string& text) {
  // A key that is JSON may contain any character.
  const size_t close = text.starts_with('[') ? text.find("]=") : std::string::npos;
  const size_t equals = close == std::string::npos ? text.find('=') : close + 1;
  if (equals == std::string::npos || equals == 0) {
    return InvalidArgument(
        "found '{}', expected KEY=FILE or KEY=OPERATOR ARGUMENTS, as in "
        "'[\"my_matmul\", 127, 96, 80]=matmul 127,96,80'",
        text);
  }
  Binding binding;
  binding.key = dag::NormalizedKey(std::string_view(text).substr(0, equals));
  KILN_ASSIGN_OR_RETURN(const WorkloadArguments arguments,
                        ParseWorkloadArguments(text.substr(equals + 1)));
  KILN_ASSIGN_OR_RETURN(binding.workload, LoadWorkload(arguments));
  return binding;
}

}  // namespace

StatusOr<std::vector<Binding>> ParseBindings(const std::vector<std::string>& texts) {
  std::vector<Binding> bindings;
  for (const std::string& text : texts) {
    StatusOr<Binding> binding = ParseBinding(text);
    KILN_RETURN_IF_ERROR(Annotate(binding.status(), "--bind"));
    bindings.push_back(*std::move(binding));
  }
  return bindings;
}

StatusOr<v1::BindKeyReply> Bind(const Binding& binding, Archive& archive) {
  v1::BindKeyRequest request;
  request.set_workload_key(binding.key);
  request.set_dag(dag::PrintDag(*binding.workload.dag));
  KILN_ASSIGN_OR_RETURN(const v1::BindKeyReply reply, archive.BindKey(request));
  fmt::print(stderr, "{} stands for {} in {}: {} bound\n", Printable(binding.key),
             binding.workload.description, archive.Name(),
             Counted(static_cast<int64_t>(reply.bound()), "record"));
  const auto unfit = static_cast<int64_t>(reply.unfit());
  if (unfit > 0) {
    fmt::print(stderr, "{} with this key {} not fit and {} left unbound; {}\n",
               Counted(unfit, "record"), unfit == 1 ? "does" : "do", IsOrAre(unfit),
               Printable(reply.first_unfit()));
  }
  return reply;
}

void AddBindings(CLI::App& command, std::vector<std::string>& bind) {
  command
      .add_option("--bind", bind,
                  "KEY=FILE, or KEY=OPERATOR ARGUMENTS: what a workload key of the log stands for "
                  "where it does not say; kept, as records bind does (may be repeated)")
      ->allow_extra_args(false);
}

}  // namespace kiln::client
