#include "store/batch_writer.h"

#include <utility>

namespace kiln::store {

BatchWriter::~BatchWriter() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status BatchWriter::WaitUntilIdle(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return !batch_.has_value(); });
  return status_;
}

Status BatchWriter::Put(Batch batch) {
  {
    std::unique_lock lock(mutex_);
    KILN_RETURN_IF_ERROR(WaitUntilIdle(lock));
    batch_ = std::move(batch);
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_all();
  return OkStatus();
}

StatusOr<BatchWriter::Counts> BatchWriter::Finish(Batch last) {
  {
    std::unique_lock lock(mutex_);
    KILN_RETURN_IF_ERROR(WaitUntilIdle(lock));
  }
  const StatusOr<Counts> committed = Commit(last);
  std::lock_guard lock(mutex_);
  Note(committed);
  KILN_RETURN_IF_ERROR(status_);
  return counts_;
}

void BatchWriter::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return batch_.has_value() || ends_; });
    if (!batch_.has_value()) return;
    lock.unlock();
    const StatusOr<Counts> committed = Commit(*batch_);
    lock.lock();
    batch_.reset();
    Note(committed);
    changed_.notify_all();
  }
}

void BatchWriter::Note(const StatusOr<Counts>& committed) {
  if (!committed.ok()) {
    status_ = committed.status();
    return;
  }
  counts_.imported += committed->imported;
  counts_.autotvm += committed->autotvm;
  counts_.duplicates += committed->duplicates;
}

StatusOr<BatchWriter::Counts> BatchWriter::Commit(const Batch& batch) {
  Counts counts;
  if (!batch.records.empty()) {
    KILN_ASSIGN_OR_RETURN(counts.imported, store_.ImportRecords(job_id_, batch.records));
  }
  if (!batch.autotvm.empty()) {
    KILN_ASSIGN_OR_RETURN(counts.autotvm, store_.ImportAutotvmRecords(batch.autotvm));
  }
  counts.imported += counts.autotvm;
  counts.duplicates = batch.size() - counts.imported;
  return counts;
}

}  // namespace kiln::store
