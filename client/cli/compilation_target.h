// The target for which a command works.
#pragma once

#include <string>

#include "base/status.h"
#include "client/session.h"
#include "compiler/target/target.h"

namespace kiln::client {

// The target of a command whose user may have given none.
struct ChosenTarget {
  std::string text;
  // Tells people that the target is the default, and why; "": the user gave the target.
  std::string note;
};

// Returns the given target; for "" the default of all commands (client/default_target.h).
StatusOr<ChosenTarget> ChooseTarget(const std::string& given, const Session& session);

// Prints the note as a line on stderr, unless the session prints JSON. A command calls it when its
// arguments are found valid, before it prints anything else.
void SayTarget(const std::string& note, const Session& session);

// Calls ChooseTarget and SayTarget.
StatusOr<std::string> TargetOrDefault(const std::string& given, const Session& session);

// Returns the target in the form of jobs that ran for it, so that their records are found. Options
// that it leaves open are those of the scheduler's runners of its kind, if all these announce the
// same. Otherwise, and without a scheduler, they are those of this machine's device
// (this_machine.h); only a CPU target with a scheduler stays open. A target with a GPU architecture
// stays unchanged if there is a scheduler.
StatusOr<target::Target> CompilationTarget(const std::string& text, const Session& session);

}  // namespace kiln::client
