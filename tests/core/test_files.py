"""Files are written whole or not at all, grow by whole lines, and are read without waiting for
what is no file.
"""

import ast
import errno
import functools
import hashlib
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
from helpers import ROOT

from lightning_rl.core import files
from lightning_rl.core.errors import UserError

EXCEPTIONS = {
    "lightning_rl/core/files.py": "the layer itself",
    "lightning_rl/cli/__init__.py": "the null device, for a pipe that its reader has left",
    "lightning_rl/run/state.py": "the lock, which has no content",
    "lightning_rl/envs/doom.py": "a temporary folder for the game's program, which wants files",
    "lightning_rl/envs/doom_keeper.py": "which clears that folder and the game's shared memory",
    "lightning_rl/envs/minari_data.py": "Minari writes the dataset, which is then put in its place",
    "experiments/reproduce/command.py": "a temporary folder of its own is cleared",
    "experiments/reproduce/runs.py": "what a run prints, line by line as it comes",
}
CHANGES = {
    *(
        "write_text",
        "write_bytes",
        "savefig",
        "save",
        "mkdir",
        "unlink",
        "rename",
        "touch",
        "rmdir",
        "rmtree",
        "symlink_to",
    ),
    *(
        "remove",
        "truncate",
        "ftruncate",
        "makedirs",
        "link",
        "tofile",
        "savez",
        "copyfile",
        "copy2",
    ),
}


class Failing(files.System):
    """Does what it is asked for, but raises in one kind of call."""

    def __init__(self, call, error):
        self.call, self.error = call, error

    def __getattribute__(self, name):
        if name == object.__getattribute__(self, "call"):

            def fail(*_):
                raise object.__getattribute__(self, "error")

            return fail
        return object.__getattribute__(self, name)


class Recorded(files.System):
    """Notes the calls in their order."""

    def __init__(self):
        self.calls = []

    def __getattribute__(self, name):
        if name in ("open", "write", "fsync", "rename", "unlink", "truncate", "make_folder"):
            self.calls.append(name)
        return object.__getattribute__(self, name)


def test_a_file_is_synced_before_it_gets_its_name_and_its_folder_after(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "system", Recorded())
    files.write_text(tmp_path / "a" / "b.txt", "text")
    of_folder = ["open", "fsync"]
    assert files.system.calls == [
        "make_folder",
        *of_folder,
        "open",
        "write",
        "fsync",
        "rename",
        *of_folder,
    ]
    assert (tmp_path / "a" / "b.txt").read_text() == "text"


@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "the disk is full"), (errno.EIO, "Input/output error")]
)
def test_what_the_system_refuses_is_one_line_and_the_old_content_stays(
    tmp_path, monkeypatch, call, number, words
):
    path = tmp_path / "b.txt"
    files.write_text(path, "old")
    monkeypatch.setattr(files, "system", Failing(call, OSError(number, os.strerror(number))))
    with pytest.raises(UserError, match=words) as caught:
        files.write_text(path, "new")
    assert str(path) in str(caught.value)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_short_write_is_gone_on_with(tmp_path, monkeypatch):
    class Short(files.System):
        def write(self, descriptor, content):
            return super().write(descriptor, content[:3])

    monkeypatch.setattr(files, "system", Short())
    files.write_text(tmp_path / "b.txt", "0123456789")
    assert (tmp_path / "b.txt").read_text() == "0123456789"


def test_a_link_stays_and_what_it_points_to_is_written(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for content in ("first", "second"):
        files.write_text(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "elsewhere").read_text() == content


def test_where_a_record_is_kept_only_what_is_in_it_is_replaced_or_removed(tmp_path):
    files.keep_record(tmp_path)
    ours, theirs = tmp_path / "ours", tmp_path / "below" / "theirs"
    files.write_text(ours, "1")
    files.write_text(ours, "2")
    theirs.parent.mkdir()
    theirs.write_text("theirs")
    actions = (
        functools.partial(files.write_text, theirs, "3"),
        functools.partial(files.remove, theirs),
        functools.partial(files.move, ours, theirs),
    )
    for action in actions:
        with pytest.raises(UserError, match="theirs' is not as this program wrote it"):
            action()
    ours.write_text("edited")
    with pytest.raises(UserError, match="ours' is not as"):
        files.write_text(ours, "3")
    assert (ours.read_text(), theirs.read_text()) == ("edited", "theirs")
    ours.write_text("1")  # what it was once is the program's, too
    files.remove(ours)
    assert not ours.exists()


def test_a_file_of_the_user_is_no_record(tmp_path):
    (tmp_path / files.RECORD).write_text("what I have written\n")
    (tmp_path / "mine").write_text("mine")
    files.write_text(tmp_path / "mine", "replaced, as no record is kept here")
    with pytest.raises(UserError, match="not written by it, so it stays"):
        files.keep_record(tmp_path)
    assert (tmp_path / files.RECORD).read_text() == "what I have written\n"


def test_a_record_survives_half_a_line_and_other_writers(tmp_path):
    files.keep_record(tmp_path)
    files.write_text(tmp_path / "a", "a")
    with (tmp_path / files.RECORD).open("a") as other:
        other.write("0123")
    files.write_text(tmp_path / "b", "b")
    with (tmp_path / files.RECORD).open("a") as other:
        other.write(f"{hashlib.sha256(b'c').hexdigest()}  c\n")
    (tmp_path / "c").write_text("c")
    assert [files.is_recorded(tmp_path / name) for name in "abc"] == [True, True, True]


def test_what_killed_writers_left_is_swept_and_nothing_else(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    stale = [tmp_path / f".last.ckpt.{gone.pid}.tmp", tmp_path / f".state.yaml.{os.getpid()}.tmp"]
    stale.append(tmp_path / "recordings" / f".sampled.mp4.{gone.pid}.tmp")
    at_work = tmp_path / f".evaluation.json.{os.getppid()}.tmp"
    others = [
        tmp_path / name
        for name in ("last.ckpt", ".notes.tmp", f".notes.{gone.pid}.tmp", "a.12.tmp")
    ]
    elsewhere = tmp_path / f".state.yaml.{10**20}.tmp"  # of no process of this machine
    (tmp_path / "recordings").mkdir()
    files.keep_record(tmp_path)
    for path in (*stale, at_work, elsewhere):
        path.write_text("whole")
        files.adopt(path)
    for path in (*stale, at_work, elsewhere, *others):
        path.write_text("half")
    files.sweep(tmp_path)
    left = {path for path in tmp_path.rglob("*") if path.is_file()} - {tmp_path / files.RECORD}
    assert left == {at_work, elsewhere, *others}
    os.utime(at_work, (0, 0))  # of a process of another machine with the number of one here
    files.sweep(tmp_path)
    assert not at_work.exists()
    assert all(path.exists() for path in others)


def test_appended_lines_follow_the_whole_ones(tmp_path):
    path = tmp_path / "a.csv"
    with files.appending(path, "x,y", "") as table:
        assert table.lines == ""
        table.append("1,2\n")
    with path.open("a") as torn:
        torn.write("3,")
    assert files.read_lines(path, "table") == "x,y\n1,2\n"
    with files.appending(path, "x,y", "") as table:
        assert (table.lines, table.begun) == ("1,2\n", True)
        assert path.read_text() == "x,y\n1,2\n3,"  # as it was, until something is added
        table.append("5,6\n")
        table.append("7,8\n")
        assert table.lines == "1,2\n5,6\n7,8\n"
    assert path.read_text() == "x,y\n1,2\n5,6\n7,8\n" == files.read_lines(path, "table")
    with files.appending(path, "x,y", "") as table:
        table.append("é,8\n", instead_of="7,8\n")
        table.append("9,9\n", instead_of="é,8\n")  # é has two bytes
        assert table.lines == "1,2\n5,6\n9,9\n"
    assert path.read_text() == "x,y\n1,2\n5,6\n9,9\n"


@pytest.mark.parametrize(
    "foreign", ["", "x", "x,y", "my notes", "my notes\n", "x,z\n1,2\n", "x,y,z\n", "\xff"]
)
def test_a_file_with_another_header_is_left_alone(tmp_path, foreign):
    path = tmp_path / "a.csv"
    path.write_text(foreign)
    with (
        pytest.raises(UserError, match="not with 'x,y'; name another"),
        files.appending(path, "x,y", "name another") as table,
    ):
        table.append("1,2\n")
    assert path.read_text() == foreign
    with files.appending(path, "x,y", "", force=True) as table:
        table.append("1,2\n")
    assert path.read_text() == "x,y\n1,2\n"


def test_a_table_is_made_with_its_header_and_appended_to_in_its_place(tmp_path):
    path = tmp_path / "a.csv"
    with files.appending(path, "x,y", "") as table:
        assert path.read_text() == "x,y\n"
        files.write_text(path, "x,y\n")  # as another process that begins at the same time
        with pytest.raises(UserError, match="was replaced by another process"):
            table.append("1,2\n")
    assert path.read_text() == "x,y\n"


def test_a_refused_line_leaves_the_others(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    with files.appending(path, "x,y", "") as table:
        table.append("1,2\n")
        with monkeypatch.context() as patched:
            patched.setattr(files, "system", Failing("fsync", OSError(errno.ENOSPC, "full")))
            with pytest.raises(UserError, match="the disk is full"):
                table.append("3,4\n")
        assert path.read_text() == "x,y\n1,2\n"
        table.append("5,6\n")
    assert path.read_text() == "x,y\n1,2\n5,6\n"


def test_two_writers_of_a_table_are_one_too_many(tmp_path):
    path = tmp_path / "a.csv"
    with (
        files.appending(path, "x", ""),
        pytest.raises(UserError, match="in use by another process; wait"),
    ):
        files.appending(path, "x", "wait").__enter__()


def test_what_is_no_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_text("123456")
    (tmp_path / "bytes").write_bytes(b"ab\xff")
    for name, words in (
        ("pipe", "'.*pipe' is not a file"),
        ("none", "does not exist"),
        ("large", "has 6 bytes, the limit is 5"),
        ("bytes", "byte 2 is not UTF-8"),
        ("", "is not a file"),
    ):
        with pytest.raises(UserError, match=f"^note .*{words}"):
            files.read_text(tmp_path / name, "note", limit=5)
    assert files.read_text(tmp_path / "large", "note", limit=6) == "123456"
    assert files.read_text(Path(__file__), "test").startswith('"""Files')
    with (
        pytest.raises(UserError, match="no plain file"),
        files.appending(tmp_path / "pipe", "x", ""),
    ):
        pass


@pytest.mark.parametrize(
    ("parts", "compression", "says"),
    [
        (
            {"a": 200, "b": 200, "c": 200},
            zipfile.ZIP_DEFLATED,
            "its parts have 600 bytes, the file ",
        ),
        ({"a": 1, "b": 1, "c": 1, "d": 1}, zipfile.ZIP_STORED, "4 parts, the limit is 3"),
        ({"a/data.pkl": 11}, zipfile.ZIP_STORED, "its structure has 11 bytes, the limit is 10"),
        ({"a": 11, "flipped": 11}, zipfile.ZIP_STORED, "checksum of flipped is wrong"),
    ],
)
def test_an_archive_that_is_damaged_or_grows_when_it_is_read_is_refused(
    tmp_path, monkeypatch, parts, compression, says
):
    monkeypatch.setattr(files, "ARCHIVE_PARTS", 3)
    monkeypatch.setattr(files, "STRUCTURE_BYTES", 10)
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, size in parts.items():
            archive.writestr(name, bytes(size))
    path.write_bytes(path.read_bytes().replace(b"flipped\0", b"flipped\1"))
    with pytest.raises(UserError, match=f"^file .* is damaged \\({says}"):
        files.read_plain(path, "file", "")


def changes_files(call):
    """Whether a call, by its looks, changes a file."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    whose = getattr(getattr(call.func, "value", None), "id", "")
    first = call.args[0] if call.args else None
    if name in ("open", "fdopen"):
        texts = [
            part.value
            for part in (*call.args[:2], *(k.value for k in call.keywords))
            if isinstance(part, ast.Constant)
        ]
        return (whose == "os" and name == "open") or any(
            re.fullmatch("[rbt]*[wax+][rwbt+]*", str(text)) for text in texts
        )
    if name == "replace":  # Path's; a text's has two arguments, dataclasses' has names
        return (len(call.args) == 1 and not call.keywords) or whose == "os"
    if name in ("to_csv", "rename"):  # not those of a table that stays in memory
        return bool(call.args)
    if (
        not isinstance(call.func, ast.Attribute) or getattr(first, "id", "") == "content"
    ):  # bytes in memory
        return False
    return name in CHANGES and (name not in ("save", "remove") or whose in ("torch", "np", "os"))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("path.open('w')", True),
        ("path.open()", False),
        ("open(path, mode='a+b')", True),
        ("os.open(path, 0)", True),
        ("path.write_text(text)", True),
        ("write_text(path, text)", False),
        ("figure.savefig(f'{out}.png')", True),
        ("figure.savefig(content)", False),
        ("table.to_csv(path)", True),
        ("table.to_csv(index=False)", False),
        ("path.replace(other)", True),
        ("text.replace('a', 'b')", False),
        ("torch.save(x, path)", True),
    ],
)
def test_writing_is_seen(code, expected):
    assert changes_files(ast.parse(code).body[0].value) is expected


def test_nothing_else_in_the_package_writes_files():
    packages = [ROOT / "lightning_rl", ROOT / "experiments"]
    found = {
        str(path.relative_to(ROOT)): [
            f"line {node.lineno}"
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and changes_files(node)
        ]
        for package in packages
        for path in sorted(package.rglob("*.py"))
    }
    assert {name: lines for name, lines in found.items() if lines and name not in EXCEPTIONS} == {}
    assert [name for name in EXCEPTIONS if not found[name]] == []  # each exception is still one
