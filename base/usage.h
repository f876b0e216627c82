// How programs of ours speak of their command lines (CLI11): help in plain words, and mistakes in
// one sentence.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace kiln {

inline constexpr int kUsageExit = 2;  // the exit status for a command line that is wrong

// The group of the options that most people need: a help lists it first.
inline constexpr char kMostUsed[] = "Most used";

// The help of `app`, and of the commands that are added to it afterwards, is at most 80 columns
// wide; ranges and choices stand in sentences ("1 to 64"), defaults in brackets at their ends.
void PlainHelp(CLI::App& app);

// What is wrong with the command line that `app` has just refused, and where to read on: "there is
// no flag --trails, did you mean --trials? See kiln tune --help". Without a newline.
std::string UsageError(const CLI::App& app, const CLI::ParseError& error);

// The command that was named and needs one of its own commands after it, where nothing else is
// wrong: its help answers best. Null: something else is wrong.
const CLI::App* BareCommand(const CLI::App& app, const CLI::ParseError& error);

}  // namespace kiln
