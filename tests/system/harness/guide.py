"""The code of a guide: the programs to compile, the commands to run, and the expected output.

A guide has blocks of the kinds ```cpp and ```text. A cpp block with a main() is a program. The program that contains
`// the piece` is the frame; every other cpp block is a piece that is put into the frame. A text block belongs to the
program or piece before it: it begins with `$ COMMAND`, and the lines that the command prints follow.

Usage: guide.py GUIDE OUTPUT writes one program that contains all of them.
"""

import pathlib
import re
import sys
from dataclasses import dataclass

BLOCK = re.compile(r"^```(cpp|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)
PLACE = "  // the piece\n"


@dataclass
class Example:
    code: str     # a whole program
    command: str  # None: the guide gives no command, which is an error
    printed: list


class Guide:
    def __init__(self, path):
        self.text = pathlib.Path(path).read_text()
        self.frame = None
        self.examples = []
        for kind, block in BLOCK.findall(self.text):
            self._add_code(block) if kind == "cpp" else self._add_text(block)

    def _add_code(self, block):
        if PLACE in block:
            self.frame = block
            return
        if "int main(" not in block:
            block = self.frame.replace(PLACE, "".join(f"  {line}\n" for line in block.splitlines()))
        self.examples.append(Example(block, None, []))

    def _add_text(self, block):
        command, *printed = block.splitlines()
        if not command.startswith("$ "):
            raise ValueError(f"a text block begins with its command, not with {command!r}")
        self.examples[-1].command = command[2:]
        self.examples[-1].printed = printed

    def one_program(self):
        """All examples behind one main()."""
        codes = [example.code for example in self.examples]
        if self.frame:
            codes.append(self.frame.replace(PLACE, "  (void)rank;\n"))
        lines = sorted({line for code in codes for line in INCLUDE.findall(code)} | {"#include <filesystem>\n"})
        for number, code in enumerate(codes):
            body = INCLUDE.sub("", code).replace("int main()", "int main_of_it()").strip()
            # The end of main() returns 0, but that of another function does not.
            body = body.removesuffix("}") + "  return 0;\n}"
            lines.append(f"\nnamespace example_{number} {{\n{body}\n}}\n")
        lines.append("\nint main() {\n  const auto name = std::filesystem::current_path().filename();\n")
        lines += [f'  if (name == "{number}") return example_{number}::main_of_it();\n' for number in range(len(codes))]
        lines.append("  return 2;\n}\n")
        return "".join(lines)


if __name__ == "__main__":
    pathlib.Path(sys.argv[2]).write_text(Guide(sys.argv[1]).one_program())
