// A cache of buffers of recent workloads (inputs and reference outputs), bounded by bytes. The
// least recently used go first. Used by one thread. A buffer that is still in use stays alive until
// its user lets go of it.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "runner/device.h"

namespace kiln::runner {

struct CachedBuffer {
  std::unique_ptr<Buffer> buffer;
  // Checksum of the buffer when it was filled.
  uint64_t checksum = 0;
};

class BufferCache {
 public:
  explicit BufferCache(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns the buffer and makes it the most recently used; null if there is none.
  std::shared_ptr<CachedBuffer> Find(const std::string& key);
  // Drops other buffers until all fit. A buffer that is larger than the whole cache is kept alone
  // until the next Insert.
  void Insert(const std::string& key, std::shared_ptr<CachedBuffer> buffer);
  void Erase(const std::string& key);

  int64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<CachedBuffer> buffer;
  };
  static int64_t BytesOf(const Entry& entry) { return entry.buffer->buffer->argument().bytes; }

  const int64_t max_bytes_;
  int64_t bytes_ = 0;
  // Most recently used first.
  std::list<Entry> entries_;
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace kiln::runner
