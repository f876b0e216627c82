// What the dispatcher asks of workers, and how long it waits for the answer. Pure functions of the
// job and its options.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "proto/builder.pb.h"
#include "proto/runner.pb.h"
#include "scheduler/dispatch.h"
#include "scheduler/task_references.h"

namespace kiln::scheduler {

// `dag`: what is built with the steps. `trial`: its number, for faults that are built in; none: it
// is no trial.
v1::BuildRequest BuildRequestOf(const Dispatcher::Job& job, int task, std::string dag,
                                const std::string& steps, std::optional<uint32_t> trial);
std::chrono::milliseconds BuildDeadline(const Dispatcher::Job& job, const DispatchOptions& options);

// Why one of the best is measured again.
enum class Again {
  kIdle,    // the device would be idle otherwise: as short as it may be
  kFinals,  // at length
};

v1::MeasureRequest TrialRequest(const Dispatcher::Job& job, const AnswerCheck& check,
                                const v1::Artifact& artifact);
// With other inputs than those of trials, if that is cheap.
v1::MeasureRequest AgainRequest(const Dispatcher::Job& job, const AnswerCheck& check,
                                const v1::Artifact& artifact, Again why);
// `with_reference`: which may have to run first.
std::chrono::milliseconds MeasureDeadline(const Dispatcher::Job& job,
                                          const DispatchOptions& options, bool with_reference);

}  // namespace kiln::scheduler
