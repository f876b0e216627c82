// Checks of the messages that the tracker gets. InvalidArgument says what was found and what was
// expected. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "proto/tracker.pb.h"

namespace kiln::tracker {

inline constexpr uint32_t kMaxSlots = 4'096;

Status CheckId(std::string_view field, std::string_view value);
Status CheckRequest(const v1::AcquireRequest& request);
// InvalidArgument: the request names no worker, or a mode that operators do not ask for.
Status CheckAsked(const v1::SetWorkerModeRequest& request);

Status CheckWorker(const v1::WorkerState& state);

// Returns whether the request may have a slot of the worker: the worker serves the request's kind
// and key, and is not avoided.
bool Suits(const v1::WorkerState& worker, const v1::AcquireRequest& request);

// Returns whether the worker is of that kind and lists that key.
bool Serves(const v1::WorkerState& worker, v1::WorkerKind kind, std::string_view key);

}  // namespace kiln::tracker
