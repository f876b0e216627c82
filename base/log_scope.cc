#include "base/log_scope.h"

namespace kiln {
namespace {

LogIds& OfThread() {
  thread_local LogIds ids;
  return ids;
}

}  // namespace

LogScope::LogScope(const LogIds& ids) : outer_(OfThread()) { OfThread() = ids; }
LogScope::~LogScope() { OfThread() = outer_; }
const LogIds& LogScope::Current() { return OfThread(); }

}  // namespace kiln
