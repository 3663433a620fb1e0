"""The programs that `tonari bench programs` runs: their commands, the packages they need, and their inputs."""

import glob
import os
import random
import shutil
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
# `scripts/setup programs` makes it, with packages from PyPI.
ENVIRONMENT = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tonari", "programs")
PYTHON = os.path.join(ENVIRONMENT, "bin", "python3")


@dataclass(frozen=True)
class Program:
    """A program of another project, and its work."""

    words: tuple  # the command; the first word may be a tuple of names, of which the first that is installed is used
    modules: tuple = ()  # packages that PYTHON needs
    make: object = None  # writes the inputs into the current folder; they are read-only for the program
    results: tuple = ()  # files that the program writes into its own folder, compared like its output
    is_server: bool = False  # it gets the input `requests` at the socket `socket` of its folder, then SIGTERM
    output_bytes_min: int = 1  # of its output and files, or of its replies; a run with less is an error

    def command(self):
        """Returns the words to execute, or None if something is not installed."""
        names = self.words[0] if isinstance(self.words[0], tuple) else (self.words[0],)
        found = next(filter(None, map(shutil.which, names)), None)
        packages = os.path.join(ENVIRONMENT, "lib", "python3*", "site-packages")
        if found is None or not all(glob.glob(os.path.join(packages, module)) for module in self.modules):
            return None
        return [found, *self.words[1:]]


def script(name, *modules):
    return Program((PYTHON, os.path.join(HERE, name)), modules)


def words_of_text(count, seed):
    """Returns text that shrinks to about a third, as prose does."""
    numbers = random.Random(seed)
    known = ["".join(numbers.choices("etaoinshrdlucmfw", k=numbers.randint(2, 9))) for _ in range(20_000)]
    weights = [1 / (place + 1) for place in range(len(known))]
    return " ".join(numbers.choices(known, weights, k=count)).encode()


def make_lines():
    numbers = random.Random(1)
    with open("lines", "w") as file:
        for i in range(2_500_000):
            file.write(f"{numbers.getrandbits(64):016x} {numbers.getrandbits(32):x} line {i}\n")


def make_text(count):
    def make():
        with open("text", "wb") as file:
            file.write(words_of_text(count, 2))

    return make


def make_table_of_sales():
    """Writes a script for sqlite3, whose work is in memory."""
    with open("script", "w") as file:
        file.write(
            "create table sales (number integer primary key, shop integer, price integer, note text);\n"
            "insert into sales select value, value * 7919 % 10007, value * 31 % 1000, hex(value * 2654435761) || 'note'"
            " from generate_series(1, 1000000);\n"
            "create index by_shop on sales (shop, price);\n"
            "select shop, count(*), sum(price), max(note) from sales group by shop order by 3 desc, 1 limit 5;\n"
            "select count(*) from sales a join sales b on b.number = a.price * a.shop % 1000000 where b.price < 100;\n"
            "delete from sales where number % 7 = 3;\n"
            "select count(*), sum(length(note)) from sales;\n"
        )


def make_source():
    """Writes C++ with many classes and templates, which take much memory to compile."""
    with open("big.cpp", "w") as file:
        file.write("#include <algorithm>\n#include <map>\n#include <regex>\n#include <string>\n#include <vector>\n")
        for i in range(9):
            file.write(
                f"struct Item{i} {{ int key; std::string name; bool operator<(const Item{i}& other) const "
                "{ return key < other.key; } };\n"
                f"int work{i}(std::vector<Item{i}> items) {{\n"
                f"  std::map<Item{i}, std::vector<Item{i}>> groups;\n"
                "  std::sort(items.begin(), items.end());\n"
                "  for (auto& item : items) groups[item].push_back(item);\n"
                '  return std::regex_match(items[0].name, std::regex("[a-z]+")) ? int(groups.size()) : 0;\n}\n'
            )


def make_java():
    """Writes Java classes that use each other, for the compiler of Java, which runs in its virtual machine."""
    for i in range(100):
        methods = "".join(
            f"  static Map<String, List<Class{(i + j) % 100}>> method{j}(List<Class{i}> all) {{\n"
            f"    return all.stream().map(each -> new Class{(i + j) % 100}(each.number + {j}))\n"
            "      .collect(Collectors.groupingBy(each -> each.text() + each.number));\n  }\n"
            for j in range(12)
        )
        with open(f"Class{i}.java", "w") as file:
            file.write(
                "import java.util.*;\nimport java.util.stream.*;\n"
                f"class Class{i} {{\n  int number;\n  Class{i}(int number) {{ this.number = number; }}\n"
                f'  String text() {{ return "class {i}"; }}\n{methods}}}\n'
            )


VALUES = 150_000
VALUE_BYTES = 600
REPLY_BYTES_MIN = VALUES * VALUE_BYTES


def value_of(number):
    return random.Random(number).randbytes(VALUE_BYTES // 2).hex().encode()


def asked_keys(count):
    numbers = random.Random(3)
    return [numbers.randrange(count) for _ in range(count)]


def make_requests_of_redis(count=VALUES):
    with open("requests", "wb") as file:
        for number in range(count):
            file.write(b"SET key:%d %s\r\n" % (number, value_of(number)))
        for number in asked_keys(count):
            file.write(b"GET key:%d\r\n" % number)
        file.write(b"DBSIZE\r\nQUIT\r\n")


def make_requests_of_memcached(count=VALUES):
    with open("requests", "wb") as file:
        for number in range(count):
            value = value_of(number)
            file.write(b"set key:%d 0 0 %d noreply\r\n%s\r\n" % (number, len(value), value))
        for number in asked_keys(count):
            file.write(b"get key:%d\r\n" % number)
        file.write(b"quit\r\n")


# `{inputs}` is the folder of a program's inputs.
CATALOG = {
    "R": Program(("Rscript", "--vanilla", os.path.join(HERE, "sort_and_fit.R"))),
    "pandas": script("pandas_group.py", "pandas"),
    "polars": script("polars_group.py", "polars", "numpy"),
    "duckdb": script("duckdb_query.py", "duckdb"),
    "pyarrow": script("pyarrow_group.py", "pyarrow", "numpy"),
    "numpy": script("numpy_mixed.py", "numpy"),
    "scikit-learn": script("sklearn_fit.py", "sklearn", "numpy"),
    "scipy": script("scipy_sparse.py", "scipy", "numpy"),
    "redis": Program(
        ("redis-server", "--port", "0", "--unixsocket", "socket", "--save", "", "--loglevel", "warning"),
        make=make_requests_of_redis,
        is_server=True,
        output_bytes_min=REPLY_BYTES_MIN,
    ),
    "memcached": Program(
        ("memcached", "-u", "root", "-s", "socket", "-m", "1024"),
        make=make_requests_of_memcached,
        is_server=True,
        output_bytes_min=REPLY_BYTES_MIN,
    ),
    "sqlite": Program(("sqlite3", "-batch", ":memory:", ".read {inputs}/script"), make=make_table_of_sales),
    "sort": Program(("sort", "-S", "1G", "--parallel=2", "{inputs}/lines"), make=make_lines),
    "xz": Program(
        ("xz", "--lzma2=preset=1,dict=64MiB", "--threads=1", "--stdout", "{inputs}/text"), make=make_text(3_000_000)
    ),
    "zstd": Program(
        ("zstd", "-8", "--long=27", "--single-thread", "--stdout", "{inputs}/text"), make=make_text(10_000_000)
    ),
    "imagemagick": Program(
        (
            ("convert-im6.q16", "convert-im7.q16", "magick"), "-seed", "1", "-size", "2800x2400", "plasma:red-blue",
            "-blur", "0x1", "-rotate", "90", "-format", "%#", "info:",
        ),  # fmt: skip
    ),
    "g++": Program(
        ("g++", "-std=c++17", "-O1", "-c", "{inputs}/big.cpp", "-o", "big.o"), make=make_source, results=("big.o",)
    ),
    "javac": Program(
        # The virtual machine would choose its collector and heap by the limit of the cgroup.
        (
            "javac", "-J-Xmx256m", "-J-XX:+UseSerialGC", "-J-XX:-UseContainerSupport", "-d", ".", "-sourcepath",
            "{inputs}", "{inputs}/Class0.java",
        ),  # fmt: skip
        make=make_java,
        results=(".",),
    ),
    "perl": Program(("perl", os.path.join(HERE, "hash_of_words.pl"), "{inputs}/text"), make=make_text(800_000)),
}
