// A pool of read-only connections to one file, lent to threads one at a time. In WAL mode readers
// wait neither for the writer nor for each other.
//
// Thread-safe. Connections are opened when they are first needed and kept. A lease must not outlive
// its pool.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "store/sqlite.h"

namespace kiln::store::sqlite {

class ConnectionPool {
 public:
  class Lease {
   public:
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (database_ != nullptr) pool_->GiveBack(std::move(database_));
    }

    Database& operator*() const { return *database_; }
    Database* operator->() const { return database_.get(); }

   private:
    friend class ConnectionPool;
    Lease(ConnectionPool* pool, std::unique_ptr<Database> database)
        : pool_(pool), database_(std::move(database)) {}

    ConnectionPool* pool_;
    std::unique_ptr<Database> database_;
  };

  // `options` are those of the connection that made the file.
  ConnectionPool(std::string path, int32_t application_id, const OpenOptions& options, size_t most);

  // Waits while all connections are lent. Errors of the first use are those of Database::Open.
  StatusOr<Lease> Take();

 private:
  StatusOr<std::unique_ptr<Database>> OpenReader() const;
  void GiveBack(std::unique_ptr<Database> database);

  const std::string path_;
  const int32_t application_id_;
  const OpenOptions options_;
  const size_t most_;

  std::mutex mutex_;
  std::condition_variable given_back_;
  std::vector<std::unique_ptr<Database>> idle_;
  size_t open_ = 0;
};

// All reads within one transaction see the same state of the file.
class ReadTransaction {
 public:
  static StatusOr<ReadTransaction> Begin(Database& database);
  ReadTransaction(ReadTransaction&& other) noexcept
      : database_(std::exchange(other.database_, nullptr)) {}
  ReadTransaction& operator=(ReadTransaction&&) = delete;
  ~ReadTransaction();

 private:
  explicit ReadTransaction(Database* database) : database_(database) {}
  Database* database_;
};

}  // namespace kiln::store::sqlite
