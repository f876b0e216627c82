// The command line of `kiln choice`.
#pragma once

#include <string>

#include "client/cli/commands.h"
#include "client/cli/flag_table.h"

namespace kiln::client {

// Must outlive the parse and the run, and so must `table`.
class ChoiceFlagTable {
 public:
  explicit ChoiceFlagTable(FlagTable& table) : flag_table_(table) {}
  ChoiceFlagTable(const ChoiceFlagTable&) = delete;
  ChoiceFlagTable& operator=(const ChoiceFlagTable&) = delete;

  void AddTo(CLI::App& app);

 private:
  void AddQuery(CLI::App& choice);
  void AddPin(CLI::App& choice);
  void AddUnpin(CLI::App& choice);
  void AddList(CLI::App& choice);

  FlagTable& flag_table_;
  ChoiceFlags queried_;
  // Used by pin and unpin.
  SubjectFlags subject_;
  std::string schedule_;
};

}  // namespace kiln::client
