// LLVM IR as text, for tests of passes.
#pragma once

#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>

#include <memory>
#include <string>

namespace kiln::codegen {

// Parses `functions` with the metadata !1 and !2, alias scopes of two buffers. If they do not
// parse, returns null, and the test has failed.
inline std::unique_ptr<llvm::Module> ParseWithScopes(const std::string& functions,
                                                     llvm::LLVMContext& context) {
  const std::string text = functions +
                           "!0 = distinct !{!0}\n"
                           "!1 = !{!3}\n!2 = !{!4}\n"
                           "!3 = distinct !{!3, !0}\n!4 = distinct !{!4, !0}\n";
  llvm::SMDiagnostic error;
  auto module = llvm::parseAssemblyString(text, error, context);
  if (module == nullptr) {
    ADD_FAILURE() << error.getMessage().str() << " in line " << error.getLineNo();
  }
  return module;
}

}  // namespace kiln::codegen
