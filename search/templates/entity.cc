#include "search/templates/entity.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

namespace kiln::search {
namespace {

// ---- printing

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      json += c;
    }
  }
  return json + "\"";
}

// Returns the shortest digits that read back as the number, with a point or an exponent.
std::string NumberText(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

struct OptionText {
  const char *none, *yes, *no;
  bool is_json;

  std::string operator()(std::monostate) const { return none; }
  std::string operator()(bool value) const { return value ? yes : no; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return NumberText(value); }
  std::string operator()(const std::string& value) const {
    return is_json ? JsonString(value) : value;
  }
};
constexpr OptionText kPython{"None", "True", "False", false};
constexpr OptionText kJson{"null", "true", "false", true};

std::string Words(const std::vector<std::string>& words, bool is_json) {
  std::string text;
  for (const std::string& word : words) {
    text += text.empty() ? "" : ", ";
    text += is_json ? JsonString(word) : fmt::format("'{}'", word);
  }
  return fmt::format("[{}]", text);
}

std::string Values(const Entity& entity, const OptionText& form) {
  if (const auto* split = std::get_if<SplitEntity>(&entity))
    return fmt::format("[{}]", fmt::join(split->sizes, ", "));
  if (const auto* reorder = std::get_if<ReorderEntity>(&entity))
    return fmt::format("[{}]", fmt::join(reorder->order, ", "));
  if (const auto* annotate = std::get_if<AnnotateEntity>(&entity)) {
    if (!annotate->places.empty()) return fmt::format("[{}]", fmt::join(annotate->places, ", "));
    return Words(annotate->words, form.is_json);
  }
  return std::visit(form, std::get<OptionEntity>(entity).value);
}

constexpr const char* kTags[] = {"sp", "re", "an", "ot"};

// ---- parsing

class EntityReader {
 public:
  explicit EntityReader(std::string_view text) : text_(text) {}

  StatusOr<std::vector<NamedEntity>> Read() {
    std::vector<NamedEntity> entities;
    KILN_RETURN_IF_ERROR(Expect('[', "a list of knobs"));
    if (!Take(']')) {
      do {
        KILN_ASSIGN_OR_RETURN(NamedEntity entity, ReadKnob());
        entities.push_back(std::move(entity));
      } while (Take(','));
      KILN_RETURN_IF_ERROR(Expect(']', "',' or the end of the list of knobs"));
    }
    SkipBlanks();
    if (at_ < text_.size()) return Error("nothing after the list of knobs");
    return entities;
  }

 private:
  StatusOr<NamedEntity> ReadKnob() {
    KILN_RETURN_IF_ERROR(Expect('[', "a knob: [name, kind, value]"));
    KILN_ASSIGN_OR_RETURN(std::string name, String("the name of a knob"));
    KILN_RETURN_IF_ERROR(Expect(',', "',' after the name of the knob"));
    const size_t tag_at = at_;
    KILN_ASSIGN_OR_RETURN(const std::string tag, String("the kind of the knob"));
    KILN_RETURN_IF_ERROR(Expect(',', "',' after the kind of the knob"));
    Entity entity;
    if (tag == "sp") {
      KILN_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, Integers());
      entity = SplitEntity{std::move(sizes)};
    } else if (tag == "re") {
      KILN_ASSIGN_OR_RETURN(std::vector<int64_t> order, Integers());
      entity = ReorderEntity{std::move(order)};
    } else if (tag == "an") {
      KILN_ASSIGN_OR_RETURN(entity, Annotations());
    } else if (tag == "ot") {
      KILN_ASSIGN_OR_RETURN(entity, Option());
    } else {
      at_ = tag_at;
      return Error("a kind of knob, one of \"sp\", \"re\", \"an\", \"ot\"");
    }
    KILN_RETURN_IF_ERROR(Expect(']', "the end of the knob"));
    return NamedEntity(std::move(name), std::move(entity));
  }

  StatusOr<std::vector<int64_t>> Integers() {
    std::vector<int64_t> numbers;
    KILN_RETURN_IF_ERROR(Expect('[', "a list of whole numbers"));
    if (Take(']')) return numbers;
    do {
      KILN_ASSIGN_OR_RETURN(const int64_t number, Integer());
      numbers.push_back(number);
    } while (Take(','));
    KILN_RETURN_IF_ERROR(Expect(']', "',' or the end of the list"));
    return numbers;
  }

  StatusOr<Entity> Annotations() {
    const size_t start = at_;
    KILN_RETURN_IF_ERROR(Expect('[', "a list of annotations"));
    AnnotateEntity entity;
    if (Take(']')) return entity;
    SkipBlanks();
    if (Peek() != '"') {
      at_ = start;
      KILN_ASSIGN_OR_RETURN(entity.places, Integers());
      return entity;
    }
    do {
      KILN_ASSIGN_OR_RETURN(std::string word, String("an annotation"));
      entity.words.push_back(std::move(word));
    } while (Take(','));
    KILN_RETURN_IF_ERROR(Expect(']', "',' or the end of the list"));
    return entity;
  }

  StatusOr<Entity> Option() {
    SkipBlanks();
    if (TakeWord("null")) return OptionEntity{};
    if (TakeWord("true")) return OptionEntity{true};
    if (TakeWord("false")) return OptionEntity{false};
    if (Peek() == '"') {
      KILN_ASSIGN_OR_RETURN(std::string word, String("a word"));
      return OptionEntity{std::move(word)};
    }
    const std::string_view digits = NumberToken();
    if (digits.find_first_of(".eE") == std::string_view::npos) {
      KILN_ASSIGN_OR_RETURN(const int64_t number, Integer());
      return OptionEntity{number};
    }
    double number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(number))
      return Error("a value: null, true, false, a number or a word");
    at_ += digits.size();
    return OptionEntity{number};
  }

  StatusOr<int64_t> Integer() {
    SkipBlanks();
    const std::string_view digits = NumberToken();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
      return Error("a whole number");
    at_ += digits.size();
    return number;
  }

  // Returns the characters from here on that a number could consist of, without taking them.
  std::string_view NumberToken() const {
    size_t end = at_;
    while (end < text_.size() &&
           std::string_view("+-.0123456789eE").find(text_[end]) != std::string_view::npos)
      ++end;
    return text_.substr(at_, end - at_);
  }

  // Only the escapes of ASCII characters are read: names and words have no others.
  StatusOr<std::string> String(std::string_view what) {
    SkipBlanks();
    if (Peek() != '"') return Error(what);
    const size_t start = at_++;
    std::string value;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] != '\\') {
        value += text_[at_++];
        continue;
      }
      const std::string_view rest = text_.substr(at_ + 1);
      unsigned code = 0;
      if (rest.starts_with('"') || rest.starts_with('\\') || rest.starts_with('/')) {
        value += rest[0];
        at_ += 2;
      } else if (rest.size() >= 5 && rest[0] == 'u' &&
                 std::from_chars(rest.data() + 1, rest.data() + 5, code, 16).ptr ==
                     rest.data() + 5 &&
                 code < 0x80) {
        value += static_cast<char>(code);
        at_ += 6;
      } else {
        return Error("a known escape in the text");
      }
    }
    if (at_ == text_.size()) {
      at_ = start;
      return Error(fmt::format("{} with a closing quote", what));
    }
    ++at_;
    return value;
  }

  void SkipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(char c) {
    SkipBlanks();
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  Status Expect(char c, std::string_view what) { return Take(c) ? OkStatus() : Error(what); }
  Status Error(std::string_view what) {
    SkipBlanks();
    const std::string found = at_ < text_.size() ? fmt::format("'{}'", text_.substr(at_, 16))
                                                 : std::string("the end of the text");
    return InvalidArgument("column {}: expected {}, found {}", at_ + 1, what, found);
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string PrintEntity(const Entity& entity) { return Values(entity, kPython); }

std::string PrintEntities(std::span<const NamedEntity> entities) {
  std::string json;
  for (const auto& [name, entity] : entities) {
    json += fmt::format("{}[{}, \"{}\", {}]", json.empty() ? "" : ", ", JsonString(name),
                        kTags[entity.index()], Values(entity, kJson));
  }
  return fmt::format("[{}]", json);
}

std::string PrintValues(std::span<const NamedEntity> entities) {
  std::string text;
  for (const auto& [name, entity] : entities) {
    std::string value = PrintEntity(entity);
    std::erase(value, ' ');
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

StatusOr<std::vector<NamedEntity>> ParseEntities(std::string_view json) {
  return EntityReader(json).Read();
}

}  // namespace kiln::search
