// A folder of keys as it is now: a renewal or a new list of revocations holds without a restart.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/keys/key_folder.h"
#include "base/status.h"

namespace kiln {

// Thread-safe. Costs nothing while nobody asks: there is no thread.
class LiveKeys {
 public:
  // The files are looked at when Now is called, at most this often.
  static constexpr absl::Duration kLookEvery = absl::Seconds(1);

  // Reads the folder (ReadKeyFolder). `clock` outlives the object.
  static StatusOr<std::shared_ptr<LiveKeys>> Open(std::string path, Clock& clock);

  // Returns the folder as it was last good. Files that have changed are read again; while they do
  // not belong together, for instance because they are being copied, the state before holds and the
  // log says why. Key and certificate change together or not at all. A list of revocations gives
  // way to a newer one of its authority alone. Usually costs a lock; once in kLookEvery also three
  // system calls.
  std::shared_ptr<const KeyFolder> Now();

  // Takes a list of revocations that another process of the farm has handed on, if it is this
  // authority's and newer than the one that holds. It holds at once, and is written into the
  // folder, unless a newer one is there. If the folder cannot be written, the list holds in this
  // process alone: the log says so, and the next call tries again. Everything else is left, and the
  // log says why.
  void TakeRevocations(std::string_view pem);

  const std::string& path() const { return path_; }

 private:
  // Tells a file from the one that stood there before.
  struct Stamp {
    uint64_t inode = 0;
    int64_t bytes = -1;
    int64_t seconds = 0;
    int64_t nanos = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  using Stamps = std::array<Stamp, 3>;

  LiveKeys(std::string path, Clock& clock) : path_(std::move(path)), clock_(clock) {}

  Stamps Look() const;
  Status Read(const Stamps& stamps);
  Status Take(std::string_view pem);
  void Adopt(const Certificate& authority, Revocations list);
  Status Save();
  void KeepNewerRevocations(KeyFolder& folder) const;

  const std::string path_;
  Clock& clock_;
  std::mutex mutex_;
  // All of these are guarded by mutex_.
  std::shared_ptr<const KeyFolder> good_;
  // Stamps of the files that good_ was read from.
  Stamps stamps_;
  // The number of the folder's list of revocations. That of good_ is larger if it is not written.
  int64_t written_ = -1;
  double next_look_s_ = 0;
  std::string last_problem_;
  std::string last_refusal_;
};

}  // namespace kiln
