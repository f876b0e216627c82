// Tests that kill -9 at any moment loses nothing that was acknowledged, and leaves no half of a
// batch.
#include <unistd.h>

#include <random>
#include <set>
#include <sstream>

#include "absl/time/clock.h"
#include "base/process/subprocess.h"
#include "base/status_testing.h"
#include "store/folder_testing.h"
#include "store/record_testing.h"
#include "store/sqlite_store.h"

namespace kiln::store {
namespace {

// Kills the child `after` its first acknowledgement, or `after` its start if `from_start`: then it
// may still be opening the database. Returns the child's acknowledgements.
StatusOr<std::string> RunAndKill(const std::string& path, int batch_size, bool from_start,
                                 absl::Duration after) {
  SubprocessOptions options;
  options.argv = {"store/crash_writer", path, "j", fmt::format("{}", batch_size)};
  options.output = SubprocessOptions::Stream::kPipe;
  KILN_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Spawn(options));
  std::string output;
  char buffer[65536];
  const auto read_some = [&] {
    const ssize_t got = read(child.output().get(), buffer, sizeof(buffer));
    if (got > 0) output.append(buffer, got);
    return got > 0;
  };
  if (!from_start && !read_some()) return Internal("the writer ended before its first record");
  absl::SleepFor(after);
  child.Kill();
  while (read_some()) {
  }
  KILN_ASSIGN_OR_RETURN(const ExitStatus exit, child.Wait());
  if (exit.signal != SIGKILL) return Internal("the writer ended by itself: {}", exit.ToString());
  return output;
}

TEST(Crash, EveryAcknowledgedRecordIsThereAfterKill) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 rng(seed);
  TestFolder folder;
  const std::string path = folder.File("kiln.db");
  std::set<uint32_t> acknowledged;
  constexpr int kBatch = 3;
  for (int round = 0; round < 40; ++round) {
    const bool from_start = round % 2 == 0;
    const absl::Duration after = absl::Microseconds(rng() % (from_start ? 20'000 : 60'000));
    ASSERT_OK_AND_ASSIGN(const std::string output, RunAndKill(path, kBatch, from_start, after));
    std::istringstream lines(output);
    for (uint32_t trial; lines >> trial;) acknowledged.insert(trial);

    ASSERT_OK_AND_ASSIGN(auto store, OpenSqliteStore(path));
    ASSERT_OK_AND_ASSIGN(const std::vector<Record> records, store->RecordsOfJob("j", 0));
    std::set<uint32_t> stored;
    for (const Record& record : records) {
      stored.insert(record.trial);
      ASSERT_EQ(record.message.size(), 3000);
    }
    for (uint32_t trial : acknowledged) ASSERT_TRUE(stored.contains(trial)) << "trial " << trial;
    EXPECT_EQ(records.size() % kBatch, 0) << "half of a batch is there";
    // Only the batch whose acknowledgement was cut off may be there besides.
    EXPECT_LE(stored.size(), acknowledged.size() + kBatch * (round + 1));
  }
  EXPECT_GT(acknowledged.size(), 40u);
}

}  // namespace
}  // namespace kiln::store
