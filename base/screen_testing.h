// For tests: a terminal's screen as a user sees it, from the bytes that a program sends.
//
// Knows what programs here send: text, CR, LF, and the sequences CSI A, H, J, K, m and the private
// modes 25 and 1049; any other one is counted in unknown(). Text in the last column waits for the
// next character before it goes to the next row, as in a VT100, and a screen that is erased from
// its first cell on is moved into the scrollback, as in tmux. ASCII only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

class ScreenModel {
 public:
  ScreenModel(int columns, int rows);

  void Feed(std::string_view bytes);
  // As a terminal that cuts rows and columns off, and moves rows above the cursor into the
  // scrollback where the cursor would be cut off.
  void Resize(int columns, int rows);

  // The rows that are visible, without trailing blanks and without the empty rows at the end.
  std::vector<std::string> Visible() const;
  // The rows that have left the main screen at its top.
  const std::vector<std::string>& scrollback() const { return scrollback_; }
  bool alternate() const { return alternate_; }
  bool cursor_shown() const { return cursor_shown_; }
  int unknown() const { return unknown_; }

 private:
  using Rows = std::vector<std::string>;

  void Put(char c);
  void NewLine();
  void Control(std::string_view parameters, char command);
  void Erase(int first_row);
  void SetMode(std::string_view mode, bool on);

  int columns_, rows_;
  Rows screen_, other_;  // other_: the main screen while the alternate one is shown
  Rows scrollback_;
  int row_ = 0, column_ = 0, main_row_ = 0, main_column_ = 0;
  bool alternate_ = false, cursor_shown_ = true;
  int unknown_ = 0;
  std::string partial_;  // a sequence whose end has not come yet
};

}  // namespace kiln
