// The reasons for which records of measurements are not learned from.
//
// A reason is a text for people that completes "3 records ...".
//
// Pure functions. Any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "search/space/task.h"
#include "store/record.h"

namespace kiln::training {

inline constexpr std::string_view kWorkersFailed = "that the workers failed";
inline constexpr std::string_view kHandWritten = "of hand-written kernels, which have no schedule";
inline constexpr std::string_view kRewrittenLayouts = "with layouts rewritten by their programs";
inline constexpr std::string_view kMarked = "measured while their device was slower than usual";
inline constexpr std::string_view kNoComputation = "of a computation that is not known";
inline constexpr std::string_view kNoTask = "whose computation or target does not parse";
inline constexpr std::string_view kImplausible = "with costs that no device can have";
inline constexpr std::string_view kNoSchedule = "that do not replay or lower";

// Returns why the record says nothing about a schedule of its computation, from the record alone:
// kWorkersFailed, kHandWritten, kRewrittenLayouts or kMarked. Returns "" if nothing speaks against
// it.
std::string_view WhyLeftOut(const store::Record& record);

// Refuses measured costs that no device can have (kImplausible). Costs of programs that are not run
// are made up, so they pass.
Status CheckMeasuredCosts(const store::Record& record, const search::Task& task);

}  // namespace kiln::training
