#include "base/console/usage.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/closest_names.h"

namespace kiln {
namespace {

constexpr size_t kColumns = 80;
// Column of the texts beside the names.
constexpr size_t kIndent = 28;

// Writes `text` from column kIndent on, after `left`; on the next line if `left` is long.
std::string TwoColumns(std::string_view left, std::string_view text) {
  std::string lines = fmt::format("  {:<{}}", left, kIndent - 3);
  // Width of the last line. The start value means that nothing fits on it any more.
  size_t width = kColumns;
  if (lines.size() < kIndent) {
    lines += std::string(kIndent - lines.size(), ' ');
    width = kIndent;
  }
  bool first = width == kIndent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (width + (first ? 0 : 1) + word.size() > kColumns) {
      lines += "\n" + std::string(kIndent, ' ');
      width = kIndent;
      first = true;
    }
    if (!first) lines += ' ';
    lines += word;
    width += word.size() + (first ? 0 : 1);
    first = false;
  }
  return lines + "\n";
}

// Returns "1 to 64" for "UINT in [1 - 64]", and "one of: a, b" for "{a,b}".
std::string InWords(std::string_view check) {
  if (check == "POSITIVE") return "above 0";
  if (check == "NONNEGATIVE") return "0 or more";
  if (const size_t range = check.find(" in ["); range != std::string_view::npos) {
    std::string text(check.substr(range + 5));
    if (text.ends_with(']')) text.pop_back();
    if (const size_t dash = text.find(" - "); dash != std::string::npos) {
      text.replace(dash, 3, " to ");
    }
    return text;
  }
  if (!check.starts_with('{') || !check.ends_with('}')) return "";
  std::string names;
  for (const char c : check.substr(1, check.size() - 2))
    names += c == ',' ? ", " : std::string(1, c);
  return "one of: " + names;
}

std::string Placeholder(std::string_view type) {
  if (type == "UINT" || type == "INT") return "N";
  return type == "FLOAT" ? "NUMBER" : std::string(type);
}

// Splits "UINT:UINT in [1 - 64]" into "UINT" and "1 to 64". "HOST:PORT" is a type alone.
OptionValues TypeAndCheck(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string check = colon < text.size() ? InWords(text.substr(colon + 1)) : "";
  return {check.empty() ? text : text.substr(0, colon), check};
}

class PlainFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string left = make_option_name(option, is_positional);
    std::string text = make_option_desc(option);
    if (option->get_type_size() != 0) {
      const auto [type, check] = ValuesOf(*option);
      if (!is_positional && !type.empty()) left += " " + Placeholder(type);
      if (!check.empty()) text += "; " + check;
      if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
    }
    for (const CLI::Option* other : option->get_excludes())
      text += "; not with " + other->get_name();
    return TwoColumns(left, text);
  }

  // Makes the same help as the base class, but orders the groups.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) return CLI::Formatter::make_help(app, name, mode);
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
           Groups(app) + make_subcommands(app, mode) + "\n" + make_footer(app);
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return TwoColumns(command->get_name(), command->get_description());
  }

  std::string make_description(const CLI::App* app) const override {
    std::string text = app->get_description(), lines;
    while (text.size() > kColumns) {
      const size_t space = text.rfind(' ', kColumns);
      if (space == std::string::npos) break;
      lines += text.substr(0, space) + "\n";
      text.erase(0, space + 1);
    }
    return lines + text + "\n\n";
  }

 private:
  std::string Groups(const CLI::App* app) const {
    std::vector<std::string> groups = app->get_groups();
    std::ranges::stable_partition(groups,
                                  [](const std::string& group) { return group == kMostUsed; });
    std::string text;
    for (const std::string& group : groups) {
      const auto options = app->get_options([&](const CLI::Option* option) {
        return option->get_group() == group && option->nonpositional();
      });
      if (group.empty() || options.empty()) continue;
      text += make_group(group, /*is_positional=*/false, options);
      if (group != groups.back()) text += "\n";
    }
    return text;
  }
};

// Returns the command that found a word that it does not know; otherwise the command that was
// named.
const CLI::App& FailingCommand(const CLI::App& app) {
  const CLI::App* at = &app;
  while (at->remaining().empty() && !at->get_subcommands().empty()) at = at->get_subcommands()[0];
  return *at;
}

// Returns for instance "kiln records import".
std::string FullName(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : FullName(*parent) + " " + app.get_name();
}

std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string UnknownFlag(const CLI::App& app, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
  }
  // The search leaves out the dashes, which all names have.
  const size_t dashes = std::min(name.find_first_not_of('-'), name.size());
  return fmt::format("there is no flag {}{}", name, DidYouMean("--" + name.substr(dashes), names));
}

std::string UnknownCommand(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> names = CommandsOf(app);
  const std::string guess = DidYouMean(word, names);
  return fmt::format(
      "there is no command '{}'{}", word,
      guess.empty() ? fmt::format("; there are: {}", fmt::join(names, ", ")) : guess);
}

// Turns "Could not convert: --limit = x" into "--limit: found 'x', expected a number".
std::string Reworded(const std::string& text) {
  constexpr std::string_view kConversion = "Could not convert: ";
  const size_t equals = text.find(" = ");
  if (!text.starts_with(kConversion) || equals == std::string::npos) return text;
  return fmt::format("{}: found '{}', expected a number",
                     text.substr(kConversion.size(), equals - kConversion.size()),
                     text.substr(equals + 3));
}

std::string Problem(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining();
  if (!rest.empty() && rest[0].starts_with('-')) return UnknownFlag(app, rest[0]);
  const std::vector<std::string> commands = CommandsOf(app);
  if (!commands.empty()) {
    return rest.empty() ? fmt::format("a command is missing: {}", fmt::join(commands, ", "))
                        : UnknownCommand(app, rest[0]);
  }
  if (!rest.empty()) return fmt::format("'{}' is one word too many", rest[0]);
  const std::string text = error.what();
  return Reworded(text.substr(0, text.find('\n')));
}

}  // namespace

OptionValues ValuesOf(const CLI::Option& option) { return TypeAndCheck(option.get_type_name()); }

void PlainHelp(CLI::App& app) { app.formatter(std::make_shared<PlainFormatter>()); }

std::string UsageError(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& at = FailingCommand(app);
  std::string text = Problem(at, error);
  while (text.ends_with('.')) text.pop_back();
  return fmt::format("{}{} {} --help", text, text.ends_with('?') ? " See" : "; see", FullName(at));
}

const CLI::App* BareCommand(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& at = FailingCommand(app);
  const bool is_bare = error.get_name() == "RequiredError" && at.remaining().empty() &&
                       at.get_subcommands().empty() && !CommandsOf(at).empty();
  return is_bare ? &at : nullptr;
}

}  // namespace kiln
