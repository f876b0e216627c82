#include "store/connection_pool.h"

namespace kiln::store::sqlite {

ConnectionPool::ConnectionPool(std::string path, int32_t application_id, const OpenOptions& options,
                               size_t most)
    : path_(std::move(path)), application_id_(application_id), options_(options), most_(most) {}

StatusOr<ConnectionPool::Lease> ConnectionPool::Take() {
  {
    std::unique_lock lock(mutex_);
    given_back_.wait(lock, [this] { return !idle_.empty() || open_ < most_; });
    if (!idle_.empty()) {
      Lease lease(this, std::move(idle_.back()));
      idle_.pop_back();
      return lease;
    }
    ++open_;
  }
  StatusOr<std::unique_ptr<Database>> database = OpenReader();
  if (database.ok()) return Lease(this, *std::move(database));
  std::lock_guard lock(mutex_);
  --open_;
  given_back_.notify_one();
  return database.status();
}

StatusOr<std::unique_ptr<Database>> ConnectionPool::OpenReader() const {
  OpenOptions options = options_;
  // A file that has vanished is not made anew.
  if (options.mode == OpenOptions::Mode::kCreate) options.mode = OpenOptions::Mode::kReadWrite;
  KILN_ASSIGN_OR_RETURN(auto database, Database::Open(path_, application_id_, options));
  KILN_RETURN_IF_ERROR(database->Execute("PRAGMA query_only=ON; PRAGMA cache_size=-16000"));
  return database;
}

void ConnectionPool::GiveBack(std::unique_ptr<Database> database) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(database));
  given_back_.notify_one();
}

StatusOr<ReadTransaction> ReadTransaction::Begin(Database& database) {
  KILN_ASSIGN_OR_RETURN(Statement begin, database.Prepare("BEGIN"));
  KILN_RETURN_IF_ERROR(begin.Run());
  return ReadTransaction(&database);
}

ReadTransaction::~ReadTransaction() {
  if (database_ == nullptr) return;
  // COMMIT cannot fail, since nothing was written.
  auto end = database_->Prepare("COMMIT");
  if (end.ok()) end->Run().IgnoreError();
}

}  // namespace kiln::store::sqlite
