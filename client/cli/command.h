// A command of `kiln`. Its file has its flags, its registration and its run; the table in
// command_line.cc names it.
#pragma once

#include <functional>

#include "base/status.h"
#include "client/session.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace kiln::client {

class SessionFlags;

// Exit status after Ctrl-C, as shells expect it.
inline constexpr int kInterruptedExit = 130;

// The function of a command, which runs after the parse. It prints its result on stdout; the caller
// prints a returned error on stderr. Returns the exit status.
using Run = std::function<StatusOr<int>(const Session& session)>;

// Adds the description and the flags to an empty command. The returned function owns the values
// into which the flags are parsed, so it must outlive the parse.
using Registration = Run (*)(CLI::App& command, SessionFlags& session);

// Wraps a command that returns only a status. gRPC is ready when it runs.
Run Plain(std::function<Status(const Session& session)> run);

// Returns whether the option stood on the command line. Call it after the parse. A null pointer is
// an option that the command does not have.
bool IsGiven(const CLI::Option* option);

// Accepts whole numbers from 0. Without it, a negative number would be read as a huge one.
CLI::Validator NotNegative();

}  // namespace kiln::client
