// The form of the log's lines: text for people (log.h), or one JSON object per line for programs.
//
//   {"time":"2026-11-29T17:00:00.123Z","level":"info","process":"runner","pid":4711,
//    "message":"device 0 is ready","job":"3f2a91c0","trial":"3f2a91c0/17","trace_id":"0af7.."}
//
// "job", "trial" and "trace_id" are there if the line was logged inside a scope that knows them
// (log_scope.h). Thread-safe.
#pragma once

#include <string_view>

#include "base/status.h"

namespace kiln {

enum class LogFormat { kText, kJson };

// `name` is "text" or "json"; InvalidArgument on another name. The default is text.
Status SetLogFormat(std::string_view name);
void SetLogFormat(LogFormat format);

}  // namespace kiln
