// Help and error messages for the command lines (CLI11) of our programs: help in plain words, and
// mistakes in one sentence.
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace kiln {

// Exit status for a wrong command line.
inline constexpr int kUsageExit = 2;

// Group of the options that most people need. A help lists it first.
inline constexpr char kMostUsed[] = "Most used";

// Makes the help of `app`, and of the commands that are added to it afterwards, at most 80 columns
// wide. Ranges and choices stand in sentences ("1 to 64"), defaults in brackets at their ends.
void PlainHelp(CLI::App& app);

// The values that an option takes. The type is CLI11's: "INT", "UINT", "FLOAT", "TEXT", or a noun
// for users. The check is in words, "1 to 64", or empty.
struct OptionValues {
  std::string type;
  std::string check;
};
OptionValues ValuesOf(const CLI::Option& option);

// Returns the error message for a command line that `app` has refused, and where to read on: "there
// is no flag --trails, did you mean --trials? See kiln tune --help". It has no newline.
std::string UsageError(const CLI::App& app, const CLI::ParseError& error);

// Returns the command that was named without one of its own commands after it, if nothing else is
// wrong: its help is the best answer. Null: something else is wrong.
const CLI::App* BareCommand(const CLI::App& app, const CLI::ParseError& error);

}  // namespace kiln
