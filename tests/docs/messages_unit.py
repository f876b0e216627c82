"""Tests of messages.py itself, on made-up sources."""
import pathlib
import tempfile
import unittest
from unittest import mock

import messages


class MessagesTest(unittest.TestCase):
    def test_texts_that_say_what_to_do(self):
        source = '''
            // "a comment has words too; leave it out of the page"
            return InvalidArgument("found {} in {:04o}, "
                                   "expected \\"none\\": `chmod 600 {}`", a, b);
            Log("this text says nothing about what a reader does");
            Execute("SELECT a, b, c, d FROM e WHERE f; SELECT g");
            return NotFound("no such file: {}", path);
        '''
        self.assertEqual(messages.messages("base/a.cc", source),
                         ['found ... in ..., expected "none": `chmod 600 ...`'])

    def test_commands_have_texts_of_help_that_are_no_messages(self):
        source = '''app.add_option("--a", a, "name of the fleet; a farm may have several");
            return MakeStatus(StatusCode::kInvalidArgument, "a fleet has workers; say how many at most"); '''
        self.assertEqual(messages.messages("client/cli/a.cc", source), ["a fleet has workers; say how many at most"])

    def test_scripts_stop(self):
        self.assertEqual(messages.messages("a.sh", 'stop "$1 has ${free} MB, and the build needs more"\nstop "no"\n'),
                         ["... has ... MB, and the build needs more"])

    def test_a_page_that_lacks_a_message_is_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "docs").mkdir()
            (tree / "a.cc").write_text('InvalidArgument("found no words at all, expected some")')
            with mock.patch.object(messages, "TOPICS", [("A", "[a](a.md)", ["*.cc"])]), mock.patch("builtins.print"):
                for words, status in ((["--write"], 0), ([], 0)):
                    with mock.patch("sys.argv", ["messages.py", folder, *words]):
                        self.assertEqual(messages.main(), status)
                (tree / "a.cc").write_text('InvalidArgument("found no words at all, expected six")')
                with mock.patch("sys.argv", ["messages.py", folder]):
                    self.assertEqual(messages.main(), 1)


if __name__ == "__main__":
    unittest.main()
