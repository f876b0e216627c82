// Buffers of recent workloads (inputs, reference outputs), least recently used out first. Bounded
// by bytes. Used by one thread. A buffer that is still in use stays alive until its user lets go of
// it.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "runner/device.h"

namespace kiln::runner {

struct CachedBuffer {
  std::unique_ptr<Buffer> buffer;
  uint64_t checksum = 0;  // when it was filled
};

class BufferCache {
 public:
  explicit BufferCache(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Null when there is none; else it is now the most recently used.
  std::shared_ptr<CachedBuffer> Find(const std::string& key);
  // Drops others until all fit; one that is larger than the whole cache is kept alone until the
  // next.
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
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace kiln::runner
