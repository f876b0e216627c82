// Inputs of the command line: text files, steps, logs, task lists, flags, database files.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "tests/fuzz/findings.h"

namespace kiln::fuzz {

class CliFuzzer {
 public:
  // `kiln`: the program. Files are made in `folder`.
  static StatusOr<CliFuzzer> Make(std::string kiln, std::string folder);

  // One run of the program with the input of this number.
  void Run(uint64_t seed, Findings& findings) const;

 private:
  CliFuzzer(std::string kiln, std::string folder)
      : kiln_(std::move(kiln)), folder_(std::move(folder)) {}

  std::string kiln_, folder_;
  std::string database_;  // the bytes of a valid one
};

}  // namespace kiln::fuzz
