#include "base/log.h"

#include <errno.h>
#include <fmt/chrono.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <ctime>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/log_format.h"
#include "base/log_scope.h"
#include "base/text/json_string.h"
#include "base/text/utf8.h"

namespace kiln {
namespace {

std::atomic<LogLevel> log_level{LogLevel::kInfo};
std::atomic<LogFormat> log_format{LogFormat::kText};

constexpr std::string_view kNames[] = {"debug", "info", "warn", "error"};

std::string_view NameOf(LogLevel level) { return kNames[static_cast<int>(level)]; }

LogLevel LevelOf(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug:
      return LogLevel::kDebug;
    case spdlog::level::info:
      return LogLevel::kInfo;
    case spdlog::level::warn:
      return LogLevel::kWarn;
    default:
      return LogLevel::kError;
  }
}

std::string_view View(const spdlog::string_view_t& text) { return {text.data(), text.size()}; }

void AppendMember(std::string_view name, std::string_view value, std::string& line) {
  fmt::format_to(std::back_inserter(line), ",\"{}\":", name);
  AppendJsonString(value, line);
}

// The payload is the message alone.
std::string JsonLine(const spdlog::details::log_msg& message) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const auto since_epoch = duration_cast<milliseconds>(message.time.time_since_epoch());
  const int64_t ms = since_epoch.count();
  std::string line = fmt::format("{{\"time\":\"{:%Y-%m-%dT%H:%M:%S}.{:03}Z\"",
                                 fmt::gmtime(static_cast<std::time_t>(ms / 1000)), ms % 1000);
  AppendMember("level", NameOf(LevelOf(message.level)), line);
  AppendMember("process", View(message.logger_name), line);
  line += fmt::format(",\"pid\":{}", getpid());
  AppendMember("message", View(message.payload), line);
  const LogIds& ids = LogScope::Current();
  if (!ids.job.empty()) AppendMember("job", ids.job, line);
  if (!ids.trial.empty()) AppendMember("trial", ids.trial, line);
  if (!ids.trace_id.empty()) AppendMember("trace_id", ids.trace_id, line);
  line += "}\n";
  return line;
}

// The formatter puts the line feed at the end.
std::string TextLine(const spdlog::details::log_msg& message, spdlog::formatter& formatter) {
  spdlog::memory_buf_t line;
  formatter.format(message, line);
  // Text in a message that comes from others must not act as a command to the terminal that shows
  // the log.
  return Printable({line.data(), line.size()});
}

// Hands finished lines to the function set by SetLogSink, or to stderr.
class Sink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void Set(std::function<void(std::string_view)> function) {
    std::lock_guard<std::mutex> lock(mutex_);
    function_ = std::move(function);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const bool json = log_format.load(std::memory_order_relaxed) == LogFormat::kJson;
    const std::string text = json ? JsonLine(message) : TextLine(message, *formatter_);
    if (function_) {
      function_(std::string_view(text).substr(0, text.size() - 1));
      return;
    }
    // stderr is unbuffered, so this is one write.
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  void flush_() override {}

 private:
  std::function<void(std::string_view)> function_;
};

struct Log {
  Log() : sink(std::make_shared<Sink>()) { SetName(program_invocation_short_name); }

  void SetName(std::string_view name) {
    auto fresh = std::make_shared<spdlog::logger>(std::string(name), sink);
    fresh->set_level(spdlog::level::trace);
    // The message has our own names of levels, because spdlog says "warning" and "err".
    fresh->set_pattern("%Y-%m-%d %H:%M:%S.%e %n %v");
    std::atomic_store(&logger, std::move(fresh));
  }

  std::shared_ptr<Sink> sink;
  std::shared_ptr<spdlog::logger> logger;
};

// The log is never destroyed, because threads may log while the process ends.
Log& TheLog() {
  static Log* log = new Log;
  return *log;
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

int ParseNumber(std::string_view text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

}  // namespace

void InitLog(std::string_view process_name) { TheLog().SetName(process_name); }

Status SetLogLevel(std::string_view name) {
  for (int i = 0; i < 4; ++i) {
    if (name == kNames[i]) {
      SetLogLevel(static_cast<LogLevel>(i));
      return OkStatus();
    }
  }
  return InvalidArgument("unknown log level '{}', expected debug, info, warn or error", name);
}

void SetLogLevel(LogLevel level) { log_level.store(level, std::memory_order_relaxed); }
LogLevel GetLogLevel() { return log_level.load(std::memory_order_relaxed); }
bool LogEnabled(LogLevel level) { return level >= log_level.load(std::memory_order_relaxed); }

void SetLogSink(std::function<void(std::string_view)> sink) { TheLog().sink->Set(std::move(sink)); }

void LogLine(LogLevel level, std::string_view message) {
  auto logger = std::atomic_load(&TheLog().logger);
  if (log_format.load(std::memory_order_relaxed) == LogFormat::kJson) {
    logger->log(SpdlogLevel(level), spdlog::string_view_t(message.data(), message.size()));
  } else {
    logger->log(SpdlogLevel(level), "{}: {}", NameOf(level), message);
  }
}

Status SetLogFormat(std::string_view name) {
  if (name != "text" && name != "json") {
    return InvalidArgument("unknown log format '{}', expected text or json", name);
  }
  SetLogFormat(name == "json" ? LogFormat::kJson : LogFormat::kText);
  return OkStatus();
}

void SetLogFormat(LogFormat format) { log_format.store(format, std::memory_order_relaxed); }

int DebugLevelIn(std::string_view spec, std::string_view area) {
  int level = 0;
  while (!spec.empty()) {
    const size_t comma = spec.find(',');
    const std::string_view part = spec.substr(0, comma);
    spec = comma == std::string_view::npos ? std::string_view() : spec.substr(comma + 1);
    const size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    if (name != area && name != "all") continue;
    const int value = equals == std::string_view::npos ? 1 : ParseNumber(part.substr(equals + 1));
    level = std::max(level, value);
  }
  return level;
}

int DebugLevel(std::string_view area) {
  static const char* spec = std::getenv("KILN_DEBUG");
  return spec == nullptr ? 0 : DebugLevelIn(spec, area);
}

}  // namespace kiln
