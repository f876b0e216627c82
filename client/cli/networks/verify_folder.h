// Checks a folder of compiled files and measure logs on this machine, for CI: every one is loaded,
// run, compared with its reference and timed, each in a process of its own, so that one that
// crashes or hangs is a row of the table and no more.
//
// Owns nothing. One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/process/subprocess.h"
#include "base/status.h"

namespace kiln::client {

struct VerifyFolderOptions {
  // Words for `kiln verify FILE` and for `kiln bench FILE`, behind the file.
  std::vector<std::string> verify_words = {};
  std::vector<std::string> bench_words = {};
  // Slower than the file says by more is a failure; percent, 0: no time is.
  double most_slower = 30;
  // Limit of each process.
  absl::Duration patience = absl::Minutes(10);
};

// Runs this program with the words after its name, for so long at most, and returns how it ended
// and what it printed. DeadlineExceeded: it was killed.
using RunProgram =
    std::function<StatusOr<RunResult>(const std::vector<std::string>& words, absl::Duration)>;

// A file of the folder, and the outcome of its check.
struct VerifiedFile {
  enum class Verdict { kRight, kWrong, kSlower, kNotChecked };

  std::string path;
  Verdict verdict = Verdict::kNotChecked;
  // Why it is not right: a sentence; "" if it is.
  std::string problem = {};
  // Times of those kernels or records of which the file says a time; 0: it says none.
  double here_s = 0;
  double file_s = 0;

  // Returns here / file; 0 if either is not known.
  double Ratio() const { return file_s > 0 && here_s > 0 ? here_s / file_s : 0; }
};

// Returns the compiled files (*.kiln) and measure logs (*.json, *.jsonl, *.log) below the folder,
// in the order of their paths. NotFound: there are none. Links to folders are not followed.
StatusOr<std::vector<std::string>> FilesToVerify(const std::string& folder);

VerifiedFile VerifyFile(const std::string& path, const VerifyFolderOptions& options,
                        const RunProgram& run);

// Returns 0 if all are right, 1 if one is wrong or slower, 2 if one could not be checked.
int ExitStatusOf(const std::vector<VerifiedFile>& files);

// Returns a table of the files, and a line of counts.
std::string VerifiedTable(const std::vector<VerifiedFile>& files, int columns);
// Returns an object in one line.
std::string VerifiedJson(const VerifiedFile& file);

}  // namespace kiln::client
