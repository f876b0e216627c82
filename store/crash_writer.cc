// The process that crash_test kills. Adds records to a job and writes the trial number of each to
// stdout, a line each, once the record is committed. It continues until it is killed. Usage:
// crash_writer DATABASE JOB BATCH
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/process/subprocess.h"
#include "store/record_testing.h"
#include "store/sqlite_store.h"

namespace kiln::store {
namespace {

Status Write(const std::string& path, const std::string& job_id, uint32_t batch_size) {
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenSqliteStore(path));
  JobRow job;
  job.id = job_id;
  if (Status status = store->AddJob(job); status.code() != StatusCode::kAlreadyExists) {
    KILN_RETURN_IF_ERROR(status);
  }
  KILN_ASSIGN_OR_RETURN(const TrialCounts counts, store->CountTrials(job_id));
  for (uint32_t trial = counts.next_trial;; trial += batch_size) {
    std::vector<Record> batch;
    std::string acknowledged;
    for (uint32_t i = 0; i < batch_size; ++i) {
      batch.push_back(TestRecord(job_id, trial + i));
      // The message is large enough that a commit spans several pages, and that checkpoints happen.
      batch.back().message = std::string(3000, 'a' + trial % 26);
      acknowledged += fmt::format("{}\n", trial + i);
    }
    KILN_RETURN_IF_ERROR(store->AddRecords(batch).status());
    const ssize_t written = write(STDOUT_FILENO, acknowledged.data(), acknowledged.size());
    if (written != static_cast<ssize_t>(acknowledged.size())) return Internal("short write");
  }
}

}  // namespace
}  // namespace kiln::store

int main(int argc, char** argv) {
  kiln::DieWithParent();
  if (argc != 4) return 2;
  const kiln::Status status =
      kiln::store::Write(argv[1], argv[2], std::strtoul(argv[3], nullptr, 10));
  fmt::print(stderr, "{}\n", kiln::Message(status));
  return 1;
}
