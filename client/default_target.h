// Chooses the target of a command whose user gave none, by one rule for all commands.
//
// With a scheduler the target is the kind of device that its runners have, if all have the same
// kind; otherwise the user is asked for a target. Without a scheduler it is this machine's GPU if
// there is one, otherwise its CPU.
#pragma once

#include <string>

#include "base/status.h"
#include "client/session.h"
#include "compiler/target/target.h"
#include "proto/tracker.pb.h"

namespace kiln::client {

struct DefaultTarget {
  // "cuda", "llvm".
  std::string target;
  // The reason, for people: "the scheduler has NVIDIA H200".
  std::string because;
};

// Returns the workers of the session's scheduler, which asks its tracker. Call InitGrpc before.
StatusOr<v1::ListReply> WorkersOf(const Session& session);

// FailedPrecondition: there are no runners, or runners of several kinds, which the message lists.
StatusOr<DefaultTarget> TargetOfWorkers(const v1::ListReply& workers);

// Returns the target with the missing options of the runners of its kind, if these all announce the
// same target. A target that names a processor or architecture is returned unchanged.
target::Target CompletedByWorkers(const target::Target& target, const v1::ListReply& workers);

// Asks the scheduler, or looks for a GPU here. With a scheduler, call InitGrpc before.
StatusOr<DefaultTarget> FindDefaultTarget(const Session& session);

}  // namespace kiln::client
