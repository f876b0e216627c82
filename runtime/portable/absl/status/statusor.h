// The part of absl::StatusOr that Kiln uses, as a replacement; see status.h.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

namespace absl {

template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr() : status_(StatusCode::kUnknown, "") {}
  StatusOr(Status status) : status_(std::move(status)) {}  // NOLINT: implicit, as absl's; not OK
  template <typename U = T>
    requires(std::is_convertible_v<U &&, T> && !std::is_same_v<std::decay_t<U>, Status> &&
             !std::is_same_v<std::decay_t<U>, StatusOr>)
  StatusOr(U&& value) : value_(std::forward<U>(value)) {}  // NOLINT: implicit, as absl's
  template <typename U>
    requires(std::is_convertible_v<U &&, T> && !std::is_same_v<U, T>)
  StatusOr(StatusOr<U>&& other) : status_(other.status()) {  // NOLINT: implicit, as absl's
    if (other.ok()) value_ = std::move(*other);
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace absl
