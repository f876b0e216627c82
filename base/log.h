// The log: one line per message on stderr, "2024-05-01 12:00:00.123 runner info: device 0 is
// ready".
//
//   LogInfo("lease {} granted to {}", id, peer);      levels: debug, info, warn, error
//
// Thread-safe; lines of several threads or processes do not mix. A message below the level is not
// formatted. Before InitLog the process name is that of the program. Fatal states are for
// KILN_CHECK.
//
// KILN_DEBUG=passes=2,costmodel=1 turns on verbose output area by area:
//   KILN_DEBUG_LOG("passes", 2, "...", ...)
// Such lines appear whatever the level is. `all=1` stands for every area.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"

namespace kiln {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// Sets the name to print in front of each line ("tracker"). Called at the start of main.
void InitLog(std::string_view process_name);

// `name` is "debug", "info", "warn" or "error"; InvalidArgument on another name. The default is
// info.
Status SetLogLevel(std::string_view name);
void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();
bool LogEnabled(LogLevel level);

// Sends lines, without the newline, to `sink` instead of stderr; nullptr = stderr again. For tests,
// and for a program that owns the terminal (base/console/terminal.h). `sink` is called by one
// thread at a time and must not log.
void SetLogSink(std::function<void(std::string_view line)> sink);

// Writes the message whatever the level is.
void LogLine(LogLevel level, std::string_view message);

// Returns the number that KILN_DEBUG gives the area; 0 if the area is not named. The environment is
// read once.
int DebugLevel(std::string_view area);
// Reads a given text instead of the environment, for tests. Malformed parts count as nothing.
int DebugLevelIn(std::string_view spec, std::string_view area);

#define KILN_DEFINE_LOG(Name)                                                       \
  template <typename... Args>                                                       \
  void Log##Name(fmt::format_string<Args...> format, Args&&... args) {              \
    if (LogEnabled(LogLevel::k##Name)) {                                            \
      LogLine(LogLevel::k##Name, fmt::format(format, std::forward<Args>(args)...)); \
    }                                                                               \
  }
KILN_DEFINE_LOG(Debug)
KILN_DEFINE_LOG(Info)
KILN_DEFINE_LOG(Warn)
KILN_DEFINE_LOG(Error)
#undef KILN_DEFINE_LOG

#define KILN_DEBUG_LOG(area, level, ...)                                       \
  do {                                                                         \
    if (::kiln::DebugLevel(area) >= (level)) {                                 \
      ::kiln::LogLine(::kiln::LogLevel::kDebug,                                \
                      fmt::format("[{}] {}", area, fmt::format(__VA_ARGS__))); \
    }                                                                          \
  } while (0)

}  // namespace kiln
