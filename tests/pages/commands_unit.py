"""Tests of commands.py."""
import unittest

from commands import Command, commands, said_count, section

PAGE = """# A page

**3 commands, 1.5 minutes** (2026-11-29, two cores).

Text with `$ kiln` is no command.

   ```
   $ kiln doctor                  # comments are for readers
   ok  device
   box1$ kiln fleet slurm --runners 8 \\
              --builders 4    # four
   you$  echo "# no comment"
   ```

## Part

```
$ kiln tune
```

## Rest
"""


class CommandsTest(unittest.TestCase):
    def test_prompts_hosts_and_lines_that_go_on(self):
        self.assertEqual(commands(PAGE)[:3], [
            Command("", "kiln doctor", 8),
            Command("box1", "kiln fleet slurm --runners 8 --builders 4", 10),
            Command("you", 'echo "# no comment"', 12),
        ])

    def test_a_section_keeps_the_numbers_of_its_lines(self):
        self.assertEqual(commands(section(PAGE, "Part")), [Command("", "kiln tune", 18)])
        self.assertEqual(commands(section(PAGE, "Rest")), [])
        with self.assertRaises(ValueError):
            section(PAGE, "Parts")

    def test_the_number_that_a_page_says(self):
        self.assertEqual(said_count(PAGE), 3)
        self.assertIsNone(said_count(section(PAGE, "Part")))


if __name__ == "__main__":
    unittest.main()
