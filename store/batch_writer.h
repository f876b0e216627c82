// Commits batches of imported records, one after the other, in a thread of its own, while the next
// batch is read from its log.
//
// A batch belongs to the maker until Put(), then to the writer; the two never share a record. Both
// threads call the store: the maker may ask it about workload keys. Two batches are held at a time:
// the batch that is being committed and the batch that is being made.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace kiln::store {

class BatchWriter {
 public:
  struct Batch {
    std::vector<Record> records = {};
    std::vector<AutotvmRecord> autotvm = {};
    // Length of the lines of both kinds of records.
    size_t bytes = 0;

    int64_t size() const { return static_cast<int64_t>(records.size() + autotvm.size()); }
  };
  // Sums over all batches.
  struct Counts {
    // Records of both kinds.
    int64_t imported = 0;
    // Records of autotvm; `imported` includes them.
    int64_t autotvm = 0;
    int64_t duplicates = 0;
  };

  // Records go into `job_id`. `store` outlives this.
  BatchWriter(Store& store, std::string_view job_id) : store_(store), job_id_(job_id) {}
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;
  // Commits the batch that was put last.
  ~BatchWriter();

  // Waits until the batch before is committed. After the first error of the store each call returns
  // that error, and nothing more is committed.
  Status Put(Batch batch);
  // Commits the last batch, after all others.
  StatusOr<Counts> Finish(Batch last);

 private:
  void Run();
  StatusOr<Counts> Commit(const Batch& batch);
  void Note(const StatusOr<Counts>& committed);
  Status WaitUntilIdle(std::unique_lock<std::mutex>& lock);

  Store& store_;
  const std::string job_id_;
  // Guards all members below but the thread.
  std::mutex mutex_;
  std::condition_variable changed_;
  // Has a value until the batch is committed.
  std::optional<Batch> batch_;
  bool ends_ = false;
  Status status_;
  Counts counts_;
  // Started by the first Put().
  std::thread thread_;
};

}  // namespace kiln::store
