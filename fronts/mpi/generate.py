#!/usr/bin/env python3
"""Makes the MPI front's interface from the table api/functions.

Usage: generate.py TABLE MPI_H_IN OUTPUT_FOLDER

Writes mpi.h, functions.hpp (declarations of the front's functions), entries_NAME.cpp (one file per section of the
table: the functions that programs call), exports.map and unsupported.hpp into OUTPUT_FOLDER.

An entry point finds the objects behind handles, checks its arguments, and calls the front's function of the same name in
snake case: MPI_Comm_rank calls tonari::mpi::comm_rank. That function throws if it fails. The entry point then calls the
error handler of the first communicator, window, file or session among the parameters. Without one it calls a parameter
that is an error handler, otherwise the error handler of MPI_COMM_SELF.
"""

import dataclasses
import pathlib
import re
import sys


@dataclasses.dataclass(frozen=True)
class Kind:
    """How a parameter of this kind is declared, checked and passed on.

    `{n}` is the parameter's name. `c` is its declaration for programs, `wide` that of the twin with large counts, if it
    differs. `front` is its declaration in the front. `check` is an expression that is false for a wrong argument, and
    `error` the call that reports it. `before` are statements in front of the call, `passed` the argument, `after`
    statements behind the call.
    """

    c: str
    front: str = ""
    wide: str = ""
    find: str = ""
    check: str = ""
    error: str = ""
    before: str = ""
    passed: str = "{n}"
    after: str = ""
    before_wide: str = ""
    passed_wide: str = ""
    after_wide: str = ""


def found(handle, kind, what):
    """A handle that must name an object."""
    return Kind(f"MPI_{handle} {{n}}", f"{handle}& {{n}}", find=f"find({{n}})",
                error=f'bad_handle(f, holder, "{{n}}", "{what}", {kind}, {{n}})', passed="*{n}_")


def out(c, front=""):
    """An address that the front writes to."""
    return Kind(f"{c} *{{n}}", f"{front or c}* {{n}}", check="{n} != nullptr", error='null_output(f, holder, "{n}")')


def narrowed(c, wide):
    """An address of a count that the twin has wider: the front writes the wide number."""
    return Kind(f"{c} *{{n}}", "MPI_Count* {n}", f"{wide} *{{n}}", check="{n} != nullptr",
                error='null_output(f, holder, "{n}")', before="MPI_Count {n}_ = *{n};", passed="&{n}_",
                after=f"*{{n}} = narrow<{c}>({{n}}_);",
                before_wide="MPI_Count {n}_ = *{n};", passed_wide="&{n}_", after_wide=f"*{{n}} = narrow<{wide}>({{n}}_);")


KINDS = {
    "in_buffer": Kind("const void *{n}", "const void* {n}"),
    "out_buffer": Kind("void *{n}", "void* {n}"),
    "pointer": Kind("void *{n}", "void* {n}"),
    "text": Kind("const char *{n}", "const char* {n}", check="{n} != nullptr", error='null_text(f, holder, "{n}")'),
    "out_text": Kind("char *{n}", "char* {n}"),
    "int": Kind("int {n}", "int {n}"),
    "in_ints": Kind("const int {n}[]", "const int* {n}"),
    "out_ints": Kind("int {n}[]", "int* {n}"),
    "ranges": Kind("int {n}[][3]", "int (*{n})[3]"),
    "out_int": out("int"),
    "optional_int": Kind("int *{n}", "int* {n}"),
    "optional_type": Kind("MPI_Datatype *{n}", "MPI_Datatype* {n}"),
    "optional_info": Kind("MPI_Info *{n}", "MPI_Info* {n}"),
    "optional_long_count": Kind("MPI_Count *{n}", "MPI_Count* {n}"),
    # Counts and displacements: 32 bits, or 64 in the twin. The front sees 64 bits.
    "count": Kind("int {n}", "MPI_Count {n}", "MPI_Count {n}", check="{n} >= 0", error='bad_count(f, holder, "{n}", {n})'),
    "signed_count": Kind("int {n}", "MPI_Count {n}", "MPI_Count {n}"),
    "wide_int": Kind("int {n}", "MPI_Aint {n}", "MPI_Aint {n}"),
    "counts": Kind("const int {n}[]", "Counts {n}", "const MPI_Count {n}[]", passed="Counts({n})"),
    # The front checks these: they may not be significant on this rank.
    "maybe_count": Kind("int {n}", "MPI_Count {n}", "MPI_Count {n}"),
    "maybe_type": Kind("MPI_Datatype {n}", "Datatype* {n}", passed="find({n})"),
    "displacements": Kind("const int {n}[]", "Counts {n}", "const MPI_Aint {n}[]", passed="Counts({n})"),
    "aint_count": Kind("MPI_Aint {n}", "MPI_Count {n}", "MPI_Count {n}"),
    "aint_counts": Kind("const MPI_Aint {n}[]", "const MPI_Aint* {n}", "const MPI_Count {n}[]"),
    "out_count": narrowed("int", "MPI_Count"),
    "out_wide_int": narrowed("int", "MPI_Aint"),
    "out_aint_count": narrowed("MPI_Aint", "MPI_Count"),
    "user_function": Kind("MPI_User_function *{n}", "UserFunction {n}", "MPI_User_function_c *{n}",
                          passed="UserFunction({n})"),
    "conversion_function": Kind("MPI_Datarep_conversion_function *{n}", "void* {n}",
                                "MPI_Datarep_conversion_function_c *{n}", passed="reinterpret_cast<void*>({n})"),
    # No parameter of programs: tells the front which of the twins was called.
    "is_large": Kind("", "bool {n}", passed="false", passed_wide="true"),
    # Numbers that have the same width in both.
    "long_count": Kind("MPI_Count {n}", "MPI_Count {n}"),
    "out_long_count": out("MPI_Count"),
    "out_long_counts": Kind("MPI_Count {n}[]", "MPI_Count* {n}"),
    "aint": Kind("MPI_Aint {n}", "MPI_Aint {n}"),
    "aints": Kind("const MPI_Aint {n}[]", "const MPI_Aint* {n}"),
    "out_aint": out("MPI_Aint"),
    "out_aints": Kind("MPI_Aint {n}[]", "MPI_Aint* {n}"),
    "offset": Kind("MPI_Offset {n}", "MPI_Offset {n}"),
    "out_offset": out("MPI_Offset"),
    # Ranks and tags, of the first communicator among the parameters.
    "dest": Kind("int {n}", "int {n}", check="{comm}_->is_peer_or_null({n})", error='bad_rank(f, *{comm}_, "{n}", {n})'),
    "source": Kind("int {n}", "int {n}", check="{comm}_->is_source({n})", error='bad_rank(f, *{comm}_, "{n}", {n})'),
    "root": Kind("int {n}", "int {n}"),  # the front checks it: it means more in an inter-communicator
    "tag": Kind("int {n}", "int {n}", check="{n} >= 0", error='bad_tag(f, holder, "{n}", {n})'),
    "any_tag": Kind("int {n}", "int {n}", check="({n} >= 0 || {n} == MPI_ANY_TAG)",
                    error='bad_tag(f, holder, "{n}", {n})'),
    # Handles.
    "comm": found("Comm", "MPI_ERR_COMM", "communicator"),
    "group": found("Group", "MPI_ERR_GROUP", "group"),
    "op": found("Op", "MPI_ERR_OP", "operation"),
    "errhandler": found("Errhandler", "MPI_ERR_ERRHANDLER", "error handler"),
    "type": Kind("MPI_Datatype {n}", "Datatype& {n}", find="find_committed({n})",
                 error='bad_type(f, holder, "{n}", {n})', passed="*{n}_"),
    "any_type": Kind("MPI_Datatype {n}", "Datatype& {n}", find="find({n})",
                     error='bad_type(f, holder, "{n}", {n})', passed="*{n}_"),
    "real_info": found("Info", "MPI_ERR_INFO", "info object"),
    "info": Kind("MPI_Info {n}", "Info* {n}", check="({n} == MPI_INFO_NULL || find({n}) != nullptr)",
                 error='bad_handle(f, holder, "{n}", "info object", MPI_ERR_INFO, {n})', passed="find({n})"),
    "win": found("Win", "MPI_ERR_WIN", "window"),
    "file": found("File", "MPI_ERR_FILE", "file"),
    "file_or_null": Kind("MPI_File {n}", "File& {n}", find="find_or_null({n})",
                         error='bad_handle(f, holder, "{n}", "file", MPI_ERR_FILE, {n})', passed="*{n}_"),
    "session": found("Session", "MPI_ERR_SESSION", "session"),
    "request": Kind("MPI_Request {n}", "MPI_Request {n}"),
    "message": Kind("MPI_Message {n}", "MPI_Message {n}"),
    "types": Kind("const MPI_Datatype {n}[]", "const MPI_Datatype* {n}"),
    "requests": Kind("const MPI_Request {n}[]", "const MPI_Request* {n}"),
    "infos": Kind("const MPI_Info {n}[]", "const MPI_Info* {n}"),
    "inout_types": Kind("MPI_Datatype {n}[]", "MPI_Datatype* {n}"),
    "inout_requests": Kind("MPI_Request {n}[]", "MPI_Request* {n}"),
    "status": Kind("const MPI_Status *{n}", "const MPI_Status* {n}", check="{n} != MPI_STATUS_IGNORE",
                   error='null_output(f, holder, "{n}")'),
    "inout_status": Kind("MPI_Status *{n}", "MPI_Status* {n}", check="{n} != MPI_STATUS_IGNORE",
                         error='null_output(f, holder, "{n}")'),
    "out_status": Kind("MPI_Status *{n}", "MPI_Status* {n}"),
    "out_statuses": Kind("MPI_Status {n}[]", "MPI_Status* {n}"),
}
for name, handle in {"comm": "Comm", "type": "Datatype", "errhandler": "Errhandler", "file": "File", "group": "Group",
                     "info": "Info", "message": "Message", "op": "Op", "request": "Request", "session": "Session",
                     "win": "Win"}.items():
    KINDS[f"out_{name}"] = KINDS[f"inout_{name}"] = out(f"MPI_{handle}")

# An error goes to the first of these among the parameters, otherwise to an error handler that is a parameter.
HOLDERS = ("comm", "win", "file", "file_or_null", "session")

# In these sections a blocking function, its started form (I...) and its persistent form (..._init) share one function of
# the front, which is named after the blocking one and learns by its last argument which one was called.
SECTIONS_OF_COLLECTIVES = ("Collectives", "Neighbour collectives")


@dataclasses.dataclass
class Parameter:
    kind: str
    name: str

    def declared(self, wide):
        if self.kind.startswith("["):
            c = self.kind[1:-1]
            return c if self.name in c else f"{c}{'' if c.endswith('*') else ' '}{self.name}"
        kind = KINDS[self.kind]
        return (wide and kind.wide or kind.c).format(n=self.name)

    def in_front(self):
        if self.kind.startswith("["):
            return self.declared(False)
        return KINDS[self.kind].front.format(n=self.name)

    @property
    def made(self):
        return Kind("") if self.kind.startswith("[") else KINDS[self.kind]


@dataclasses.dataclass
class Function:
    section: str
    name: str
    supported: bool
    any_time: bool
    parameters: list
    result: str

    @property
    def is_collective(self):
        return self.section in SECTIONS_OF_COLLECTIVES

    @property
    def form(self):
        """How a collective is called: blocking, started or persistent."""
        if self.name.endswith("_init"):
            return "persistent"
        return "started" if self.parameters[-1].kind == "out_request" else "blocking"

    @property
    def front_name(self):
        name = self.name.lower()
        if self.is_collective:
            name = {"blocking": name, "started": name[1:], "persistent": name.removesuffix("_init")}[self.form]
        return name

    def front_parameters(self):
        """Returns the declarations of the front's function."""
        if self.is_collective:
            return [each.in_front() for each in self.common_parameters()] + ["const How& how"]
        return [each.in_front() for each in self.parameters]

    def common_parameters(self):
        """Returns the parameters that all forms of a collective have."""
        return [each for each in self.parameters if each.kind not in ("info", "out_request")]

    def twins(self):
        """Yields (name, wide) of each form that programs can call."""
        yield self.name, False
        if any(each.made.wide for each in self.parameters):
            yield f"{self.name}_c", True

    def prototype(self, prefix, name, wide):
        declared = [each.declared(wide) for each in self.parameters]
        parameters = ", ".join(each for each in declared if each)
        if self.name == "Pcontrol":
            parameters += ", ..."
        space = "" if self.result.endswith("*") else " "
        return f"{self.result}{space}{prefix}{name}({parameters or 'void'})"


def read_table(path):
    lines = []
    for line in path.read_text().splitlines():
        if line.startswith("     "):
            lines[-1] += " " + line.strip()
        elif line and not line.startswith("#"):
            lines.append(line)
    section = ""
    functions = []
    for line in lines:
        if match := re.fullmatch(r"\[(.+)\]", line):
            section = match[1]
            continue
        match = re.fullmatch(r"([- ])([* ]) (\w+)\((.*)\)(?: -> (\w+))?", line)
        if not match:
            sys.exit(f"{path}: not a line of the table: {line}")
        parameters = [Parameter(*re.fullmatch(r"(\[.*\]|\w+) (\w+)", each).groups())
                      for each in re.split(r", (?![^\[]*\])", match[4]) if each]
        for each in parameters:
            if not each.kind.startswith("[") and each.kind not in KINDS:
                sys.exit(f"{path}: {match[3]}: no kind is named {each.kind}")
        functions.append(Function(section, match[3], match[1] == " ", match[2] == "*", parameters, match[5] or "int"))
    return functions


def holder_of(function):
    return (next((each for each in function.parameters if each.kind in HOLDERS), None) or
            next((each for each in function.parameters if each.kind == "errhandler"), None))


def may_wait(function):
    """Whether a call may wait for other ranks. Functions that never do so stay out of the thread's record."""
    local = ("Info", "Errors", "Attributes", "Groups", "The ABI", "Memory", "Datatypes", "Tool")
    return not function.section.startswith(local)


def entry(function, name, wide):
    """Returns the text of PMPI_name and of its alias MPI_name."""
    lines = [f'extern "C" {function.prototype("P", "MPI_" + name, wide)} {{']
    if function.result != "int" or function.name.endswith("toint"):
        arguments = ", ".join(each.name for each in function.parameters)
        lines.append(f"  return {function.front_name}({arguments});" if function.supported else
                     f"  return no_such_value<{function.result}>(Function::{name});")
    else:
        lines += body(function, name, wide)
    lines.append("}")
    lines.append(f'extern "C" {function.prototype("", "MPI_" + name, wide)} '
                 f'__attribute__((weak, alias("PMPI_{name}")));')
    return "\n".join(lines) + "\n"


def body(function, name, wide):
    lines = [f"  constexpr Function f = Function::{name};"]
    holder = holder_of(function)
    if not function.any_time and holder is None:
        lines.append("  if (!is_running()) [[unlikely]] return not_running(f);")
    if holder is None:
        lines.append("  constexpr Holder holder{};")
    else:
        find = fill(KINDS[holder.kind].find, holder.name)
        lines.append(f"  auto* const {holder.name}_ = {find};")
        error = KINDS[holder.kind].error.replace("holder", "{}").replace("{}", "Holder{}", 1)
        lines.append(f"  if ({holder.name}_ == nullptr) [[unlikely]] return {fill(error, holder.name)};")
        lines.append(f"  [[maybe_unused]] const Holder holder({holder.name}_);")
    if not function.supported:
        return [*lines, "  return unsupported(f, holder);"]
    comm = next((each.name for each in function.parameters if each.kind == "comm"), "")
    before, passed, after = [], [], []
    for each in function.parameters:
        kind = each.made
        if kind.find and each is not holder:
            lines.append(f"  auto* const {each.name}_ = {fill(kind.find, each.name)};")
        check = f"{each.name}_ != nullptr" if kind.find else fill(kind.check, each.name, comm)
        if check and each is not holder:
            lines.append(f"  if (!({check})) [[unlikely]] return {fill(kind.error, each.name, comm)};")
        use_wide = wide and kind.passed_wide
        before.append(fill(kind.before_wide if use_wide else kind.before, each.name))
        if not function.is_collective or each in function.common_parameters():
            passed.append(fill(kind.passed_wide if use_wide else kind.passed, each.name))
        after.append(fill(kind.after_wide if use_wide else kind.after, each.name))
    if function.is_collective:
        passed.append("How::blocking()" if function.form == "blocking" else f"How::{function.form}(request)")
    lines += [f"  {each}" for each in before if each]
    if may_wait(function):
        lines.append("  current_function = f;")
    lines.append("  try {")
    lines.append(f"    {function.front_name}({', '.join(passed)});")
    lines += [f"    {each}" for each in after if each]
    lines.append("    return MPI_SUCCESS;")
    lines.append("  } catch (...) {")
    lines.append("    return raise(f, holder);")
    lines.append("  }")
    return lines


def fill(text, name, comm=""):
    return text.replace("{n}", name).replace("{comm}", comm)


def write(path, text):
    """Leaves a file alone that has this text already, so that nothing is compiled again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def file_name(section):
    return re.sub(r"\W+", "_", section.lower()).strip("_")


def main():
    table, header, folder = (pathlib.Path(each) for each in sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    functions = read_table(table)
    callable_names = [name for function in functions for name, _ in function.twins()]

    prototypes = [f"{function.prototype(prefix, 'MPI_' + name, wide)};"
                  for prefix in ("", "P") for function in functions for name, wide in function.twins()]
    fortran = [f"#define {prefix}MPI_{kind}_{old}(handle) {prefix}MPI_{kind}_{new}(handle)"
               for prefix in ("", "P") for function in functions if function.name.endswith("_toint")
               for kind in [function.name.removesuffix("_toint")] for old, new in (("c2f", "toint"), ("f2c", "fromint"))]
    write(folder / "mpi.h", header.read_text().replace("@PROTOTYPES@", "\n".join(prototypes))
          .replace("@FORTRAN_HANDLES@", "\n".join(fortran)))

    declared = []
    for function in functions:
        if function.supported and not (function.is_collective and function.form != "blocking"):
            result = function.result if function.result != "int" or function.name.endswith("toint") else "void"
            is_value = result != "void"
            parameters = ([each.declared(False) for each in function.parameters] if is_value else
                          function.front_parameters())
            declared.append(f"{result} {function.front_name}({', '.join(parameters)});")
    names = "".join(f"  {name},\n" for name in callable_names)
    texts = "".join(f'    "MPI_{name}",\n' for name in callable_names)
    write(folder / "functions.hpp",
          '#pragma once\n\n#include "mpi/objects.hpp"\n\nnamespace tonari::mpi {\n\n' + "\n".join(declared) + "\n\n}\n")
    write(folder / "names.hpp",
          "#pragma once\n\nnamespace tonari::mpi {\n\nenum class Function : unsigned short {\n" + names + "};\n\n"
          "inline constexpr const char* function_names[] = {\n" + texts + "};\n\n}\n")
    missing = "".join(f'    "MPI_{name}",\n' for function in functions if not function.supported
                      for name, _ in function.twins())
    write(folder / "unsupported.hpp",
          "#pragma once\n\n#include <array>\n#include <string_view>\n\nnamespace tonari::mpi {\n\n"
          f"inline constexpr std::size_t functions = {len(callable_names)};\n"
          "inline constexpr std::array unsupported_functions = std::to_array<std::string_view>({\n" + missing + "});\n\n}\n")

    for section in dict.fromkeys(function.section for function in functions):
        entries = [entry(function, name, wide) for function in functions if function.section == section
                   for name, wide in function.twins()]
        write(folder / f"entries_{file_name(section)}.cpp",
              '#include "functions.hpp"\n#include "mpi/checks.hpp"\n\nusing namespace tonari::mpi;\n\n' + "\n".join(entries))

    exported = "".join(f"    {prefix}MPI_{name};\n" for name in callable_names for prefix in ("", "P"))
    write(folder / "exports.map", "{\n  global:\n" + exported + "  local:\n    *;\n};\n")


if __name__ == "__main__":
    main()
