// The target that a command is for.
#pragma once

#include <string>

#include "base/status.h"
#include "client/session.h"
#include "compiler/target/target.h"

namespace kiln::client {

// The target of a command whose user may have said none.
struct ChosenTarget {
  std::string text;
  std::string note;  // for people: that it is the default, and why; "": the user has said it
};

// What the user has said; nothing: the default of all commands (client/default_target.h).
StatusOr<ChosenTarget> ChooseTarget(const std::string& given, const Session& session);

// The note as a line on stderr, but for JSON. Commands say it when their words are found right,
// before they print anything else.
void SayTarget(const std::string& note, const Session& session);

// Both.
StatusOr<std::string> TargetOrDefault(const std::string& given, const Session& session);

// As jobs that ran for it have it, so that their records are found. What it leaves open is said by
// the scheduler's runners of its kind, if they all say the same. Otherwise and without a scheduler
// a GPU is this machine's (this_machine.h), and so is a CPU without a scheduler.
StatusOr<target::Target> CompilationTarget(const std::string& text, const Session& session);

}  // namespace kiln::client
