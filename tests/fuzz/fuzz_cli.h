// Fuzzes the command line: text files, steps, logs, task lists, flags, database files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/report.h"

namespace kiln::fuzz {

class CliFuzzer {
 public:
  // `kiln` is the program. Files are made in `folder`. A run hangs if it takes `most_s`, or
  // kMaxCpu_s of CPU time. The corpus outlives this object.
  static StatusOr<CliFuzzer> Make(std::string kiln, std::string folder, double most_s,
                                  const Corpus& corpus);

  // Runs the program once with the input of this number.
  void Run(uint64_t seed, Report& report) const;

 private:
  // The command to run, and the file that it reads.
  struct Input {
    std::string kind;
    std::vector<std::string> words;
    std::string path, bytes;
  };

  CliFuzzer(std::string kiln, std::string folder, double most_s, const Corpus& corpus)
      : kiln_(std::move(kiln)), folder_(std::move(folder)), most_s_(most_s), corpus_(&corpus) {}

  Status MakeDatabase();
  Input MakeInput(Rng& rng) const;
  Input Text(Rng& rng) const;
  Input Steps(Rng& rng) const;
  Input Log(Rng& rng) const;
  Input Tasks(Rng& rng) const;
  Input Flags(Rng& rng) const;
  Input DatabaseBytes(Rng& rng) const;
  Input DatabaseValues(Rng& rng) const;
  std::string SpoiledText(Rng& rng) const;
  std::vector<std::string> Reader(Rng& rng) const;
  std::string Path(std::string_view name) const;

  std::string kiln_, folder_;
  double most_s_;
  const Corpus* corpus_;
  // The bytes of a valid database, and the id of the job in it.
  std::string database_, job_;
};

}  // namespace kiln::fuzz
