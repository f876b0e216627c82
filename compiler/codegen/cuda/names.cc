#include "compiler/codegen/cuda/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kiln::codegen {
namespace {

// What a buffer or a loop may not be called.
// clang-format off
constexpr std::string_view kReserved[] = {
    // keywords
    "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class",
    "const", "constexpr", "continue", "default", "delete", "do", "double", "else", "enum",
    "explicit", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
    "mutable", "namespace", "new", "not", "operator", "or", "private", "protected", "public",
    "register", "return", "short", "signed", "sizeof", "static", "struct", "switch", "template",
    "this", "throw", "true", "try", "typedef", "typename", "union", "unsigned", "using", "virtual",
    "void", "volatile", "while", "xor",
    // functions of CUDA that the text calls
    "exp", "expf", "log", "logf", "sqrt", "sqrtf", "rsqrt", "rsqrtf", "tanh", "tanhf", "erf",
    "erff", "pow", "powf", "abs", "fabs", "fabsf", "floor", "floorf", "ceil", "ceilf", "rint",
    "rintf", "sin", "sinf", "cos", "cosf", "min", "max", "fminf", "fmaxf", "fmin", "fmax", "llabs",
    // functions and storage of the preamble
    "sigmoid", "maximum", "minimum", "to_int32", "to_uint32", "to_uint64", "to_int64", "floor_div", "floor_mod", "shared_memory", "copied", "copy_async", "copy_async_if",
    "commit_copies", "wait_for_copies", "in_block", "cluster_barrier", "leave_cluster",
    "load_tiles", "load_tiles_transposed", "multiply_tiles_f16", "multiply_tiles_bf16",
    "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "f16_to_float", "bf16_to_float",
    "e4m3_to_float", "e5m2_to_float", "float_to_f16", "float_to_bf16", "float_to_e4m3",
    "float_to_e5m2", "double_to_f16", "double_to_bf16", "double_to_e4m3", "double_to_e5m2", "to_odd",
    "float_bits_of",
    "swizzled", "fence_async_proxy", "start_products", "commit_products", "wait_for_products",
    "wait_for_sums", "settle", "matrix_descriptor", "multiply_warpgroup_f16", "multiply_warpgroup_bf16",
    "multiply_warpgroup_tf32", "multiply_warpgroup_s8", "multiply_warpgroup_u8",
    "multiply_warpgroup_e4m3", "multiply_warpgroup_e5m2",
    "TensorMap", "shared_address", "start_barriers", "wait_for", "release", "expect_bytes",
    "copy_box", "barrier_of_computing", "ordered_block",
    "transpose_quad", "exchange_pairs", "zip_pairs", "unzip_pairs", "pack_f16", "pack_bf16", "pack_e4m3", "pack_e5m2",
    "meet_pair", "copy_box_to_pair", "release_pair",
    "give_registers", "take_registers", "begin_turns", "wait_for_turn", "pass_turn",
    // types and variables of CUDA
    "int2", "int4", "float2", "float4", "double2", "double4", "longlong2", "ulonglong2", "uint2", "uint4",
    "longlong4", "dim3", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "main",
};
// clang-format on

}  // namespace

CudaNames::CudaNames() {
  for (const std::string_view name : kReserved) next_.emplace(name, 1);
}

std::string CudaNames::Unique(std::string_view name) {
  std::string id;
  for (char c : name) {
    const bool fits =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    id += fits ? c : '_';
  }
  if (id.empty() || (id[0] >= '0' && id[0] <= '9') || id[0] == '_') id = "v" + id;
  if (next_.try_emplace(id, 1).second) {
    given_.push_back({id, id, 0});
    return id;
  }
  for (int number = next_[id];; ++number) {
    std::string unique = fmt::format("{}_{}", id, number);
    if (!next_.try_emplace(unique, 1).second) continue;
    next_[id] = number + 1;
    given_.push_back({unique, std::move(id), number});
    return unique;
  }
}

void CudaNames::ForgetSince(Mark mark) {
  for (; given_.size() > mark; given_.pop_back()) {
    const Given& last = given_.back();
    next_.erase(last.name);
    if (last.number == 0) continue;
    int& next = next_[last.base];
    next = std::min(next, last.number);
  }
}

}  // namespace kiln::codegen
