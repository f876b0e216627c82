// Commits batches of imported records, one after the other, in a thread of its own: the next batch
// is read from its log meanwhile.
//
// A batch is its maker's until it is put, then the writer's; no record is ever of both. The store is
// called by both threads: the maker may read of it what it knows of keys. Two batches are held at a
// time: the one that is committed, and the one that is made.
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
    size_t bytes = 0;  // of the lines of both

    int64_t size() const { return static_cast<int64_t>(records.size() + autotvm.size()); }
  };
  // Of all batches.
  struct Counts {
    int64_t imported = 0;  // of both kinds
    int64_t autotvm = 0;   // of these, so many are of autotvm
    int64_t duplicates = 0;
  };

  // Records go into `job_id`. `store` outlives this.
  BatchWriter(Store& store, std::string_view job_id) : store_(store), job_id_(job_id) {}
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;
  // Commits what was put.
  ~BatchWriter();

  // Waits until the batch before is committed. From the first error of the store on
  // each call returns it, and nothing more is committed.
  Status Put(Batch batch);
  // Commits the last one, after all others.
  StatusOr<Counts> Finish(Batch last);

 private:
  void Run();
  StatusOr<Counts> Commit(const Batch& batch);
  void Note(const StatusOr<Counts>& committed);
  Status WaitUntilIdle(std::unique_lock<std::mutex>& lock);

  Store& store_;
  const std::string job_id_;
  std::mutex mutex_;  // of all below but the thread
  std::condition_variable changed_;
  std::optional<Batch> batch_;  // has a value until it is committed
  bool ends_ = false;
  Status status_;
  Counts counts_;
  std::thread thread_;  // from the first Put on
};

}  // namespace kiln::store
