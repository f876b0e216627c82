// The target of a command whose user has said none: one rule for all commands.
//
// With a scheduler it is the kind of device that its workers have, if that is one kind; else the
// user is asked for it. Without one it is the GPU of this machine, if it has one, else its CPU.
#pragma once

#include <string>

#include "base/status.h"
#include "client/session.h"
#include "compiler/target/target.h"
#include "proto/tracker.pb.h"

namespace kiln::client {

struct DefaultTarget {
  std::string target;   // "cuda", "llvm"
  std::string because;  // for people: "the scheduler has NVIDIA H200"
};

// The workers of the session's scheduler, which asks its tracker. Call InitGrpc before.
StatusOr<v1::ListReply> WorkersOf(const Session& session);

// FailedPrecondition, with what there is: the runners are none, or of several kinds.
StatusOr<DefaultTarget> TargetOfWorkers(const v1::ListReply& workers);

// A target that names no processor or architecture, completed: what it leaves open is that of the
// runners of its kind, if they all announce the same. Others are returned as they are.
target::Target CompletedByWorkers(const target::Target& target, const v1::ListReply& workers);

// Asks the scheduler, or looks for a GPU here. Call InitGrpc before where there is a scheduler.
StatusOr<DefaultTarget> FindDefaultTarget(const Session& session);

}  // namespace kiln::client
