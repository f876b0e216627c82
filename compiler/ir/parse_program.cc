#include <map>

#include "compiler/ir/program_syntax.h"
#include "compiler/ir/program_text.h"
#include "compiler/ir/text.h"

namespace kiln::ir {
namespace {

constexpr int kMaxNesting = 200;
constexpr int64_t kMaxExtent = int64_t{1} << 46;

class Parser {
 public:
  explicit Parser(TokenStream& tokens) : tokens_(tokens) {
    program_.pool = std::make_shared<ExprPool>();
    scope_.var = [this](std::string_view name) -> Expr {
      const auto it = vars_.find(name);
      return it == vars_.end() ? nullptr : program_.pool->Var(it->second);
    };
    scope_.slot = [this](std::string_view name) -> std::optional<ExprScope::Slot> {
      const auto it = slots_.find(name);
      if (it == slots_.end()) return std::nullopt;
      const Buffer& buffer = program_.buffers[it->second];
      return ExprScope::Slot{it->second, buffer.type, static_cast<int>(buffer.shape.size())};
    };
  }

  StatusOr<Program> Parse() {
    KILN_RETURN_IF_ERROR(tokens_.ExpectWord("program"));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("("));
    while (!tokens_.TakeSymbol(")")) {
      KILN_RETURN_IF_ERROR(ParseDeclaration(true).status());
      if (tokens_.Peek().is_symbol(")")) continue;
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(",", "or ')' after the buffer"));
    }
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("{"));
    while (tokens_.TakeWord("stage")) KILN_RETURN_IF_ERROR(ParseStage());
    while (tokens_.TakeWord("kernel")) KILN_RETURN_IF_ERROR(ParseKernel());
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("}", "or a kernel"));
    KILN_RETURN_IF_ERROR(tokens_.ExpectEnd());
    const Status status = Verify(program_);
    if (!status.ok()) return InvalidArgument("the program is not valid: {}", Message(status));
    return std::move(program_);
  }

 private:
  ExprPool& pool() { return *program_.pool; }

  // Parses `name: scope type[shape] below N packed of [shape] by [axis: step, ...]`.
  StatusOr<int32_t> ParseDeclaration(bool is_argument) {
    Buffer buffer;
    const Token& name = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(buffer.name, tokens_.ExpectName("the name of a buffer"));
    if (slots_.contains(buffer.name)) {
      return TokenStream::ErrorAt(name,
                                  fmt::format("a buffer named '{}' exists already", buffer.name));
    }
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(":", "after the name"));
    KILN_ASSIGN_OR_RETURN(buffer.scope, ParseScope(is_argument));
    const Token& type = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(const std::string type_name, tokens_.ExpectName("a type"));
    const StatusOr<Type> parsed_type = ParseType(type_name);
    if (!parsed_type.ok()) return TokenStream::ErrorAt(type, Message(parsed_type.status()));
    buffer.type = *parsed_type;
    KILN_ASSIGN_OR_RETURN(buffer.shape, ParseShape());
    if (tokens_.TakeWord("below")) {
      KILN_ASSIGN_OR_RETURN(buffer.index_limit, tokens_.ExpectInt("an index limit", 1, INT64_MAX));
    }
    if (tokens_.TakeWord("packed")) {
      KILN_ASSIGN_OR_RETURN(buffer.packing, ParsePacking(buffer.shape));
    }
    const auto slot = static_cast<int32_t>(program_.buffers.size());
    slots_.emplace(buffer.name, slot);
    program_.buffers.push_back(std::move(buffer));
    return slot;
  }

  StatusOr<Scope> ParseScope(bool is_argument) {
    for (Scope scope : {Scope::kInput, Scope::kOutput, Scope::kWorkspace, Scope::kShared,
                        Scope::kCluster, Scope::kLocal}) {
      if ((scope < Scope::kShared) == is_argument && tokens_.TakeWord(ScopeName(scope)))
        return scope;
    }
    return tokens_.Expected(is_argument ? "'input', 'output' or 'workspace'"
                                        : "'shared', 'cluster' or 'local'");
  }

  StatusOr<std::vector<int64_t>> ParseShape() {
    std::vector<int64_t> shape;
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("[", "before the shape"));
    if (tokens_.TakeSymbol("]")) return shape;
    do {
      KILN_ASSIGN_OR_RETURN(const int64_t extent, tokens_.ExpectInt("an extent", 1, kMaxExtent));
      shape.push_back(extent);
    } while (tokens_.TakeSymbol(","));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("]", "after the shape"));
    return shape;
  }

  // Begins behind "packed". Takes an axis and a step for each dimension of the packed array.
  StatusOr<Packing> ParsePacking(const std::vector<int64_t>& packed) {
    Packing packing;
    KILN_RETURN_IF_ERROR(tokens_.ExpectWord("of"));
    KILN_ASSIGN_OR_RETURN(packing.shape, ParseShape());
    KILN_RETURN_IF_ERROR(tokens_.ExpectWord("by"));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("[", "before the steps"));
    for (const int64_t extent : packed) {
      if (!packing.dims.empty())
        KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(",", "before the next step"));
      PackedDim dim{.extent = extent};
      KILN_ASSIGN_OR_RETURN(const int64_t axis, tokens_.ExpectInt("an axis", 0, INT32_MAX));
      dim.axis = static_cast<int32_t>(axis);
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(":", "after the axis"));
      KILN_ASSIGN_OR_RETURN(dim.step, tokens_.ExpectInt("a step", 1, kMaxExtent));
      packing.dims.push_back(dim);
    }
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("]", "after the steps"));
    return packing;
  }

  Status ParseHints(HintPlace place, Hints& hints) {
    for (const HintRow& row : kHints) {
      if (row.place != place || !tokens_.TakeWord(row.word)) continue;
      KILN_ASSIGN_OR_RETURN(const int64_t value,
                            tokens_.ExpectInt("the hint's value", 1, row.most));
      hints[row.hint] = static_cast<int32_t>(value);
    }
    return OkStatus();
  }

  Status ParseStage() {
    ProgramStage stage;
    KILN_ASSIGN_OR_RETURN(stage.name, tokens_.ExpectName("the name of a stage"));
    KILN_RETURN_IF_ERROR(ParseHints(HintPlace::kStage, stage.hints));
    const auto number = static_cast<int32_t>(program_.stages.size());
    const auto [it, is_new] = stages_.emplace(stage.name, number);
    if (!is_new) it->second = -1;
    program_.stages.push_back(std::move(stage));
    return OkStatus();
  }

  Status ParseSizes(std::string_view what, std::array<int64_t, 3>& sizes) {
    if (!tokens_.TakeWord(what)) return OkStatus();
    const Token& token = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> parsed, ParseShape());
    if (parsed.size() != 3)
      return TokenStream::ErrorAt(token, fmt::format("expected 3 sizes, found {}", parsed.size()));
    std::copy(parsed.begin(), parsed.end(), sizes.begin());
    return OkStatus();
  }

  Status ParseKernel() {
    Kernel kernel;
    KILN_ASSIGN_OR_RETURN(kernel.name, tokens_.ExpectName("the name of a kernel"));
    KILN_RETURN_IF_ERROR(ParseSizes("grid", kernel.grid));
    KILN_RETURN_IF_ERROR(ParseSizes("block", kernel.block));
    if (tokens_.TakeWord("cluster")) {
      KILN_ASSIGN_OR_RETURN(kernel.cluster, tokens_.ExpectInt("a number of blocks", 1, kMaxExtent));
    }
    KILN_RETURN_IF_ERROR(ParseHints(HintPlace::kKernel, kernel.hints));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("{", "before the kernel's statements"));
    KILN_ASSIGN_OR_RETURN(kernel.body, ParseBlock());
    program_.kernels.push_back(std::move(kernel));
    return OkStatus();
  }

  // Begins behind the '{' and takes the '}'.
  StatusOr<Stmt> ParseBlock() {
    if (nesting_ >= kMaxNesting) {
      return TokenStream::ErrorAt(
          tokens_.Peek(), fmt::format("statements nest deeper than {} levels", kMaxNesting));
    }
    ++nesting_;
    std::vector<Stmt> statements;
    while (!tokens_.TakeSymbol("}")) {
      bool is_rest = false;
      KILN_ASSIGN_OR_RETURN(const Stmt s, ParseStatement(is_rest));
      statements.push_back(s);
      if (is_rest) break;
    }
    --nesting_;
    return MakeSeq(pool(), statements);
  }

  // is_rest is set if the statement was an alloc for the rest of the block. Its '}' is then taken.
  StatusOr<Stmt> ParseStatement(bool& is_rest) {
    if (tokens_.TakeWord("if")) return ParseIf();
    if (tokens_.TakeWord("alloc")) return ParseAlloc(is_rest);
    if (tokens_.TakeWord("barrier")) return ParseBarrier();
    if (tokens_.TakeWord("cluster_barrier")) return MakeClusterBarrier(pool());
    if (tokens_.TakeWord("warp_barrier")) return MakeWarpBarrier(pool());
    if (tokens_.TakeWord("commit")) return MakeCommit(pool());
    if (tokens_.TakeWord("async")) return ParseStore(/*is_async=*/true);
    if (tokens_.TakeWord("instruction")) return ParseInstruction();
    for (LoopKind kind : kLoopKinds) {
      if (tokens_.TakeWord(LoopKindName(kind))) return ParseFor(kind);
    }
    return ParseStore();
  }

  StatusOr<Stmt> ParseBarrier() {
    if (!tokens_.TakeSymbol("(")) return MakeBarrier(pool());
    KILN_ASSIGN_OR_RETURN(const int64_t pending,
                          tokens_.ExpectInt("a number of groups", 0, INT8_MAX));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(")", "after the number of groups"));
    return MakeBarrier(pool(), static_cast<int>(pending));
  }

  StatusOr<Stmt> ParseInstruction() {
    KILN_ASSIGN_OR_RETURN(const std::string name, tokens_.ExpectName("the name of an instruction"));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("{", "after the name"));
    KILN_ASSIGN_OR_RETURN(const Stmt body, ParseBlock());
    return MakeInstruction(pool(), AddInstruction(program_, name), body);
  }

  StatusOr<Stmt> ParseIf() {
    KILN_ASSIGN_OR_RETURN(const Expr condition, ParseExpr(tokens_, scope_, pool(), kBool));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("{", "after the condition"));
    KILN_ASSIGN_OR_RETURN(const Stmt body, ParseBlock());
    return MakeIf(pool(), condition, body);
  }

  StatusOr<Stmt> ParseAlloc(bool& is_rest) {
    KILN_ASSIGN_OR_RETURN(const int32_t slot, ParseDeclaration(false));
    is_rest = !tokens_.TakeSymbol("{");
    KILN_ASSIGN_OR_RETURN(const Stmt body, ParseBlock());
    return MakeAlloc(pool(), slot, body);
  }

  StatusOr<Stmt> ParseFor(LoopKind kind) {
    const Token& token = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(const std::string name, tokens_.ExpectName("a loop variable"));
    const auto var = static_cast<int32_t>(program_.vars.size());
    if (!vars_.emplace(name, var).second) {
      return TokenStream::ErrorAt(token, fmt::format("a loop over '{}' exists already", name));
    }
    KILN_RETURN_IF_ERROR(tokens_.ExpectWord("in", "after the loop variable"));
    KILN_RETURN_IF_ERROR(tokens_.ExpectInt("0", 0, 0).status());
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("..", "after the 0"));
    KILN_ASSIGN_OR_RETURN(const int64_t extent, tokens_.ExpectInt("an extent", 1, kMaxExtent));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("{", "after the extent"));
    program_.vars.push_back({name, extent});
    KILN_ASSIGN_OR_RETURN(const Stmt body, ParseBlock());
    return MakeFor(pool(), var, extent, kind, body);
  }

  StatusOr<Stmt> ParseStore(bool is_async = false) {
    const Token& token = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(const std::string name, tokens_.ExpectName("a statement"));
    const std::optional<ExprScope::Slot> slot = scope_.slot(name);
    if (!slot) return TokenStream::ErrorAt(token, fmt::format("unknown buffer '{}'", name));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("[", "after the buffer"));
    std::vector<Expr> indices;
    if (!tokens_.TakeSymbol("]")) {
      do {
        KILN_ASSIGN_OR_RETURN(const Expr index, ParseIndexExpr(tokens_, scope_, pool()));
        indices.push_back(index);
      } while (tokens_.TakeSymbol(","));
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("]", "after the index list"));
    }
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("="));
    KILN_ASSIGN_OR_RETURN(const Expr value, ParseExpr(tokens_, scope_, pool(), slot->type));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("@", "and the stage after the value"));
    KILN_ASSIGN_OR_RETURN(const int32_t stage, ParseStageReference());
    return MakeStore(pool(), slot->slot, stage, indices, value, is_async);
  }

  StatusOr<int32_t> ParseStageReference() {
    const Token& token = tokens_.Peek();
    if (token.kind == TokenKind::kInt) {
      KILN_ASSIGN_OR_RETURN(const int64_t stage,
                            tokens_.ExpectInt("a stage", 0, std::ssize(program_.stages) - 1));
      return static_cast<int32_t>(stage);
    }
    KILN_ASSIGN_OR_RETURN(const std::string name, tokens_.ExpectName("the name of a stage"));
    const auto it = stages_.find(name);
    if (it == stages_.end())
      return TokenStream::ErrorAt(token, fmt::format("unknown stage '{}'", name));
    if (it->second < 0) {
      return TokenStream::ErrorAt(
          token, fmt::format("there are several stages '{}': use the number", name));
    }
    return it->second;
  }

  TokenStream& tokens_;
  Program program_;
  ExprScope scope_;
  std::map<std::string, int32_t, std::less<>> vars_, slots_, stages_;
  int nesting_ = 0;
};

}  // namespace

StatusOr<Program> ParseProgram(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(TokenStream tokens, TokenStream::Tokenize(text));
  return Parser(tokens).Parse();
}

}  // namespace kiln::ir
