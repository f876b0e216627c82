// Makes the dispatcher's requests to workers, and says how long it waits for each answer. Pure
// functions of the job and its options.
#pragma once

#include <chrono>
#include <string>

#include "proto/builder.pb.h"
#include "proto/runner.pb.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/dispatch_items.h"
#include "scheduler/dispatch/task_references.h"

namespace kiln::scheduler {

// Returns the id that the builder's signature of the item's program covers
// (rpc/artifact_signature.h).
std::string TrialIdOf(const Dispatcher::Job& job, const BuildItem& item);

// `dag` is built with the item's steps. Built-in faults are chosen by the number of a trial.
v1::BuildRequest BuildRequestOf(const Dispatcher::Job& job, const BuildItem& item, std::string dag);
std::chrono::milliseconds BuildDeadline(const Dispatcher::Job& job, const DispatchOptions& options);

// The reason why one of the best is measured again.
enum class RemeasureReason {
  kIdle,    // the device would be idle: the request is as short as possible
  kFinals,  // for the final race, at length
};

v1::MeasureRequest TrialRequest(const Dispatcher::Job& job, int task, const AnswerCheck& check,
                                const v1::Artifact& artifact);
// Uses other inputs than those of trials, if that is cheap.
v1::MeasureRequest RemeasureRequest(const Dispatcher::Job& job, int task, const AnswerCheck& check,
                                    const v1::Artifact& artifact, RemeasureReason why);
// `with_reference` is set if the reference may have to run first.
std::chrono::milliseconds MeasureDeadline(const Dispatcher::Job& job,
                                          const DispatchOptions& options, bool with_reference);

}  // namespace kiln::scheduler
