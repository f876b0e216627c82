// The flags that all commands share: where jobs and records are, and how to print.
#pragma once

#include <string>
#include <utility>

#include "base/status.h"
#include "client/session.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

// Must outlive the parse, since options are parsed into it.
class SessionFlags {
 public:
  explicit SessionFlags(std::string program) { session_.program = std::move(program); }
  SessionFlags(const SessionFlags&) = delete;
  SessionFlags& operator=(const SessionFlags&) = delete;

  // Adds --scheduler, --db, --keys, --secret-file and --json.
  void AddPlace(CLI::App& command);
  // Does the same without --db, for a command that reads no records.
  void AddScheduler(CLI::App& command);
  // Adds --db and --json, for a command that works on the file itself.
  void AddDatabase(CLI::App& command);
  void AddAccess(CLI::App& command);
  void AddJson(CLI::App& command);

  // Returns the session of the flags and the environment. Call it after the parse.
  StatusOr<Session> Complete();

 private:
  void AddSchedulerAddress(CLI::App& command);
  void AddDbFile(CLI::App& command, const std::string& help);
  void ReadEnvironment();

  Session session_;
  bool db_given_ = false, scheduler_given_ = false;
};

// Sets `value` to the environment variable, if it is set.
void ReadVariable(const char* name, std::string& value);

}  // namespace kiln::client
