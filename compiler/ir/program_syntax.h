// The words of program text, shared by its printer and its parser.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "compiler/ir/lexer.h"
#include "compiler/ir/program.h"

namespace kiln::ir {

inline constexpr std::array kLoopKinds = {
    LoopKind::kSerial,  LoopKind::kParallel, LoopKind::kVectorized, LoopKind::kUnrolled,
    LoopKind::kVThread, LoopKind::kBlockX,   LoopKind::kBlockY,     LoopKind::kBlockZ,
    LoopKind::kCluster, LoopKind::kThreadX,  LoopKind::kThreadY,    LoopKind::kThreadZ};

inline bool StartsStatement(std::string_view word) {
  for (LoopKind kind : kLoopKinds) {
    if (LoopKindName(kind) == word) return true;
  }
  return word == "if" || word == "alloc" || word == "barrier" || word == "cluster_barrier" ||
         word == "commit" || word == "async" || word == "instruction" || word == "stage" ||
         word == "kernel";
}

// Works like NameText, and also puts the words that start a statement in backquotes. Inside
// expressions those words need no backquotes.
inline std::string ProgramName(std::string_view name) {
  return StartsStatement(name) && name != "if" ? "`" + std::string(name) + "`" : NameText(name);
}

}  // namespace kiln::ir
