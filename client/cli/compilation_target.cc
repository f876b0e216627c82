#include "client/cli/compilation_target.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/server/grpc_server.h"
#include "client/default_target.h"
#include "client/this_machine.h"

namespace kiln::client {

StatusOr<ChosenTarget> ChooseTarget(const std::string& given, const Session& session) {
  if (!given.empty()) return ChosenTarget{given, ""};
  if (!session.scheduler.empty()) InitGrpc();
  KILN_ASSIGN_OR_RETURN(const DefaultTarget found, FindDefaultTarget(session));
  return ChosenTarget{found.target, fmt::format("target {}, since {}; --target says otherwise",
                                                found.target, found.because)};
}

void SayTarget(const std::string& note, const Session& session) {
  if (!note.empty() && !session.json) fmt::print(stderr, "kiln: {}\n", note);
}

StatusOr<std::string> TargetOrDefault(const std::string& given, const Session& session) {
  KILN_ASSIGN_OR_RETURN(ChosenTarget chosen, ChooseTarget(given, session));
  SayTarget(chosen.note, session);
  return std::move(chosen.text);
}

StatusOr<target::Target> CompilationTarget(const std::string& text, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(text));
  if (session.scheduler.empty()) return NameThisDevice(target);
  if (target.is_gpu() && target.GpuArch() > 0) return target;
  InitGrpc();
  // A scheduler that does not tell its workers has records all the same.
  if (const auto workers = WorkersOf(session); workers.ok()) {
    const target::Target completed = CompletedByWorkers(target, *workers);
    if (completed != target) return completed;
  }
  return target.is_gpu() ? NameThisDevice(target) : target;
}

}  // namespace kiln::client
