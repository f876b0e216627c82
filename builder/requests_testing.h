// Requests that the tests of this folder share.
#pragma once

#include <string>

#include "proto/builder.pb.h"

namespace kiln::builder {

inline constexpr char kMatmulDag[] =
    "input A: float32[16, 24]\n"
    "input B: float32[24, 8]\n"
    "C[i: 16, j: 8] = sum(k: 24) A[i, k] * B[k, j]\n";

inline v1::BuildRequest MatmulRequest(const std::string& target, const std::string& steps = "[]") {
  v1::BuildRequest request;
  request.set_dag(kMatmulDag);
  request.set_target(target);
  request.set_steps(steps);
  return request;
}

inline v1::BuildRequest FaultRequest(v1::Fault fault, uint32_t timeout_ms = 0) {
  v1::BuildRequest request = MatmulRequest("llvm");
  request.set_fault(fault);
  request.set_timeout_ms(timeout_ms);
  return request;
}

// Returns steps that split the rows into tiles of `factor`. Each factor gives another program.
inline std::string SplitRows(int factor) {
  return "[[\"SP\", 2, 0, 16, [" + std::to_string(factor) + "], 1]]";
}

}  // namespace kiln::builder
