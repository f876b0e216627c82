#include "runner/buffer_cache.h"

namespace kiln::runner {

std::shared_ptr<CachedBuffer> BufferCache::Find(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->buffer;
}

void BufferCache::Insert(const std::string& key, std::shared_ptr<CachedBuffer> buffer) {
  Erase(key);
  entries_.push_front({key, std::move(buffer)});
  by_key_[key] = entries_.begin();
  bytes_ += BytesOf(entries_.front());
  while (bytes_ > max_bytes_ && entries_.size() > 1) Erase(std::string(entries_.back().key));
}

void BufferCache::Erase(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  bytes_ -= BytesOf(*found->second);
  entries_.erase(found->second);
  by_key_.erase(found);
}

}  // namespace kiln::runner
