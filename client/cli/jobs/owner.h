// The program that started this one and holds the other end of its standard input. It may end
// without a word, and this one ends with it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace kiln::client {

// Belongs to one thread.
class Owner {
 public:
  // There is an owner only if `input` is a pipe or a socket: a terminal, a file or /dev/null has
  // none at its other end. The descriptor stays the caller's.
  explicit Owner(int input);

  bool exists() const { return exists_; }
  // Reads what has come, without waiting. Returns true once the other end is closed, or the process
  // that started this one has ended; another process may hold the other end then. Without an owner
  // false.
  bool IsGone();
  // Returns the whole lines that were read since the last call, without their newlines.
  std::vector<std::string> TakeLines();

 private:
  int input_;
  bool exists_;
  bool closed_ = false;
  pid_t parent_;
  std::string text_;
};

}  // namespace kiln::client
