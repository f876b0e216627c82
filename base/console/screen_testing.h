// For tests: a terminal's screen as a user sees it, from the bytes that a program sends.
//
// The model knows the bytes that programs here send: text, CR, LF, the sequences CSI A, H, J, K, m,
// and the private modes 25 and 1049. Other sequences are counted in unknown(). As in a VT100, text
// in the last column waits for the next character before it goes to the next row. As in tmux, a
// screen that is erased from its first cell on is moved into the scrollback. ASCII only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

class ScreenModel {
 public:
  ScreenModel(int columns, int rows);

  void Feed(std::string_view bytes);
  // Resizes like a terminal that cuts rows and columns off, and moves rows above the cursor into
  // the scrollback if the cursor would be cut off.
  void Resize(int columns, int rows);

  // Returns the visible rows, without trailing blanks and without the empty rows at the end.
  std::vector<std::string> Visible() const;
  // Returns the rows that have left the main screen at its top.
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
  // other_ is the main screen while the alternate one is shown.
  Rows screen_, other_;
  Rows scrollback_;
  int row_ = 0, column_ = 0, main_row_ = 0, main_column_ = 0;
  bool alternate_ = false, cursor_shown_ = true;
  int unknown_ = 0;
  // A sequence whose end has not come yet.
  std::string partial_;
};

}  // namespace kiln
