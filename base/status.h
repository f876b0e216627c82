// Errors. Every function that can refuse returns Status or StatusOr; nothing throws across our
// functions.
//
// Three kinds of failure, never mixed:
//   wrong input, illegal step   -> Status: what was found, what was expected, what to do
//   a bug in Kiln               -> KILN_CHECK: prints the condition and the message, aborts
//   a trial that failed         -> not an error: a result with an error kind (proto/trial.proto)
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kiln {

using absl::OkStatus;
using absl::Status;
using absl::StatusCode;
using absl::StatusOr;

template <typename... Args>
Status MakeStatus(StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

#define KILN_DEFINE_STATUS(Name)                                                 \
  template <typename... Args>                                                    \
  Status Name(fmt::format_string<Args...> format, Args&&... args) {              \
    return MakeStatus(StatusCode::k##Name, format, std::forward<Args>(args)...); \
  }
KILN_DEFINE_STATUS(InvalidArgument)
KILN_DEFINE_STATUS(NotFound)
KILN_DEFINE_STATUS(AlreadyExists)
KILN_DEFINE_STATUS(FailedPrecondition)
KILN_DEFINE_STATUS(ResourceExhausted)
KILN_DEFINE_STATUS(Unavailable)
KILN_DEFINE_STATUS(Unimplemented)
KILN_DEFINE_STATUS(DeadlineExceeded)
KILN_DEFINE_STATUS(Internal)
KILN_DEFINE_STATUS(Cancelled)
KILN_DEFINE_STATUS(OutOfRange)
KILN_DEFINE_STATUS(DataLoss)
#undef KILN_DEFINE_STATUS

// Returns the message as std::string_view (Debian's abseil has a string_view of its own).
inline std::string_view Message(const Status& status) {
  return {status.message().data(), status.message().size()};
}

// Returns "context: message" with the same code. OK stays OK.
inline Status Annotate(const Status& status, std::string_view context) {
  if (status.ok()) return status;
  return Status(status.code(), fmt::format("{}: {}", context, Message(status)));
}

namespace internal {
[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition,
                                     const std::string& message) {
  std::fprintf(stderr, "%s:%d: kiln bug: check failed: %s %s\n", file, line, condition,
               message.c_str());
  std::abort();
}
inline std::string CheckMessage() { return {}; }
template <typename... Args>
std::string CheckMessage(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}
}  // namespace internal

// KILN_CHECK(condition[, fmt, args...]) aborts and prints the state if an invariant of Kiln does
// not hold.
#define KILN_CHECK(condition, ...)                                                \
  do {                                                                            \
    if (__builtin_expect(!(condition), 0)) {                                      \
      ::kiln::internal::CheckFailed(__FILE__, __LINE__, #condition,               \
                                    ::kiln::internal::CheckMessage(__VA_ARGS__)); \
    }                                                                             \
  } while (0)

#define KILN_CONCAT_INNER(a, b) a##b
#define KILN_CONCAT(a, b) KILN_CONCAT_INNER(a, b)

#define KILN_RETURN_IF_ERROR(expr)                                  \
  do {                                                              \
    ::kiln::Status kiln_status = (expr);                            \
    if (__builtin_expect(!kiln_status.ok(), 0)) return kiln_status; \
  } while (0)

// Use: KILN_ASSIGN_OR_RETURN(auto x, Compute());
#define KILN_ASSIGN_OR_RETURN(lhs, expr) \
  KILN_ASSIGN_OR_RETURN_INNER(KILN_CONCAT(kiln_or_, __LINE__), lhs, expr)
#define KILN_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr)                   \
  auto tmp = (expr);                                                  \
  if (__builtin_expect(!tmp.ok(), 0)) return std::move(tmp).status(); \
  lhs = std::move(tmp).value()

}  // namespace kiln
